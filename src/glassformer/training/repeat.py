"""`train --repeat`: a run, repeated from its folder, and whether the result is the same."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file

from glassformer.errors import ConfigError
from glassformer.manifest import MANIFEST, read_json
from glassformer.train_config import TrainConfig
from glassformer.training.options import with_former_values, without_unused_options
from glassformer.training.scan import changed_files, given_models

TIMES = ("tokens_per_s", "elapsed_s")
"""Measurements of metrics.jsonl that differ between equal runs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs beside one another."""

    n_weights: int
    different: dict[str, float]
    """Weights that differ -> the largest difference; infinite if a weight is of one run only or has another shape."""
    metrics: list[tuple[int, str, float | None, float | None]]
    """The first measurements that differ: step, name, values."""
    environment: dict[str, tuple[object, object]] = field(default_factory=dict)
    """What differs of versions and machine."""

    def describe(self) -> list[str]:
        """Lines that say what is equal."""
        lines = []
        if self.environment:
            differences = (f"{name} {before} -> {now}" for name, (before, now) in self.environment.items())
            lines.append(f"Other environment: {', '.join(differences)}.")
        lines += [
            f"Step {step}: {name} {show(before)} before, {show(now)} now." for step, name, before, now in self.metrics
        ]
        if not self.different:
            return [*lines, f"All {self.n_weights:,} weights are equal, bit for bit."]
        name, most = max(self.different.items(), key=lambda item: item[1])
        return [
            *lines,
            f"{len(self.different):,} of {self.n_weights:,} weights differ, by {most:.3g} at most ({name}).",
        ]


def show(value: float | None) -> str:
    """A measurement, in a message."""
    return "none" if value is None else f"{value:.6g}"


def config_of(run: Path, out: Path) -> TrainConfig:
    """The options that repeat a run in another folder: those of the run, with as many threads and processes.

    Raises:
        ConfigError: the run cannot be repeated.
        CorpusError: a file of it cannot be read.
    """
    path = run / "run.toml"
    if not path.exists():
        raise ConfigError(f"{run}: has no run.toml.\n  Name a folder written by `glassformer train`.")
    if not (run / MANIFEST).exists():
        raise ConfigError(f"{run}: the training has not finished.\n  Finish it: glassformer train --config {path}")
    if out.resolve() == run.resolve():
        raise ConfigError(f"--out {out}: is the run itself.\n  Name another folder.")
    environment = read_json(run / "env.json")
    given = {"out": out, "threads": environment.get("threads"), "devices": environment.get("processes")}
    config = with_former_values(TrainConfig.resolve(given, path))
    if config.minutes is not None:
        raise ConfigError(
            f"{run}: was trained for {config.minutes:g} minutes, which are other steps at each time.\n"
            "  Runs of --steps and --epochs can be repeated."
        )
    corpus = read_json(run / "data" / "corpus.json")
    if changed := changed_files(config, corpus["files"]):
        raise ConfigError(f"{changed[0]}: is not the file of the run: its content is another.\n  Restore it.")
    found, models = given_models(config), corpus.get("models", {})  # runs of an earlier version have no record of them
    if other := next((path for path in models if found.get(path) != models[path]), None):
        raise ConfigError(f"{other}: is not the model that the run began with.\n  Restore it.")
    return without_unused_options(config)


def compare(run: Path, other: Path, n_metrics: int = 10) -> Comparison:
    """Compare the results of two runs.

    Args:
        n_metrics: number of measurements that differ that are named.
    """
    before, now = (load_file(folder / "model.safetensors") for folder in (run, other))
    different = {
        name: difference
        for name in {**before, **now}
        if (difference := distance(before.get(name), now.get(name))) != 0.0
    }
    found = [measurements(folder / "metrics.jsonl") for folder in (run, other)]
    metrics = [
        (*key, found[0].get(key), found[1].get(key))
        for key in sorted({**found[0], **found[1]})
        if found[0].get(key) != found[1].get(key)
    ]
    environments = [read_json(folder / "env.json") for folder in (run, other)]
    names = [name for name in {**environments[0], **environments[1]} if name != "first_step_s"]
    environment = {
        name: (environments[0].get(name), environments[1].get(name))
        for name in names
        if environments[0].get(name) != environments[1].get(name)
    }
    return Comparison(len({**before, **now}), different, metrics[:n_metrics], environment)


def distance(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    """Largest difference of two weights; 0 only if all bits are equal, NaN if only bits without a value differ."""
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if torch.equal(*(x.reshape(-1).view(torch.uint8) for x in (a, b))):
        return 0.0
    return float((a.double() - b.double()).abs().max()) or float("nan")


def measurements(path: Path) -> dict[tuple[int, str], float]:
    """Step and name -> value, of a metrics.jsonl, without times."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {
        (record["step"], name): value
        for record in records
        for name, value in record.items()
        if name not in ("step", *TIMES)
    }
