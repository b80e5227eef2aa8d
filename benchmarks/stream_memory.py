"""Memory of `glassformer translate` while it reads a long stream.

A small model with random weights translates LINES lines of 1 to 12 words to at most 4 tokens in int8, through a pipe.
The resident memory of the process is read after every part of the output.

usage: python -m benchmarks.stream_memory [LINES]   (default: 1,000,000)
"""

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch

from benchmarks.machine import save
from glassformer.memory import proc_bytes
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer

N_PARTS = 20
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lnrst"]


def lines(n: int, seed: int = 1):
    """Lines of random words."""
    rng = random.Random(seed)
    for _ in range(n):
        yield " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))


def save_model(folder: Path) -> None:
    """Write a translator with random weights."""
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(list(lines(2000)), vocab_size=500)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=64, n_heads=2, d_ff=128, n_encoder_layers=1, n_decoder_layers=1,
        max_len=64, pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
    )  # fmt: skip
    Translator.build(config, tokenizer).save(folder)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        save_model(folder)
        command = [sys.executable, "-m", "glassformer", "translate", str(folder), "--quiet", "--precision", "int8"]
        command += ["--beam", "1", "--max-length", "4", "--no-repeat-ngram-size", "0"]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin
        assert process.stdout

        def write() -> None:
            with process.stdin as pipe:
                pipe.writelines(line + "\n" for line in lines(n))

        threading.Thread(target=write, daemon=True).start()
        first_s, mebibytes = None, []
        for i, _ in enumerate(process.stdout, 1):
            first_s = first_s or time.perf_counter() - start
            if i % (n // N_PARTS) == 0 and i < n:
                mebibytes.append(round(proc_bytes(Path(f"/proc/{process.pid}/status"), "VmRSS") / 2**20))
                print(f"{i:,} lines, {time.perf_counter() - start:.0f} s, {mebibytes[-1]} MiB", flush=True)
        seconds = time.perf_counter() - start
        assert process.wait() == 0
        assert i == n
    record = {
        "lines": n,
        "seconds": round(seconds),
        "lines_per_s": round(n / seconds),
        "first_line_s": round(first_s or 0, 1),
        "resident_mib": mebibytes,
    }
    print(record)
    save("stream_memory", record, "python -m benchmarks.stream_memory")


if __name__ == "__main__":
    main()
