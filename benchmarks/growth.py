"""How the time and the memory of a training step grow with the batch, the length, the model and the vocabulary, and
those of corpus preparation with the corpus.

Each point is a process of its own, so that memory of other points has no influence. Memory is the peak resident memory
above that after the imports. The slope of each curve on logarithmic axes, between its last two points, is 1 where the
cost is proportional.

usage: python -m benchmarks.growth [PAIRS]      PAIRS: size of the largest corpus, default 1,000,000
"""

import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate, pairwise
from pathlib import Path

import torch

from benchmarks.figure import figure
from benchmarks.machine import RESULTS, describe, save

BASE = {"pairs": 64, "length": 32, "n_layers": 3, "d_model": 256, "vocab_size": 8000}
STEP_AXES = {
    "tokens per batch and side": [{"pairs": n // 32, "x": n} for n in (512, 2048, 8192, 32768)],
    "length, 8,192 tokens per batch and side": [
        {"pairs": 8192 // n, "length": n, "x": n} for n in (32, 128, 512, 2048, 4096)
    ],
    "layers of encoder and decoder": [{"n_layers": n, "x": n} for n in (1, 2, 4, 8, 16)],
    "d_model": [{"d_model": n, "x": n} for n in (128, 256, 512, 1024)],
    "vocabulary": [{"vocab_size": n, "x": n} for n in (2000, 8000, 32000, 128000)],
}
CORPUS_AXIS = "pairs of the corpus: preparation"
CORPUS_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def main():
    n_pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    command = f"python -m benchmarks.growth {n_pairs}"
    record = {**describe(command), "threads": os.cpu_count(), "base": BASE, "axes": {}}
    for axis, points in STEP_AXES.items():
        add(record, axis, {point["x"]: alone("step", {**BASE, **point}) for point in points})
    sizes = [n for n in CORPUS_SIZES if n <= n_pairs]
    add(record, CORPUS_AXIS, {n: alone("preparation", {"pairs": n}) for n in sizes})
    save("growth", record, command)
    names = {"seconds": "seconds", "mb": "MB"}
    panels = {
        f"{unit} by {axis}": {"": {x: row[name] for x, row in rows["points"].items()}}
        for axis, rows in record["axes"].items()
        for name, unit in names.items()
    }
    (RESULTS / "growth.svg").write_text(figure(panels), encoding="utf-8")


def add(record, axis, points):
    """Record the measurements of an axis with the slopes between its last two points."""
    (x0, a), (x1, b) = list(pairwise(points.items()))[-1]
    slopes = {name: round(math.log(b[name] / a[name]) / math.log(x1 / x0), 2) for name in ("seconds", "mb")}
    record["axes"][axis] = {"points": points, "slope": slopes}
    print(axis, points, "slope", slopes, flush=True)


def alone(function, options):
    code = f"from benchmarks import growth as g; g.{function}({options})"
    output = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.split("\n")[-2])


def resident_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def step(options):
    """Print the median seconds of a training step in bf16, and its memory."""
    from benchmarks.train_speed import our_step

    pairs, length, n_layers, d_model = (options[name] for name in ("pairs", "length", "n_layers", "d_model"))
    src = torch.randint(3, options["vocab_size"], (pairs, length))
    tgt = torch.randint(3, options["vocab_size"], (pairs, length + 1))
    before = resident_mb()
    sizes = (d_model, 4 * d_model, d_model // 64, n_layers)
    run = our_step(sizes, src, tgt, "bf16", vocab_size=options["vocab_size"])
    seconds = []
    start = time.perf_counter()
    while len(seconds) < 4 or (len(seconds) < 12 and time.perf_counter() - start < 5):
        last = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - last)
    print(json.dumps({"seconds": round(statistics.median(seconds[1:]), 4), "mb": round(resident_mb() - before)}))


def preparation(options):
    """Print the cost of corpus preparation, and the seconds in which the tokenizer library encodes the same
    text."""
    from glassformer.config import TrainConfig
    from glassformer.tasks.translation import Translator
    from glassformer.training import prepare as p
    from glassformer.training.distributed import Processes
    from glassformer.training.run import build, resolve_options

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.a", "train.b")]
        for seed, path in enumerate(files):
            write_text(path, options["pairs"], seed)
        config = TrainConfig(src=[files[0]], tgt=[files[1]], out=Path(folder) / "run", steps=1)
        before = resident_mb()
        seconds = {}

        def make(info):
            seconds["tokenizer"] = time.perf_counter() - start
            resolved = resolve_options(config, Translator, info, None)
            return build(resolved, Translator, info, None, torch.device("cpu"), Processes())

        start = time.perf_counter()
        task, _ = p.prepare(config, Translator, make, lambda message: None)
        seconds["all"] = time.perf_counter() - start
        mb = resident_mb() - before
        backend, library = task.tokenizer.backend, 0.0
        for path in files:
            with path.open(encoding="utf-8") as file:
                for chunk in p.chunks((line.rstrip("\n") for line in file), p.ENCODED_TOGETHER):
                    last = time.perf_counter()
                    backend.encode_batch_fast(chunk, add_special_tokens=False)
                    library += time.perf_counter() - last
    row = {
        "seconds": round(seconds["all"], 2),
        "mb": round(mb),
        "until_tokenizer_s": round(seconds["tokenizer"], 2),
        "library_encoding_s": round(library, 2),
        "encoding_rate_relative_to_library": round(library / (seconds["all"] - seconds["tokenizer"]), 2),
    }
    print(json.dumps(row))


def write_text(path, n_lines, seed):
    """Lines of 5 to 25 words, with the frequencies of natural text, from 200,000 different words."""
    generator = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "in")]
    words = ["".join(generator.choices(syllables, k=generator.randint(1, 5))) for _ in range(200_000)]
    cumulative = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n_lines):
            line = generator.choices(words, cum_weights=cumulative, k=generator.randint(5, 25))
            file.write(" ".join(line) + "\n")


if __name__ == "__main__":
    main()
