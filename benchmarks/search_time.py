"""Time of translation in int8 within the kernels and outside of them: search, requests and the tables of a step.

Batches of 450 source tokens are about 32 sentences of Multi30k, beam 4.

usage: python -m benchmarks.search_time MODEL SRC
"""

import statistics
import sys
import time
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.generate.request import Sources
from glassformer.kernels.library import Kernels
from glassformer.tasks.registry import load

ROUNDS = 5
BUDGETS = (450, 1024)


def main():
    folder, path = map(Path, sys.argv[1:3])
    task = load(folder, device="cpu")
    ids = [[*task.tokenizer.encode(line), task.tokenizer.eos_id] for line in read_lines(path)]
    run, within = Kernels.run, []

    def timed(self, *arguments):
        start = time.perf_counter()
        try:
            return run(self, *arguments)
        finally:
            within.append(time.perf_counter() - start)

    Kernels.run = timed
    rows = {}
    for budget in BUDGETS:
        options = DecodeConfig(precision="int8", batch_tokens=budget)
        engine = task.engine(options)
        engine.decode(Sources(ids, options))
        measured = []
        for _ in range(ROUNDS):
            within.clear()
            start = time.perf_counter()
            engine.decode(Sources(ids, options))
            measured.append((time.perf_counter() - start, sum(within), len(within)))
        total, kernels, calls = (statistics.median(column) for column in zip(*measured, strict=True))
        rows[f"{budget} tokens"] = {
            "seconds": round(total, 3), "outside_the_kernels": round(total - kernels, 3),
            "part_outside": round((total - kernels) / total, 3), "calls": calls,
        }  # fmt: skip
        print(budget, rows[f"{budget} tokens"], flush=True)
    save(
        "search_time",
        {"sentences": len(ids), "parameters": task.source.n_parameters, "rows": rows},
        "python -m benchmarks.search_time MODEL SRC",
    )


if __name__ == "__main__":
    main()
