"""Training speed of several processes with one thread each against one process with as many threads.

Trains the preset base (vocabulary 8,000, batches of 32 pairs of 32 tokens) through `Trainer`'s training step, on random
ids. Each process is started anew; variants alternate.

usage: python -m benchmarks.processes [N]
"""

import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.machine import save

VOCAB, PAIRS, LENGTH, WARM_UP, STEPS, ROUNDS = 8000, 32, 32, 1, 3, 3


def measure() -> None:
    """In each process: print the seconds of a step, in rank 0."""
    from types import SimpleNamespace

    import torch

    from glassformer.data.pairs import make_batch
    from glassformer.learning.translation import TranslationObjective
    from glassformer.models.transformer import Transformer, TransformerConfig
    from glassformer.presets import ADAM
    from glassformer.tasks.translation import Translator
    from glassformer.train_config import TrainConfig
    from glassformer.training.distributed import joined
    from glassformer.training.step import TrainingStep

    config = TrainConfig(
        src=("a",), out="b", device="cpu", precision=os.environ["PRECISION"], lr=1e-4, label_smoothing=0.1,
        shard=os.environ["SHARD"] == "1", **ADAM,
    )  # fmt: skip
    with joined(config) as processes:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.manual_seed(0)
        model = Transformer(TransformerConfig(vocab_size=VOCAB))
        task = Translator(model, SimpleNamespace(vocab_size=VOCAB))
        step = TrainingStep(TranslationObjective(task), config, print, processes)
        rows = torch.randint(3, VOCAB, (PAIRS, 2, LENGTH - 1)).tolist()
        own = [rows[i] for i in processes.part(torch.arange(PAIRS).numpy())]
        batch = make_batch(own, pad_id=0, bos_id=1, eos_id=2)
        seconds = []
        for _ in range(WARM_UP + STEPS):
            processes.gather([0.0])
            start = time.perf_counter()
            step([batch], 1e-4, (), PAIRS * LENGTH)
            seconds.append(time.perf_counter() - start)
        if processes.rank == 0:
            print("SECONDS", statistics.median(seconds[WARM_UP:]))


def run(n_processes: int, n_threads: int, precision: str, shard: bool) -> float:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
    done = subprocess.run(
        [sys.executable, *(launcher if n_processes > 1 else []), "-m", "benchmarks.processes", "--measure"],
        env=os.environ | {"OMP_NUM_THREADS": str(n_threads), "PRECISION": precision, "SHARD": str(int(shard))},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split("SECONDS")[1])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
    variants = {
        f"{n_processes} x {n_threads} threads{', sharded' if shard else ''}, {precision}": (
            n_processes, n_threads, precision, shard,
        )
        for precision in ("fp32", "bf16")
        for n_processes, n_threads, shard in ((1, n, False), (n, 1, False), (n, 1, True))
    }  # fmt: skip
    seconds = {name: [] for name in variants}
    load = [os.getloadavg()[0]]
    for _ in range(ROUNDS):
        for name, variant in variants.items():
            seconds[name].append(run(*variant))
    load.append(os.getloadavg()[0])
    record = {
        "batch": [PAIRS, LENGTH],
        "vocab_size": VOCAB,
        "load_average_before_and_after": load,
        "step_s": {name: [round(value, 3) for value in values] for name, values in seconds.items()},
        "target_tokens_per_s": {
            name: round(PAIRS * LENGTH / statistics.median(values)) for name, values in seconds.items()
        },
    }
    print(json.dumps(record["target_tokens_per_s"], indent=2))
    save("processes", record, f"python -m benchmarks.processes {n}")


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
