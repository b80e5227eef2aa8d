"""Peak rates of this processor in GFLOP/s (int8: Gop/s), measured by loops of single instructions in C (peak.c).

usage: python -m benchmarks.peak [THREADS]
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.machine import save, threads


def peaks(n_threads: int) -> dict[str, float]:
    """Rates of fp32 multiply-adds, vdpbf16ps and vpdpbusd, as far as the processor has them; all threads together."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "needs a C compiler"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/peak"
        flags = ["-O3", "-funroll-all-loops", "-march=native"]
        subprocess.run([compiler, *flags, Path(__file__).with_suffix(".c"), "-o", program, "-lpthread"], check=True)
        return json.loads(subprocess.check_output([program, str(n_threads)]))


if __name__ == "__main__":
    record = {"threads": threads(), "peak": peaks(threads()), "peak_of_one_thread": peaks(1)}
    print(record)
    save("peak", record, "python -m benchmarks.peak")
