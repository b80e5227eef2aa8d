"""Training speed in target tokens per second, compared with torch.nn.Transformer, MarianMTModel of Hugging Face, and
the toolkits of `peers` that are installed.

Equal sizes, batches (128 pairs of 18 tokens, vocabulary of 8,000), threads and optimizer; the better of fp32 and bf16
for each. torch.nn.Transformer, MarianMTModel and x-transformers are trained in a standard loop: mean cross-entropy with
label smoothing over the logits. The others compute their own loss. Of glassformer also the rate of the matrix products,
as a fraction of the peak rate of this processor (benchmarks.peak).

usage: python -m benchmarks.train_speed [THREADS]
"""

import importlib.metadata

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.machine import alternate, save, threads
from benchmarks.peak import peaks
from benchmarks.peers import PEERS
from glassformer.data.pairs import PairBatch
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.training.flop import product_flop

VOCAB, PAIRS, LENGTH = 8000, 128, 18
SIZES = {"tiny": (128, 256, 4, 4), "small": (256, 1024, 4, 3), "base": (512, 2048, 8, 6)}


class Plain(nn.Module):
    """torch.nn.Transformer with tied embeddings."""

    def __init__(self, d_model, d_ff, n_heads, n_layers):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, d_model)
        self.transformer = nn.Transformer(d_model, n_heads, n_layers, n_layers, d_ff, 0.1, batch_first=True)

    def forward(self, src, tgt):
        scale = self.embedding.embedding_dim**0.5
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), device=tgt.device)
        x = self.transformer(
            self.embedding(src) * scale, self.embedding(tgt) * scale, tgt_mask=mask, tgt_is_causal=True
        )
        return x @ self.embedding.weight.t()


def plain_step(model, logits, src, tgt, bf16):
    def loss(src, tgt):
        out = logits(src, tgt[:, :-1])
        return F.cross_entropy(out.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1), label_smoothing=0.1)

    return loss_step(model, loss, src, tgt, bf16)


def loss_step(model, loss_of_batch, src, tgt, bf16):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = loss_of_batch(src, tgt)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def marian(d_model, d_ff, n_heads, n_layers):
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=VOCAB, d_model=d_model, encoder_layers=n_layers, decoder_layers=n_layers, encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff, encoder_attention_heads=n_heads, decoder_attention_heads=n_heads, dropout=0.1,
        max_position_embeddings=256, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None,
        activation_function="relu",
    )  # fmt: skip
    return MarianMTModel(config).train()


def our_step(sizes, src, tgt, precision, vocab_size=VOCAB):
    d_model, d_ff, n_heads, n_layers = sizes
    pairs, length = src.shape
    config = TransformerConfig(
        vocab_size=vocab_size, d_model=d_model, d_ff=d_ff, n_heads=n_heads, n_encoder_layers=n_layers,
        n_decoder_layers=n_layers, max_len=max(256, length),
    )  # fmt: skip
    model = Transformer(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    batch = PairBatch(
        n_targets=pairs * length,
        src=src,
        tgt_in=tgt[:, :-1],
        tgt_out=tgt[:, 1:],
        target_positions=torch.arange(pairs * length),
    )

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            hidden = model(batch.src, batch.tgt_in).flatten(0, 1).index_select(0, batch.target_positions)
            targets = batch.tgt_out.flatten().index_select(0, batch.target_positions)
            loss = linear_cross_entropy(hidden, model.embedding.weight, targets, label_smoothing=0.1)
        optimizer.zero_grad()
        (loss / batch.n_targets).backward()
        optimizer.step()

    lengths = torch.full((pairs,), length)
    step.flop = product_flop(model, batch, {"source": lengths, "target": lengths})
    return step


def main():
    torch.set_num_threads(threads())
    torch.manual_seed(0)
    record = {
        "threads": threads(),
        "batch": [PAIRS, LENGTH],
        "vocab_size": VOCAB,
        "peers": {},
        "not_installed": {},
        "target_tokens_per_s": {},
        "ratio": {},
        "ratio_to_each": {},
        "peak_gflop_per_s": peaks(threads()),
        "fraction_of_peak": {},
    }
    peers = {}
    for name, (distribution, make) in PEERS.items():
        try:
            make((16, 16, 2, 1), 101)
            record["peers"][name], peers[name] = importlib.metadata.version(distribution), make
        except ImportError as error:
            record["not_installed"][name] = str(error)
    src, tgt = torch.randint(3, VOCAB, (PAIRS, LENGTH)), torch.randint(3, VOCAB, (PAIRS, LENGTH + 1))
    for name, sizes in SIZES.items():
        seconds, flop = {}, {}
        for precision in ("fp32", "bf16"):  # one after the other: all models of "base" take 8 GB of memory
            bf16, tasks = precision == "bf16", {}
            plain, hf = Plain(*sizes).train(), marian(*sizes)
            tasks[f"glassformer {precision}"] = ours = our_step(sizes, src, tgt, precision)
            flop[precision] = ours.flop
            tasks[f"torch.nn.Transformer {precision}"] = plain_step(plain, plain, src, tgt, bf16)
            forward = lambda s, t, hf=hf: hf(input_ids=s, decoder_input_ids=t).logits
            tasks[f"MarianMTModel {precision}"] = plain_step(hf, forward, src, tgt, bf16)
            for peer, make in peers.items():
                model, loss = make(sizes, VOCAB)
                tasks[f"{peer} {precision}"] = loss_step(model.train(), loss, src, tgt, bf16)
            seconds |= alternate(tasks, rounds=3 if name == "base" else 7)
        speed = {task: PAIRS * LENGTH / s for task, s in seconds.items()}
        best = {}
        for task, value in speed.items():
            system = task.rpartition(" ")[0]
            best[system] = max(value, best.get(system, 0))
        ours = best.pop("glassformer")
        record["target_tokens_per_s"][name] = {k: round(v) for k, v in speed.items()}
        record["fraction_of_peak"][name] = {
            precision: round(flop[precision] / seconds[f"glassformer {precision}"] / 1e9 / peak, 2)
            for precision in flop
            if (peak := record["peak_gflop_per_s"].get(precision))
        }
        record["ratio"][name] = round(ours / max(best.values()), 2)
        record["ratio_to_each"][name] = {peer: round(ours / value, 2) for peer, value in best.items()}
        results = ("target_tokens_per_s", "ratio_to_each", "fraction_of_peak")
        print(name, *(record[result][name] for result in results), flush=True)
    print("not installed:", record["not_installed"])
    save("train_speed", record, "python -m benchmarks.train_speed")


if __name__ == "__main__":
    main()
