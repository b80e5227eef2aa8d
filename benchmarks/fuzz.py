"""Inputs changed at random, guided by coverage (Atheris), for what reads files and requests: `tests/fuzz/targets.py`.

usage: python -m benchmarks.fuzz N FOLDER [TARGET ...]

N inputs in all, equally many for each target; the corpus that was found is kept in FOLDER, so that the same command
goes on with it. An input that ends in an error that is not ours, a crash, a hang (5 s) or more
than 2 GB is kept in FOLDER and printed. Needs `pip install atheris`. The programs of the runtime have a test of their
own, which executes them in kernels with AddressSanitizer: `python -m tests.runtime.fuzz`.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import load_own, save

TIMEOUT_S = 5
MEMORY_MB = 2048
MAX_BYTES = 20_000


def fuzz(name, folder, n):
    """Give a target N inputs, in a process of its own."""
    from tests.fuzz.seeds import WORDS, all_seeds

    corpus, crashes = folder / name / "corpus", folder / name / "crashes"
    for each in (corpus, crashes):
        each.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(all_seeds()[name]):
        (corpus / f"seed-{i}").write_bytes(seed)
    words = folder / name / "words"
    escaped = ["".join(f"\\x{byte:02x}" for byte in word[:64]) for word in WORDS]
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    n_done = n_crashes = features = 0
    start = time.perf_counter()
    while n_done < n:  # it ends at each crash
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fuzz", "--target", name]
        limits = [f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}", f"-max_len={MAX_BYTES}"]
        kept = [f"-artifact_prefix={crashes}/", f"-dict={words}", f"-runs={n - n_done}", corpus]
        done = subprocess.run([*command, *limits, *kept], stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
        counts = re.findall(r"^#(\d+)\s.*?ft: (\d+)", done.stderr, re.MULTILINE)
        if not counts:
            raise SystemExit(done.stderr[-3000:])
        n_done += int(re.findall(r"^#(\d+)\s", done.stderr, re.MULTILINE)[-1])
        features = int(counts[-1][1])
        if done.returncode:
            n_crashes += 1
            print(done.stderr[-1500:], flush=True)
            if n_crashes > 20:
                break
    return {
        "inputs": n_done, "crashes": n_crashes, "features": features, "corpus": len(list(corpus.iterdir())),
        "seconds": round(time.perf_counter() - start),
    }  # fmt: skip


def run_target(name, arguments):
    """The process that is given inputs."""
    import atheris

    with atheris.instrument_imports(include=["glassformer"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


def main():
    from tests.fuzz.targets import TARGETS

    n, folder, names = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(TARGETS)
    for name in names:
        found = fuzz(name, folder, n // len(names))
        print(name, found, flush=True)
        targets = {**load_own("fuzz").get("targets", {}), name: found}
        save("fuzz", {"targets": targets}, "python -m benchmarks.fuzz N FOLDER")


if __name__ == "__main__":
    if sys.argv[1] == "--target":
        run_target(sys.argv[2], sys.argv[3:])
    else:
        main()
