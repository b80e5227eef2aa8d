"""Inputs changed at random, guided by coverage (Atheris), for what reads files, requests and models: `tests/fuzz`.

usage: python -m benchmarks.fuzz [N [FOLDER [TARGET ...]]]

N inputs in all (default 5,000,000), equally many for each target, in processes of `SLICE` inputs. What was found is
kept in FOLDER (default: build/fuzz) and the counts in results/fuzz.json, after each process: the same command goes on
after an interruption, and with a larger N. An input that ends in an error that is not ours, a crash, a hang (5 s) or
more than 1 GB of memory is kept in FOLDER/TARGET/crashes. Needs `pip install atheris`.

The kernels are not those with AddressSanitizer, for which there are `make sanitize` and `python -m tests.runtime.fuzz`.
"""

import json
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

from benchmarks.machine import load_own, save

COMMAND = "python -m benchmarks.fuzz 5000000"
TIMEOUT_S = 5
MEMORY_MB = 1024
MAX_BYTES = 20_000
SLICE = 50_000
MAX_CRASHES = 20
"""Processes that may end by a crash, a hang or too much memory, after which a target is given up."""


def fuzz(name, folder, n):
    """Give a target N inputs, those of earlier calls included. Yields its record, and again after each process."""
    corpus, crashes, state = (folder / name / part for part in ("corpus", "crashes", "record.json"))
    for each in (corpus, crashes):
        each.mkdir(parents=True, exist_ok=True)
    record = {"inputs": 0, "failures": 0, "edges": 0, "features": 0, "corpus": 0, "seconds": 0.0}
    if state.exists():
        record = json.loads(state.read_text())
        yield record
    n_crashes = 0
    while record["inputs"] < n and n_crashes <= MAX_CRASHES:
        start = time.perf_counter()
        n_done, edges, features, failed = run_slice(name, folder, min(SLICE, n - record["inputs"]))
        record["inputs"] += n_done
        n_crashes += failed
        record["seconds"] = round(record["seconds"] + time.perf_counter() - start, 1)
        n_failures = sum(path.suffix != ".txt" for path in crashes.iterdir())
        record |= {"failures": n_failures, "edges": edges, "features": features, "corpus": len(list(corpus.iterdir()))}
        record["inputs_per_s"] = round(record["inputs"] / record["seconds"])
        state.write_text(json.dumps(record))
        yield record


def run_slice(name, folder, n):
    """Up to N inputs in a process, which ends at a crash. Returns inputs, edges, features, and whether it crashed."""
    where = folder / name
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fuzz", "--target", name, str(where)]
    limits = [f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}", f"-max_len={MAX_BYTES}"]
    kept = [f"-artifact_prefix={where / 'crashes'}/", f"-dict={where / 'words'}", f"-runs={n}", str(where / "corpus")]
    done = subprocess.run([*command, *limits, *kept], stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    counts = re.findall(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+)", done.stderr, re.MULTILINE)
    if not counts:
        raise SystemExit(done.stderr[-3000:])
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
    n_done = int(re.findall(r"^#(\d+)\s", done.stderr, re.MULTILINE)[-1])
    return n_done, int(counts[-1][1]), int(counts[-1][2]), bool(done.returncode)


def run_target(name, folder, arguments):
    """The process that is given inputs."""
    import atheris

    with atheris.instrument_imports(include=["glassformer"]):
        from tests.fuzz.seeds import WORDS, seeds_of
        from tests.fuzz.targets import TARGETS

        seeds = seeds_of(name)
    for i, seed in enumerate(seeds):
        (folder / "corpus" / f"seed-{i}").write_bytes(seed)
    escaped = ["".join(f"\\x{byte:02x}" for byte in word[:64]) for word in WORDS]
    (folder / "words").write_text("".join(f'"{word}"\n' for word in escaped))
    atheris.Setup([sys.argv[0], *arguments], keeping_errors(TARGETS[name], folder / "crashes"))
    atheris.Fuzz()


def keeping_errors(target, folder):
    """A target whose errors do not end the process: the shortest input of each line that raises one is kept."""

    def run(data):
        try:
            target(data)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            path = folder / f"{type(error).__name__}-{Path(frame.filename).stem}-{frame.lineno}"
            if not path.exists():
                path.with_suffix(".txt").write_text(traceback.format_exc())
            if not path.exists() or len(data) < path.stat().st_size:
                path.write_bytes(data)

    return run


def main(n=5_000_000, folder="build/fuzz", *names):
    from tests.fuzz.targets import TARGETS

    names = names or tuple(TARGETS)
    for name in names:
        for record in fuzz(name, Path(folder).resolve(), -(-int(n) // len(names))):
            print(name, record, flush=True)
            save("fuzz", {"targets": {**load_own("fuzz").get("targets", {}), name: record}}, COMMAND)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--target"]:
        run_target(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main(*sys.argv[1:])
