"""Size of an installation and of what is downloaded for it, beside that of CTranslate2 with what translating text by it
needs; start-up time of the command line.

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


def megabytes(folder: Path, *, bytecode: bool = False) -> float:
    """Size of the files as they are in the packages; or also of the bytecode that pip compiles from them."""
    files = (path for path in folder.rglob("*") if path.is_file() and (bytecode or path.suffix != ".pyc"))
    return sum(path.lstat().st_size for path in files) / 1e6


def measured(*packages: str) -> dict[str, float]:
    """Megabytes that are downloaded for packages and installed by them into an empty environment."""
    with tempfile.TemporaryDirectory() as name:
        downloaded, installed = Path(name) / "downloaded", Path(name) / "installed"
        pip = [sys.executable, "-m", "pip"]
        subprocess.run(
            [*pip, "download", "-q", "-d", str(downloaded), *packages], check=True, stderr=subprocess.DEVNULL
        )
        venv.create(installed, with_pip=False)
        empty = megabytes(installed, bytecode=True)
        install = ["--python", str(installed / "bin" / "python"), "install", "-q", "--no-index", "--find-links"]
        subprocess.run([*pip, *install, str(downloaded), *packages], check=True, stderr=subprocess.DEVNULL)
        return {
            "downloaded": round(megabytes(downloaded), 1),
            "installed": round(megabytes(installed) - empty),
            "with bytecode": round(megabytes(installed, bytecode=True) - empty),
        }


def median_s(command: list[str]) -> float:
    """Median time of a process, in seconds."""
    seconds = []
    for _ in range(12):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def main():
    with tempfile.TemporaryDirectory() as wheels:
        subprocess.run(
            [sys.executable, ROOT / "packaging" / "wheels.py", wheels], check=True, stdout=subprocess.DEVNULL
        )
        wheel_mb = {
            path.name.split("-none-")[1].removesuffix(".whl"): round(path.stat().st_size / 1e6, 2)
            for path in sorted(Path(wheels).glob("*.whl"))
        }
        (ours,) = (str(path) for path in Path(wheels).glob("*manylinux*x86_64.whl"))
        packages = {
            "glassformer": measured(ours),
            "CTranslate2 and SentencePiece": measured("ctranslate2", "sentencepiece"),
        }
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        sizes = [megabytes(Path(folder))]
        install_s, start_s = [], {}
        for package in (str(ROOT), f"{ROOT}[train]"):
            start = time.perf_counter()
            subprocess.run([f"{folder}/bin/pip", "install", "-q", package], check=True, stderr=subprocess.DEVNULL)
            install_s.append(time.perf_counter() - start)
            sizes.append(megabytes(Path(folder)))
            if package == str(ROOT):
                commands = {
                    "--help": ["-m", "glassformer", "--help"],
                    "import glassformer": ["-c", "import glassformer"],
                }
                start_s = {name: median_s([f"{folder}/bin/python", *command]) for name, command in commands.items()}
    record = {
        "wheel_mb": wheel_mb,
        "packages": packages,
        "megabytes": {
            "glassformer without PyTorch": round(sizes[1] - sizes[0]),
            "what the extra `train` adds, PyTorch included": round(sizes[2] - sizes[1]),
        },
        "pip_install_s": round(install_s[0], 1),
        "help_s": round(start_s["--help"], 3),
        "import_s": round(start_s["import glassformer"], 3),
    }
    print(record, file=sys.stderr)
    save("footprint", record, "python -m benchmarks.footprint")


if __name__ == "__main__":
    main()
