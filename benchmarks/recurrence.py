"""Recurrent baseline and Transformer: BLEU at equal training time and number of parameters, and the cost of a training
step as a function of the text length.

usage: python -m benchmarks.recurrence DATA [MINUTES [THREADS]]

DATA is as for benchmarks.multi30k. For each length, with BATCH sentence pairs of that many tokens on both sides: number
of sequential steps in training, seconds of a training step (forward, loss, backward; medians of alternating runs), MB
of activations saved for the gradient, and the gradient norm of the last output at the first token of the source and of
the target, relative to the mean over tokens (untrained, without dropout).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks import multi30k
from benchmarks.figure import figure
from benchmarks.machine import RESULTS, alternate, describe, save
from glassformer.models.rnn import Rnn, RnnConfig
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.presets import preset

PANELS = {
    "sequential_steps": "sequential steps",
    "step_s": "seconds per training step",
    "kept_mb": "MB saved for the gradient",
    "reaches_first_target": "relative gradient norm at the first target token",
}
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
BATCH, ROUNDS = 2, 3


def main():
    data = Path(sys.argv[1])
    minutes, threads = [*sys.argv[2:], *("10", "1")[len(sys.argv) - 2 :]]
    command = f"python -m benchmarks.recurrence DATA {minutes} {threads}"
    record = describe(command)
    record["lengths"] = {length: alone(length, threads) for length in LENGTHS}
    with tempfile.TemporaryDirectory() as folder:
        for family in ("transformer", "rnn"):
            out = Path(folder) / family
            options = ["--family", family, "--minutes", minutes, "--threads", threads, *multi30k.OPTIONS]
            trained = multi30k.train(data, "de", out, options)
            record[family] = {
                **{split: multi30k.evaluate(data, "de", out, split) for split in ("val", "test_2016_flickr")},
                **trained,
            }
            print(
                family,
                {split: record[family][split]["BLEU"]["score"] for split in ("val", "test_2016_flickr")},
                flush=True,
            )
    save("recurrence", record, command)
    panels = {
        title: {
            family: {length: row[family][name] for length, row in record["lengths"].items()}
            for family in ("transformer", "rnn")
        }
        for name, title in PANELS.items()
    }
    (RESULTS / "recurrence.svg").write_text(figure(panels), encoding="utf-8")


def alone(length, threads):
    """Measurements for a length, in a separate process, so that memory of other lengths has no influence."""
    command = [sys.executable, "-c", f"from benchmarks import recurrence as r; r.report({length}, {threads})"]
    row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(length, row, flush=True)
    return row


def report(length, threads):
    torch.set_num_threads(threads)
    print(json.dumps(at(length)))


def models():
    torch.manual_seed(1)
    t, r = preset("tiny"), preset("tiny", "rnn")
    sizes = {name: t[name] for name in ("d_model", "n_heads", "d_ff", "pre_norm")}
    depth = {"n_encoder_layers": t["n_layers"], "n_decoder_layers": t["n_layers"]}
    common = {"vocab_size": 8000, "max_len": max(LENGTHS), "dropout": 0.0}
    return {
        "transformer": Transformer(TransformerConfig(**common, **sizes, **depth)),
        "rnn": Rnn(RnnConfig(**common, d_model=r["d_model"], n_layers=r["n_layers"])),
    }


def at(length):
    src, tgt_in, targets = torch.randint(3, 8000, (3, BATCH, length), generator=torch.Generator().manual_seed(1))
    models_by_name = models()

    def step(model):
        model.zero_grad()
        hidden = model(src, tgt_in)
        linear_cross_entropy(hidden.flatten(0, 1), model.output_weight, targets.flatten()).backward()

    seconds = alternate({name: lambda model=model: step(model) for name, model in models_by_name.items()}, ROUNDS)
    n_layers = (
        models_by_name["transformer"].config.n_encoder_layers + models_by_name["transformer"].config.n_decoder_layers
    )
    sequential_steps = {"transformer": n_layers, "rnn": 2 * length}
    return {
        name: {
            "parameters": sum(p.numel() for p in model.parameters()),
            "sequential_steps": sequential_steps[name],
            "step_s": round(seconds[name], 4),
            "kept_mb": round(kept(lambda model=model: model(src, tgt_in)) / 1e6, 1),
            **reach(model, src, tgt_in),
        }
        for name, model in models_by_name.items()
    }


def kept(forward):
    """Bytes that autograd saves in a forward pass, without weights. Each storage is counted once."""
    storages = {}

    def pack(tensor):
        if not isinstance(tensor, torch.nn.Parameter):
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes(), tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(size for size, _ in storages.values())


def reach(model, src, tgt_in):
    """Gradient norm of the last output at the first token, relative to the mean norm over the tokens of the side."""
    embeddings = []

    def keep(module, inputs, output):
        output.retain_grad()
        embeddings.append(output)

    hook = model.embedding.register_forward_hook(keep)
    direction = torch.randn(model.config.d_model, generator=torch.Generator().manual_seed(2))
    (model(src, tgt_in)[:, -1] @ direction).sum().backward()
    hook.remove()
    source = embeddings[0].grad
    target = embeddings[1].grad if len(embeddings) == 2 else torch.stack([output.grad for output in embeddings[1:]], 1)
    relative_norm = lambda grad: float(grad[:, 0].norm(dim=-1).mean() / grad.norm(dim=-1).mean())
    return {"reaches_first_source": relative_norm(source), "reaches_first_target": relative_norm(target)}


if __name__ == "__main__":
    main()
