"""Speed of a training run relative to the bare steps of the same model on the same batches, without the trainer.

The run is `glassformer.train` on generated pairs of 25 tokens: reading, batches, logging, learning rate. The bare steps
take batches that are already made. Both alternate; validations and checkpoints are left out.

Speeds differ by up to a tenth from process to process, whatever the system: the fastest rounds are compared.

usage: python -m benchmarks.trainer_overhead [PRESET ...]      default: tiny. base takes 20 minutes on 2 cores
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

import glassformer as gf
from benchmarks.machine import gpu, save
from benchmarks.train_speed_gpu import LENGTH, pairs_file
from glassformer.data.dataset import Dataset
from glassformer.learning.registry import objective_of
from glassformer.train_config import TrainConfig
from glassformer.training.micro_batches import MicroBatches, make_sampler
from glassformer.training.step import TrainingStep

VOCAB, PAIRS, ROUNDS = 8000, 164, 4
STEPS = {"tiny": 60, "base": 20}
"""Steps of a round. The first half of a run is not measured."""


def run_step_s(folder: Path, file: Path, preset: str) -> list[float]:
    """Seconds of the steps of a run, each the mean of ten."""
    gf.train(
        file, out=folder, steps=2 * STEPS[preset], validate_every=10**6, average_checkpoints=1, format="tsv",
        tokenizer="word", vocab_size=VOCAB, preset=preset, batch_tokens=PAIRS * LENGTH, quiet=True,
    )  # fmt: skip
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    elapsed_s = [record["elapsed_s"] for record in records if "tokens_per_s" in record]
    elapsed_s = elapsed_s[len(elapsed_s) // 2 - 1 :]
    return [(b - a) / 10 for a, b in zip(elapsed_s, elapsed_s[1:], strict=False)]


def bare_step_s(folder: Path, preset: str) -> list[float]:
    """Seconds of bare steps with the options, the weights and the data of a run."""
    config = TrainConfig.resolve({}, folder / "run.toml", environment={})
    task = gf.load(folder)
    task.model.train()
    objective = objective_of(task)
    step = TrainingStep(objective, config, print)
    data = Dataset(folder / "data" / "train", objective.fields)
    sampler = make_sampler(step, data, objective.lengths(data), config.batch_tokens, config.seed)
    micro_batches = MicroBatches(step, data, sampler, config.micro_batch_tokens)
    batches = [micro_batches(next(sampler)) for _ in range(STEPS[preset])]
    seconds = []
    for i in range(2 * STEPS[preset]):
        start_s = time.perf_counter()
        step(batches[i % len(batches)], 1e-4)
        if step.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start_s)
    return seconds[STEPS[preset] :]


def main():
    presets = sys.argv[1:] or ["tiny"]
    record = {**gpu(), "batch": [PAIRS, LENGTH], "vocab_size": VOCAB, "step_ms": {}, "ratio": {}}
    for preset in presets:
        run, bare = [], []
        with tempfile.TemporaryDirectory() as name:
            file = pairs_file(Path(name) / "pairs.tsv", VOCAB, [(LENGTH, LENGTH)] * 40 * PAIRS)
            for i in range(ROUNDS):
                folder = Path(name) / f"run-{i}"
                run.append(statistics.median(run_step_s(folder, file, preset)))
                bare.append(statistics.median(bare_step_s(folder, preset)))
        record["step_ms"][preset] = {"run": [round(1e3 * s, 2) for s in run], "bare": [round(1e3 * s, 2) for s in bare]}
        record["ratio"][preset] = round(min(bare) / min(run), 3)
        print(preset, record["step_ms"][preset], "speed of the run, bare = 1:", record["ratio"][preset], flush=True)
    save("trainer_overhead", record, f"python -m benchmarks.trainer_overhead {' '.join(presets)}")


if __name__ == "__main__":
    main()
