"""Size of an installation, and start-up time of the command line.

usage: python -m benchmarks.footprint
"""

import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.machine import save

ROOT = Path(__file__).parents[1]


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main():
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        sizes = [megabytes(Path(folder))]
        start = time.perf_counter()
        for package in ("torch>=2.8,<2.14", str(ROOT)):
            subprocess.run([f"{folder}/bin/pip", "install", "-q", package], check=True, stderr=subprocess.DEVNULL)
            sizes.append(megabytes(Path(folder)))
        install_s = time.perf_counter() - start
        seconds = []
        for _ in range(12):
            start = time.perf_counter()
            subprocess.run([f"{folder}/bin/glassformer", "--help"], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
    record = {
        "megabytes": {"torch and what it requires": round(sizes[1] - sizes[0]), "the rest": round(sizes[2] - sizes[1])},
        "pip_install_s": round(install_s, 1),
        "help_s": round(statistics.median(seconds[1:]), 3),
    }
    print(record, file=sys.stderr)
    save("footprint", record, "python -m benchmarks.footprint")


if __name__ == "__main__":
    main()
