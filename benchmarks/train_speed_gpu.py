"""Training speed on a GPU: the whole trainer, and the steps of other implementations.

The trainer runs `glassformer.train` on generated text: reading, batches, logging and all. The steps of
torch.nn.Transformer and of Hugging Face's models run in a bare loop on tensors that are already on the GPU, with the
same sizes, bf16 and the fused Adam, compiled. Model FLOP utilization (MFU) counts the matrix products of the
model, forward and backward, relative to the speed of a product of 8,192 x 8,192 matrices in bf16.

usage: python -m benchmarks.train_speed_gpu [GROUP ...]      groups: tiny base big bert gpt2 t5
"""

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import glassformer as gf
from benchmarks import train_speed as peers
from benchmarks.machine import save

LENGTH = 25
"""Tokens on each side of a pair, with the end token."""

SIZES = {
    "tiny": ((128, 256, 4, 4), 8000, 164, 1500),
    "base": ((512, 2048, 8, 6), 37_000, 1024, 300),
    "big": ((1024, 4096, 16, 6), 37_000, 1024, 150),
}
"""d_model, d_ff, heads, layers; vocabulary; pairs in a batch; steps."""

PEERS = {
    "tiny": ("torch.nn.Transformer",),
    "base": ("torch.nn.Transformer", "MarianMTModel"),
    "big": ("torch.nn.Transformer", "MarianMTModel"),
}

MODELS = {"bert": (30_000, 128, 128), "gpt2": (50_000, 1024, 16), "t5": (32_000, 128, 128)}
"""Vocabulary, length (T5: of each side), rows in a batch."""


def words(rng: random.Random, vocab_size: int, n: int) -> str:
    return " ".join(f"w{i}" for i in rng.choices(range(vocab_size - 10), k=n))


def pairs_file(path: Path, vocab_size: int, lengths: list[tuple[int, int]]) -> Path:
    """Write pairs of random words; with the end token, a pair has `lengths` tokens."""
    rng = random.Random(1)
    path.write_text("".join(f"{words(rng, vocab_size, m - 1)}\t{words(rng, vocab_size, n - 1)}\n" for m, n in lengths))
    return path


