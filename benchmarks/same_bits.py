"""Is a training repeated bit for bit: by the same command, and by one that is killed and started again?

    python -m benchmarks.same_bits [DEVICE]      default: cuda

Trainings of the preset `tiny` on the text of the demo, side by side: by default, in fp32, with --compile on, and
with --deterministic. The weights are compared by their SHA-256.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.machine import gpu, save
from glassformer.corpora.demo.pairs import sample_pairs
from glassformer.manifest import sha256

STEPS = 300
OPTIONS = {
    "default": [],
    "--precision fp32": ["--precision", "fp32"],
    "--compile on": ["--compile", "on"],
    "--deterministic": ["--deterministic"],
    "--compile on --deterministic": ["--compile", "on", "--deterministic"],
}


def train(folder, out, device, options):
    """The process of a training in folder/out."""
    command = [
        *(sys.executable, "-m", "glassformer", "train", folder / "train.en", folder / "train.fr"),
        *("--out", folder / out, "--preset", "tiny", "--dropout", "0.1", "--steps", STEPS, "--save-every", 50),
        *("--validate-every", 150, "--device", device, "--threads", 1, "--quiet", *options),
    ]  # fmt: skip
    return subprocess.Popen(list(map(str, command)), start_new_session=True)


def n_steps(folder):
    """Updates that the records of a run have."""
    file = folder / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return max((json.loads(line).get("step", 0) for line in lines), default=0)


def killed(folder, out, device, options):
    """The process of a training that was killed after half of its updates and started again; whether it was killed."""
    process = train(folder, out, device, options)
    while n_steps(folder / out) < STEPS // 2 and process.poll() is None:
        time.sleep(0.005)
    was_running = process.poll() is None
    if was_running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return train(folder, out, device, options), was_running


def compare(folder, device, number, options):
    """Whether the weights of a second run, and those of a killed one, are those of the first."""
    first, second = (train(folder, f"{number}-{name}", device, options) for name in ("first", "second"))
    third, was_killed = killed(folder, f"{number}-killed", device, options)
    codes = [process.wait() for process in (first, second, third)]
    if any(codes):
        return {"exit codes": codes}
    weights = [sha256(folder / f"{number}-{name}" / "model.safetensors") for name in ("first", "second", "killed")]
    return {"repeated": weights[1] == weights[0], "resumed": weights[2] == weights[0], "killed": was_killed}


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(OPTIONS)) as threads:
        folder = Path(name)
        pairs = sample_pairs(4000, seed=1)
        for side, language in enumerate(("en", "fr")):
            (folder / f"train.{language}").write_text("".join(pair[side] + "\n" for pair in pairs))
        jobs = {
            name: threads.submit(compare, folder, device, number, options)
            for number, (name, options) in enumerate(OPTIONS.items())
        }
        results = {name: job.result() for name, job in jobs.items()}
    for name, result in results.items():
        print(f"{name:40} {result}")
    save(
        "same_bits",
        {**(gpu() if device == "cuda" else {}), "results": results},
        " ".join(["python -m benchmarks.same_bits", *sys.argv[1:]]),
    )


if __name__ == "__main__":
    main()
