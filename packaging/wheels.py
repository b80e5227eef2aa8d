"""Build the wheels of all platforms and the source distribution, reproducibly: the same commit gives the same bytes.

usage: python packaging/wheels.py FOLDER [PLATFORM ...]

The site is in the source distribution if `make docs` has built it. Its demo was trained on this machine: another
processor can give other bytes.

Kernels are cross-compiled by the package ziglang, of the version that pyproject.toml pins. Needs hatchling and ziglang.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import load_build  # noqa: E402


def commit_time() -> str:
    """Time of the commit in seconds since 1970."""
    git = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main(folder: Path, platforms: list[str]) -> None:
    """Write a wheel for each platform, and the source distribution."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or commit_time()}
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    for platform_tag in platforms:
        subprocess.run(
            [*build, "-t", "wheel"], cwd=ROOT, check=True, env=environment | {"GLASSFORMER_PLATFORM": platform_tag}
        )
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, env=environment)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(load_build(ROOT).TARGETS))