def text_file(path: Path, vocab_size: int, n_tokens: int) -> Path:
    """Write lines of 100 random words."""
    rng = random.Random(1)
    path.write_text("".join(words(rng, vocab_size, 100) + "\n" for _ in range(-(-n_tokens // 100))))
    return path


def ragged_lengths(n: int) -> list[tuple[int, int]]:
    """Lengths like those of Multi30k: about 14 words, with a standard deviation of 5."""
    rng = random.Random(2)
    sources = [min(45, max(3, int(rng.gauss(14, 5)))) for _ in range(n)]
    return [(src, min(50, max(2, int(src * rng.gauss(1, 0.15)))) + 1) for src in sources]


def trainer_speed(folder: Path, file: Path, steps: int, **options) -> dict[str, float]:
    """Median steps and targets per second of the second half of a training, time to step 10, and peak memory."""
    torch.cuda.reset_peak_memory_stats()
    started_s = time.monotonic()
    gf.train(
        file, out=folder, steps=steps, device="cuda", validate_every=10**6, average_checkpoints=1,
        quiet=True, **options,
    )  # fmt: skip
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    records = [record for record in records if "tokens_per_s" in record]
    elapsed = [record["elapsed_s"] for record in records[len(records) // 2 :]]
    torch._dynamo.reset()
    return {
        "steps_per_s": round(10 / statistics.median(b - a for a, b in zip(elapsed, elapsed[1:], strict=False)), 2),
        "targets_per_s": round(statistics.median(r["tokens_per_s"] for r in records[len(records) // 2 :])),
        "seconds_to_step_10": round(records[0]["elapsed_s"], 1),
        "seconds": round(time.monotonic() - started_s),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
    }


def step_speed(step) -> dict[str, float]:
    """Steps per second after warm-up, and peak memory."""
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(5):
        started_s = time.monotonic()
        for _ in range(8):
            step()
        torch.cuda.synchronize()
        seconds.append((time.monotonic() - started_s) / 8)
    torch._dynamo.reset()
    return {
        "steps_per_s": round(1 / statistics.median(seconds), 2),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
    }


def update_step(model, loss):
    """A training step with bf16 autocast and Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    return step


def pair_peer(name: str, preset: str):
    """A compiled step of another encoder-decoder."""
    sizes, vocab_size, n_pairs, _ = SIZES[preset]
    peers.VOCAB = vocab_size
    model = (peers.Plain(*sizes) if name == "torch.nn.Transformer" else peers.marian(*sizes)).cuda().train()
    run = torch.compile(model)
    src, tgt = (torch.randint(3, vocab_size, (n_pairs, LENGTH + i), device="cuda") for i in (0, 1))

    def loss():
        if name == "torch.nn.Transformer":
            logits = run(src, tgt[:, :-1])
        else:
            logits = run(input_ids=src, decoder_input_ids=tgt[:, :-1]).logits
        return F.cross_entropy(logits.reshape(-1, vocab_size), tgt[:, 1:].reshape(-1), label_smoothing=0.1)

    return update_step(model, loss)


def text_peer(name: str):
    """A compiled step of Hugging Face's BERT, GPT-2 or T5, base."""
    import transformers as hf

    vocab_size, length, n_rows = MODELS[name]
    if name == "bert":
        model = hf.BertForMaskedLM(hf.BertConfig(vocab_size=vocab_size))
    elif name == "gpt2":
        model = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=vocab_size, n_positions=length))
    else:
        sizes = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
        config = hf.T5Config(vocab_size=vocab_size, **sizes, decoder_start_token_id=0)
        model = hf.T5ForConditionalGeneration(config)
    model = model.cuda().train()
    run = torch.compile(model)
    ids = torch.randint(5, vocab_size, (n_rows, length), device="cuda")
    labels = torch.where(torch.rand(ids.shape, device="cuda") < 0.15, ids, -100) if name == "bert" else ids
    return update_step(model, lambda: run(input_ids=ids, labels=labels).loss)


def product_tflops() -> float:
    """Speed of a product of 8,192 x 8,192 matrices in bf16."""
    a, b = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.bfloat16)
    seconds = []
    for _ in range(20):
        torch.cuda.synchronize()
        started_s = time.perf_counter()
        a @ b
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started_s)
    return round(2 * 8192**3 / statistics.median(seconds) / 1e12, 1)


def step_tflop(preset: str) -> float:
    """Floating-point operations of the products of a step, in 10^12: layers, vocabulary and attention."""
    (d, d_ff, _, n_layers), vocab_size, n_pairs, _ = SIZES[preset]
    layer_pair = 12 * d + 4 * d_ff  # encoder: 4 d^2 + 2 d d_ff; decoder: 8 d^2 + 2 d d_ff
    return 6 * n_pairs * LENGTH * d * (n_layers * (layer_pair + 5 * LENGTH) + vocab_size) / 1e12


def pair_group(preset: str, folder: Path, peak: float, add) -> None:
    _, vocab_size, n_pairs, steps = SIZES[preset]
    file = pairs_file(folder / "pairs.tsv", vocab_size, [(LENGTH, LENGTH)] * 40 * n_pairs)

    def rates(result):
        speed = result["steps_per_s"]
        mfu = speed * step_tflop(preset) / peak
        return {"target_tokens_per_s": round(speed * n_pairs * LENGTH), "mfu": round(mfu, 3), **result}

    def ours(compile):
        result = trainer_speed(
            folder / compile, file, steps, format="tsv", tokenizer="word", vocab_size=vocab_size, preset=preset,
            batch_tokens=n_pairs * LENGTH, compile=compile, optimizer="adam",
        )  # fmt: skip
        add(f"glassformer {preset}, compile {compile}", rates(result))

    ours("on")
    for name in PEERS[preset]:
        add(f"{name} {preset}, compiled", rates(step_speed(pair_peer(name, preset))))
    if preset == "base":
        ours("off")
        ragged(folder, add)


def ragged(folder: Path, add) -> None:
    """Base on pairs of uneven lengths: targets are real tokens, without padding."""
    _, vocab_size, n_pairs, _ = SIZES["base"]
    file = pairs_file(folder / "ragged.tsv", vocab_size, ragged_lengths(100_000))
    result = trainer_speed(
        folder / "ragged", file, 500, format="tsv", tokenizer="word", vocab_size=vocab_size, preset="base",
        batch_tokens=n_pairs * LENGTH, compile="on",
    )  # fmt: skip
    add("glassformer base, lengths like Multi30k's", result)


def text_group(name: str, folder: Path, add) -> None:
    vocab_size, length, n_rows = MODELS[name]
    if name == "t5":
        file = pairs_file(folder / "pairs.tsv", vocab_size, [(length, length)] * 60 * n_rows)
        options = {"format": "tsv", "tokenizer": "word", "max_len": length}
    else:
        file = text_file(folder / f"{name}.txt", vocab_size, n_tokens=60 * n_rows * length)
        dev = text_file(folder / "dev.txt", vocab_size, n_tokens=5 * length)
        options = {"task": {"bert": "masked-lm", "gpt2": "causal-lm"}[name], "dev_src": (dev,), "max_len": length}
    # Windows of a language model have one token more.
    result = trainer_speed(
        folder / name, file, 150, **options, family=name, preset="base", vocab_size=vocab_size,
        batch_tokens=n_rows * (length + (name == "gpt2")), compile="on",
    )  # fmt: skip
    add(f"glassformer {name}", {"tokens_per_s": round(result["steps_per_s"] * n_rows * length), **result})
    result = step_speed(text_peer(name))
    add(f"transformers {name}, compiled", {"tokens_per_s": round(result["steps_per_s"] * n_rows * length), **result})


def main():
    peak = product_tflops()
    for group in sys.argv[1:] or [*SIZES, *MODELS]:
        record = {"device": torch.cuda.get_device_name(), "product_tflops": peak, "results": {}}

        def add(name, result, record=record, group=group):
            record["results"][name] = result
            print(name, result, flush=True)
            save(f"train_speed_gpu_{group}", record, f"python -m benchmarks.train_speed_gpu {group}")

        with tempfile.TemporaryDirectory() as folder:
            if group in SIZES:
                pair_group(group, Path(folder), peak, add)
            else:
                text_group(group, Path(folder), add)


if __name__ == "__main__":
    main()
