"""Common functions of the benchmarks: timing, and result files with machine, versions and command."""

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def describe(command: str) -> dict:
    """Machine, versions, commit and the command that reproduces the result."""
    names = ("glassformer", "torch", "transformers", "ctranslate2", "onnxruntime", "tokenizers", "sacrebleu")
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with open("/proc/cpuinfo") as file:
        info = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].split("\n") if ":" in line)
    info = {key.strip(): value.strip() for key, value in info.items()}
    return {
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit,
        "processor": " ".join(f"{name} {info.get(name)}" for name in ("model name", "cpu family", "model")),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def save(name: str, record: dict, command: str) -> None:
    """Write results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({**describe(command), **record}, indent=2) + "\n")
    print(f"-> {RESULTS / name}.json")


def alternate(tasks: dict[str, Callable[[], object]], rounds: int, pause_s: float = 0.0) -> dict[str, float]:
    """Median seconds of each task. Tasks are run in alternation after a warm-up, so that drift affects all equally.

    Args:
        pause_s: pause before each task: threads of OpenMP libraries wait actively for up to 0.2 s after a task, on
            cores that the next task needs.
    """
    for task in tasks.values():
        task()
    seconds = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            time.sleep(pause_s)
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def threads() -> int:
    """Number of threads for all systems: the first argument, or all cores."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
