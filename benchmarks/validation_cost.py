"""Time of the first validation of a run with default options, as a fraction of the training before it.

Trains on 100,000 English-German pairs with a budget of 12 minutes and stops after the first validation, due after one.

usage: python -m benchmarks.validation_cost DATA [THREADS]   (DATA: folder with tatoeba-en-de/deu.txt.gz)
"""

import contextlib
import gzip
import sys
import tempfile
import time
from pathlib import Path

import glassformer as gf
from benchmarks.machine import save
from glassformer.training.validation import Validator

PAIRS = 100_000


class Measured(Exception):
    """The first validation is over."""


def main() -> None:
    data, threads = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    times = {}
    metrics = Validator.metrics

    def timed(validator: Validator) -> dict[str, float]:
        times["trained_s"] = validator.elapsed_s()
        start = time.monotonic()
        metrics(validator)
        times["validation_s"] = time.monotonic() - start
        times["n_decoded"] = validator.state.n_decoded
        times["n_dev"] = len(validator.dev)
        times["step"] = validator.state.step
        raise Measured

    Validator.metrics = timed
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name) / "deu.txt"
        with gzip.open(data / "tatoeba-en-de" / "deu.txt.gz", "rt", encoding="utf-8") as file:
            lines = ["\t".join(line.rstrip("\n").split("\t")[:2]) for line in file]
        spread = [lines[i * len(lines) // PAIRS] for i in range(PAIRS)]  # the file is sorted by length
        corpus.write_text("\n".join(spread) + "\n", encoding="utf-8")
        with contextlib.suppress(Measured):
            gf.train(corpus, out=Path(name) / "run", minutes=12, **({"threads": threads} if threads else {}))
    record = {**times, "fraction": round(times["validation_s"] / times["trained_s"], 3)}
    print(record)
    save("validation_cost", record, "python -m benchmarks.validation_cost DATA")


if __name__ == "__main__":
    main()
