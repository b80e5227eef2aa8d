"""The wheels: what they contain, for which processor, that the same sources give the same bytes, and that one works.

By default, two are built; with WHEELS=FOLDER, all that are in a folder are tested (`make wheels`).
"""

import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from glassformer.kernels.build import TARGETS
from tests.journeys.conftest import ENVIRONMENT
from tests.journeys.test_without_torch import BLOCK

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

PROCESSORS = {"x86_64": (0x3E, 0x01000007, 0x8664), "aarch64": (0xB7, 0x0100000C, 0xAA64)}
"""Numbers of a processor in ELF, Mach-O and PE files."""


def processor_of(library: bytes) -> tuple[str, int]:
    """Format of a library and the number of its processor."""
    if library.startswith(b"\x7fELF"):
        return "linux", struct.unpack_from("<H", library, 18)[0]
    if library.startswith(b"\xcf\xfa\xed\xfe"):
        return "darwin", struct.unpack_from("<I", library, 4)[0]
    assert library.startswith(b"MZ")
    (header,) = struct.unpack_from("<I", library, 0x3C)
    assert library[header : header + 4] == b"PE\0\0"
    return "win32", struct.unpack_from("<H", library, header + 4)[0]


def built(folder: Path, *platforms: str) -> Path:
    command = [sys.executable, ROOT / "packaging" / "wheels.py", folder, *platforms]
    subprocess.run(command, check=True, capture_output=True, env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": "1700000000"})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    if "WHEELS" in os.environ:
        return ROOT / os.environ["WHEELS"]
    return built(tmp_path_factory.mktemp("wheels"), "manylinux_2_17_x86_64", "musllinux_1_1_aarch64")


@pytest.fixture(scope="module")
def wheels(folder) -> dict[str, Path]:
    """Platform -> wheel."""
    return {path.stem.split("-none-")[1]: path for path in folder.glob("*.whl")}


def test_each_wheel_has_the_kernels_of_its_platform(wheels):
    assert wheels
    for platform, path in wheels.items():
        _, machine, system = TARGETS[platform]
        with zipfile.ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if "/libkernels." in name)
            library = archive.read(name)
        numbers = PROCESSORS["aarch64" if machine in ("aarch64", "arm64") else "x86_64"]
        assert processor_of(library) == (system, numbers[("linux", "darwin", "win32").index(system)])
        assert all(minor <= 17 for minor in map(int, re.findall(rb"GLIBC_2\.(\d+)", library)))
        for mine in (str(ROOT), str(Path.home() / "."), "/tmp/"):
            assert mine.encode() not in library


def test_each_wheel_has_webassembly_licences_and_a_bill_of_materials_and_nothing_that_should_not_be_there(wheels):
    for platform, path in wheels.items():
        assert path.stat().st_size < 3e6
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (materials,) = (json.loads(archive.read(name)) for name in names if name.endswith(".cdx.json"))
        assert sum(name.endswith(".wasm") for name in names) == 3
        assert sum("/licenses/" in name for name in names) == 4
        parts = {part["name"] for part in materials["components"]}
        assert parts == {"compiler-rt", "wasi-libc"} | ({"mingw-w64"} if platform == "win_amd64" else set())
        assert not [name for name in names if not name.startswith(("glassformer/", "glassformer-"))]


def test_the_same_sources_give_the_same_bytes(folder, wheels, tmp_path):
    if "WHEELS" in os.environ:
        pytest.skip("compares wheels that the test has built")
    (again,) = built(tmp_path, "musllinux_1_1_aarch64").glob("*.whl")
    assert again.read_bytes() == wheels["musllinux_1_1_aarch64"].read_bytes()
    (source,) = tmp_path.glob("*.tar.gz")
    assert source.read_bytes() == (folder / source.name).read_bytes()


def test_descriptions_are_valid(folder):
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir()], capture_output=True)
    assert done.returncode == 0, done.stdout


def test_the_wheel_translates_without_torch(wheels, model, tmp_path):
    installed = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", installed]
    subprocess.run([*pip, wheels["manylinux_2_17_x86_64"]], check=True, capture_output=True)
    (installed / "sitecustomize.py").write_text(BLOCK)
    environment = {**ENVIRONMENT, "PYTHONPATH": str(installed)}

    def run(*command):
        return subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            input="The cat slept.\n",
            capture_output=True,
            text=True,
        )

    where = run(
        "-c", "import glassformer, glassformer.kernels.library as k; print(glassformer.__file__, k.implementation())"
    )
    assert where.stdout.startswith(str(installed)), where.stderr
    assert "none" not in where.stdout
    done = run("-m", "glassformer", "translate", model, "--max-length", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
