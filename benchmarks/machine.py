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
        "processor": f"{info.get('model name')}, family {info.get('cpu family')}, model {info.get('model')}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def gpu() -> dict[str, str]:
    """The GPU that computes, as the field `device` of a record: empty if there is none."""
    import torch

    return {"device": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}


def load(name: str) -> dict[str, dict]:
    """The records of results/NAME.json, by processor or GPU: empty if there is no such file."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def load_own(name: str, device: str | None = None) -> dict:
    """The record of this processor, or of a GPU, in results/NAME.json: empty if it has none."""
    return load(name).get(device or describe("")["processor"], {})


def save(name: str, record: dict, command: str) -> None:
    """Write the record of this processor, or of the GPU in record["device"], into results/NAME.json.

    The records of other processors are kept.
    """
    RESULTS.mkdir(exist_ok=True)
    record = {**describe(command), **record}
    records = {**load(name), record.get("device", record["processor"]): record}
    (RESULTS / f"{name}.json").write_text(json.dumps(records, indent=2) + "\n")
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
