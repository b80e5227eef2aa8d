"""Training speed on a GPU in target tokens per second: the whole trainer, and the steps of other implementations.

The trainer runs `glassformer.train` on generated text: reading, batches, logging and all. The steps of
torch.nn.Transformer and MarianMTModel of Hugging Face run in a bare loop on tensors that are already on the GPU, with
the same sizes, bf16 and the fused Adam. Batches of 1,024 pairs of 25 tokens and a vocabulary of 37,000 at base; 164
pairs and 8,000 at tiny.

usage: python -m benchmarks.train_speed_gpu
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import glassformer as gf
from benchmarks import train_speed as peers
from benchmarks.machine import save

LENGTH = 25
SIZES = {"base": ((512, 2048, 8, 6), 37_000, 1024, 200), "tiny": ((128, 256, 4, 4), 8000, 164, 400)}
"""d_model, d_ff, heads, layers; vocabulary; pairs in a batch; steps."""


def corpus(path: Path, vocab_size: int, lengths: list[int]) -> Path:
    """Write pairs of random words; with the end token, a pair has `lengths` tokens on each side."""
    rng = random.Random(1)
    words = [f"w{i}" for i in range(vocab_size)]
    line = lambda n: " ".join(rng.choices(words, k=n - 1))
    path.write_text("".join(f"{line(n)}\t{line(n)}\n" for n in lengths))
    return path


def trainer_speed(folder: Path, file: Path, preset: str, *, compile: str) -> dict[str, float]:
    """Median tokens per second of the second half of a training, seconds to step 10, and peak memory."""
    _, vocab_size, n_pairs, steps = SIZES[preset]
    torch.cuda.reset_peak_memory_stats()
    started_s = time.monotonic()
    gf.train(
        file, out=folder, format="tsv", tokenizer="word", vocab_size=vocab_size, preset=preset, steps=steps,
        batch_tokens=n_pairs * LENGTH, device="cuda", compile=compile, validate_every=10**6, average_checkpoints=1,
        quiet=True,
    )  # fmt: skip
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    records = [record for record in records if "tokens_per_s" in record]
    return {
        "target_tokens_per_s": round(statistics.median(r["tokens_per_s"] for r in records[len(records) // 2 :])),
        "seconds_to_step_10": round(records[0]["elapsed_s"], 1),
        "seconds": round(time.monotonic() - started_s),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
    }


def step_speed(step, n_tokens: int) -> dict[str, float]:
    """Median tokens per second of a step after warm-up, and peak memory."""
    for _ in range(5):
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
    return {
        "target_tokens_per_s": round(n_tokens / statistics.median(seconds)),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1),
    }


def peer_step(name: str, preset: str, *, compile: bool):
    """A training step of another implementation, as in `benchmarks.train_speed`."""
    sizes, vocab_size, n_pairs, _ = SIZES[preset]
    peers.VOCAB = vocab_size
    model = (peers.Plain(*sizes) if name == "torch.nn.Transformer" else peers.marian(*sizes)).cuda().train()
    run = torch.compile(model) if compile else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    src, tgt = (torch.randint(3, vocab_size, (n_pairs, LENGTH + i), device="cuda") for i in (0, 1))

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            if name == "torch.nn.Transformer":
                logits = run(src, tgt[:, :-1])
            else:
                logits = run(input_ids=src, decoder_input_ids=tgt[:, :-1]).logits
            loss = F.cross_entropy(logits.reshape(-1, vocab_size), tgt[:, 1:].reshape(-1), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def main():
    record = {"device": torch.cuda.get_device_name(), "results": {}}

    def add(name, result):
        record["results"][name] = result
        print(name, result, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for preset, (_, vocab_size, n_pairs, _) in SIZES.items():
            file = corpus(Path(folder) / f"{preset}.tsv", vocab_size - 10, [LENGTH] * 40 * n_pairs)
            for compile in ("on", "off"):
                out = Path(folder) / f"{preset} {compile}"
                add(f"glassformer {preset}, compile {compile}", trainer_speed(out, file, preset, compile=compile))
                torch._dynamo.reset()
        for preset, (_, _, n_pairs, _) in SIZES.items():
            for name in ("torch.nn.Transformer", "MarianMTModel"):
                for compile in (True, False):
                    step = peer_step(name, preset, compile=compile)
                    key = f"{name} {preset}{', compiled' if compile else ''}"
                    add(key, step_speed(step, n_pairs * LENGTH))
                    torch._dynamo.reset()
    save("train_speed_gpu", record, "python -m benchmarks.train_speed_gpu")


if __name__ == "__main__":
    main()
