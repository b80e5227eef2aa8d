"""Time that saving a checkpoint takes from the training: written at once, and by another thread.

Trains the preset base on random pairs. After a few steps, each variant saves a checkpoint and makes the same number of
steps; what they take longer than steps alone is the cost of saving. Variants alternate.

usage: python -m benchmarks.saving_cost [THREADS]
"""

import random
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import glassformer as gf
from benchmarks.machine import save
from glassformer.training.signals import StopSignal
from glassformer.training.trainer import Trainer

PAIRS, WORDS, VOCAB, STEPS, ROUNDS = 2000, 24, 37_000, 4, 3
VARIANTS = ("none", "at once", "in the background")


class Measured(Exception):
    """All rounds are over."""


def measure(trainer: Trainer, results: dict[str, list[float]]) -> None:
    """Seconds of STEPS steps with a checkpoint in between, until the checkpoint is complete."""
    stop = StopSignal()
    for _ in range(2):
        trainer.make_update(stop)
    for _ in range(ROUNDS):
        for variant in VARIANTS:
            started_s = time.perf_counter()
            if variant != "none":
                trainer.save()
            if variant == "at once":
                trainer.checkpoints.wait()
            results[f"{variant}: returns after"].append(time.perf_counter() - started_s)
            for _ in range(STEPS):
                trainer.make_update(stop)
            trainer.checkpoints.wait()
            results[f"{variant}: all"].append(time.perf_counter() - started_s)
    raise Measured


def main() -> None:
    threads = {"threads": int(sys.argv[1])} if len(sys.argv) > 1 else {}
    results = {f"{variant}: {part}": [] for variant in VARIANTS for part in ("returns after", "all")}
    Trainer.run = lambda trainer, *_: measure(trainer, results)
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name) / "pairs.tsv"
        sides = [" ".join(f"w{i}" for i in rng.choices(range(VOCAB), k=WORDS)) for _ in range(2 * PAIRS)]
        corpus.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sides[::2], sides[1::2], strict=True)))
        with suppress(Measured):
            gf.train(
                corpus, out=Path(name) / "run", preset="base", steps=1000, batch_tokens=1000, tokenizer="word",
                vocab_size=VOCAB, quiet=True, **threads,
            )  # fmt: skip
    record = {
        "steps": STEPS,
        "seconds": {name: [round(s, 2) for s in values] for name, values in results.items()},
        "median_s": {name: round(statistics.median(values), 2) for name, values in results.items()},
    }
    print(record["median_s"])
    save("saving_cost", record, "python -m benchmarks.saving_cost")


if __name__ == "__main__":
    main()
