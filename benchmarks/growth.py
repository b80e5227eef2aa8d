"""How the time and the memory of a training step grow with the batch, the length, the model and the vocabulary, and
those of corpus preparation with the corpus.

Each point is a process of its own, so that memory of other points has no influence. Memory is the peak resident memory
above that after the imports. The slope of each curve on logarithmic axes, between its last two points, is 1 where the
cost is proportional.

usage: python -m benchmarks.growth [PAIRS [AXIS]]
    PAIRS: size of the largest corpus, default 1,000,000
    AXIS: part of the name of an axis; the results of the others are kept. Default: all axes.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice, pairwise
from pathlib import Path

import torch

from benchmarks.figure import figure
from benchmarks.machine import RESULTS, describe, load_own, save

BASE = {"pairs": 64, "length": 32, "n_layers": 3, "d_model": 256, "vocab_size": 8000}
STEP_AXES = {
    "tokens per batch and side": [{"pairs": n // 32, "x": n} for n in (512, 2048, 8192, 32768)],
    "length, 8,192 tokens per batch and side": [
        {"pairs": 8192 // n, "length": n, "x": n} for n in (32, 128, 512, 2048, 4096, 8192)
    ],
    "layers of encoder and decoder": [{"n_layers": n, "x": n} for n in (1, 2, 4, 8, 16)],
    "d_model": [{"d_model": n, "x": n} for n in (128, 256, 512, 1024)],
    "vocabulary": [{"vocab_size": n, "x": n} for n in (2000, 8000, 32000, 128000)],
}
CORPUS_AXES = {
    "pairs of the corpus: preparation": "preparation",
    "pairs of the corpus: batches of an epoch": "batch_plan",
}
CORPUS_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIBRARY_PAIRS = 1_000_000


def main():
    n_pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    command = f"python -m benchmarks.growth {n_pairs}" + (f" {only!r}" if only else "")
    record = {"threads": os.cpu_count(), "base": BASE, "axes": {}}
    if only:
        record |= load_own("growth")
    sizes = [n for n in CORPUS_SIZES if n <= n_pairs]
    if len(sizes) < 2:
        sys.exit(f"PAIRS is {n_pairs:,}: a curve needs two corpora; give at least {CORPUS_SIZES[1]:,}.")
    tasks = {axis: ("step", {point["x"]: {**BASE, **point} for point in points}) for axis, points in STEP_AXES.items()}
    tasks |= {axis: (function, {n: {"pairs": n} for n in sizes}) for axis, function in CORPUS_AXES.items()}
    for axis, (function, points) in tasks.items():
        if only in axis:
            add(record, axis, {x: alone(function, options) for x, options in points.items()}, command)
            save("growth", record, command)
    panels = {
        f"{unit} by {axis}": {"": {int(x): row[name] for x, row in rows["points"].items()}}
        for axis, rows in record["axes"].items()
        for name, unit in {"seconds": "seconds", "mb": "MB"}.items()
    }
    (RESULTS / "growth.svg").write_text(figure(panels), encoding="utf-8")


def add(record, axis, points, command):
    """Record the measurements of an axis with the slopes between its last two points, and the command and commit."""
    (x0, a), (x1, b) = list(pairwise(points.items()))[-1]
    slopes = {name: round(math.log(b[name] / a[name]) / math.log(x1 / x0), 2) for name in ("seconds", "mb")}
    version = {name: value for name, value in describe(command).items() if name in ("command", "date", "commit")}
    record["axes"][axis] = {"points": points, "slope": slopes, **version}
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
    """Print the cost of corpus preparation, and the seconds in which the tokenizer library encodes the same text."""
    from glassformer.learning.translation import TranslationObjective
    from glassformer.train_config import TrainConfig
    from glassformer.training.building import build
    from glassformer.training.distributed import Processes
    from glassformer.training.encoding import encode
    from glassformer.training.options import resolve_options
    from glassformer.training.scan import scan

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("train.a", "train.b")]
        for seed, path in enumerate(files):
            write_text(path, options["pairs"], seed)
        config = TrainConfig(src=[files[0]], tgt=[files[1]], out=Path(folder) / "run", steps=1)
        before = resident_mb()
        clocks = {"wall": time.perf_counter, "cpu": time.process_time}
        start = {name: clock() for name, clock in clocks.items()}
        corpus = scan(config, TranslationObjective, lambda message: None)
        tokenizer_made = {name: clock() - start[name] for name, clock in clocks.items()} | {"mb": resident_mb()}
        resolved = resolve_options(config, TranslationObjective, corpus, None)
        objective = build(resolved, TranslationObjective, corpus, None, torch.device("cpu"), Processes())
        encode(config, objective, corpus, lambda message: None)
        seconds = {name: clock() - start[name] for name, clock in clocks.items()}
        mb = resident_mb() - before
        library = library_seconds(objective.tokenizer.backend, files, options["pairs"], clocks)
    encoding = {name: seconds[name] - tokenizer_made[name] for name in clocks}
    row = {
        "seconds": round(seconds["wall"], 2),
        "mb": round(mb),
        "until_tokenizer_s": round(tokenizer_made["wall"], 2),
        "until_tokenizer_mb": round(tokenizer_made["mb"] - before),
        "library_encoding_s": round(library["wall"], 2),
        "rate_relative_to_library": round(library["wall"] / seconds["wall"], 2),
        "encoding_rate_relative_to_library": round(library["wall"] / encoding["wall"], 2),
        "cpu_s": round(seconds["cpu"], 2),
        "encoding_cpu_s": round(encoding["cpu"], 2),
        "library_encoding_cpu_s": round(library["cpu"], 2),
    }
    print(json.dumps(row))


def library_seconds(backend, files, n_pairs, clocks):
    """Seconds by which the tokenizer library encodes the text; of large corpora, from LIBRARY_PAIRS evenly distributed
    pairs."""
    from glassformer.corpora.lines import chunks
    from glassformer.training.encoding import ENCODED_TOGETHER

    every = max(1, n_pairs // LIBRARY_PAIRS)
    total, n_encoded = dict.fromkeys(clocks, 0.0), 0
    for path in files:
        with path.open(encoding="utf-8") as file:
            for chunk in islice(chunks((line.rstrip("\n") for line in file), ENCODED_TOGETHER), 0, None, every):
                start = {name: clock() for name, clock in clocks.items()}
                backend.encode_batch_fast(chunk, add_special_tokens=False)
                total = {name: total[name] + clock() - start[name] for name, clock in clocks.items()}
                n_encoded += len(chunk)
    return {name: value * n_pairs * len(files) / n_encoded for name, value in total.items()}


def batch_plan(options):
    """Print the cost of the lengths of a prepared corpus and the batches of an epoch."""
    import numpy as np

    from glassformer.data.dataset import IDS, Dataset
    from glassformer.data.sampler import BatchSampler

    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(("src", "tgt")):
            generator = np.random.default_rng(seed)
            ends = np.cumsum(generator.lognormal(3.1, 0.6, options["pairs"]).astype(np.int64).clip(2, 256))
            ends.tofile(Path(folder) / f"{name}.ends")
            with open(Path(folder) / f"{name}.u2", "wb") as file:
                file.truncate(2 * int(ends[-1]))
            del ends
        child = os.fork()
        if not child:  # a process whose peak does not include that of the generator
            before = resident_mb()
            start = time.perf_counter()
            lengths = Dataset(Path(folder), {"src": IDS, "tgt": IDS}).lengths
            lengths_s = time.perf_counter() - start
            BatchSampler(lengths, 4096, 1)
            seconds, mb = time.perf_counter() - start, resident_mb() - before
            print(json.dumps({"seconds": round(seconds, 3), "mb": round(mb, 1), "lengths_s": round(lengths_s, 3)}))
            os._exit(0)
        os.waitpid(child, 0)


def write_text(path, n_lines, seed):
    """Lines of 5 to 25 words, with the frequencies of natural text, from 200,000 words."""
    import numpy as np

    generator = np.random.default_rng(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "in")]
    drawn = generator.choice(syllables, (200_000, 5)).tolist()
    n_syllables = generator.integers(1, 6, len(drawn)).tolist()
    words = ["".join(row[:n]) + " " for row, n in zip(drawn, n_syllables, strict=True)]
    letters = np.frombuffer("".join(words).encode(), np.uint8)
    lengths = np.array([len(word) for word in words])
    starts = np.cumsum(lengths) - lengths
    cumulative = np.cumsum(1 / (np.arange(len(words)) + 3))
    with path.open("wb") as file:
        for first in range(0, n_lines, 16384):
            line_ends = np.cumsum(generator.integers(5, 26, min(16384, n_lines - first)))
            chosen = np.searchsorted(cumulative, generator.random(line_ends[-1]) * cumulative[-1])
            ends = np.cumsum(lengths[chosen])
            shifts = starts[chosen] - (ends - lengths[chosen])
            text = letters[np.arange(ends[-1]) + np.repeat(shifts, lengths[chosen])]
            text[ends[line_ends - 1] - 1] = ord("\n")  # in place of the space after the last word
            file.write(text.tobytes())


if __name__ == "__main__":
    main()
