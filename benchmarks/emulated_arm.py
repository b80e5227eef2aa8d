"""The ARM wheel, executed by an emulator (qemu-user): are its translations, with their probabilities, those of this
processor bit for bit, in int8 and fp32, with each instruction set of ARM?

usage: python -m benchmarks.emulated_arm WHEEL MODEL LINES

Needs Debian with qemu-user-static and the packages of arm64 (dpkg --add-architecture arm64; apt-get update).
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import save

PACKAGES = (
    "libc6 libpython3.11-minimal libpython3.11-stdlib python3.11-minimal zlib1g libexpat1 libssl3 libffi8 libbz2-1.0"
    " liblzma5 libuuid1 libsqlite3-0 libstdc++6 libgcc-s1 libcrypt1"
).split()
"""Packages of Debian 12 with Python."""

PLATFORMS = ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")

PROCESSORS = ("cortex-a76", "max")
"""Emulated processors: with `dotprod`, and with all that the emulator has."""


def install(folder: Path, wheel: Path) -> list:
    """Install Python and the wheel. Returns the arguments of the emulator that start Python."""
    download = ["apt-get", "download", *(f"{name}:arm64" for name in PACKAGES)]
    subprocess.run(download, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    root, site = folder / "root", folder / "site"
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", site, "--only-binary=:all:"]
    pip += ["--python-version", "3.11"]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    subprocess.run([*pip, *platforms, wheel], check=True, stderr=subprocess.DEVNULL)
    environment = {"PYTHONPATH": site, "PYTHONHOME": root / "usr"}
    words = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
    return ["-L", root, *words, root / "usr/bin/python3.11"]


def main(wheel: Path, model: Path, lines: Path) -> None:
    text = lines.read_bytes()
    options = ["-m", "glassformer", "translate", model, "--json", "--threads", "1", "--batch-tokens", "2000"]

    def translated(python: list, precision: str) -> str:
        command = [*python, *options, "--precision", precision]
        output = subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE).stdout
        return hashlib.sha256(output).hexdigest()

    expected = {precision: translated([sys.executable], precision) for precision in ("int8", "fp32")}
    rows: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as name:
        python = install(Path(name), wheel)
        for processor in PROCESSORS:
            emulated = ["qemu-aarch64-static", "-cpu", processor, *python]
            program = "from glassformer.kernels.library import implementation; print(implementation())"
            printed = subprocess.run([*emulated, "-c", program], check=True, capture_output=True, text=True)
            kernels = printed.stdout.strip()
            rows[kernels] = {
                precision: {"lines": text.count(b"\n"), "equal": translated(emulated, precision) == digest}
                for precision, digest in expected.items()
            }
            print(kernels, rows[kernels], flush=True)
    save("emulated_arm", {"rows": rows}, "python -m benchmarks.emulated_arm WHEEL MODEL LINES")


if __name__ == "__main__":
    main(*(Path(os.path.abspath(argument)) for argument in sys.argv[1:4]))
