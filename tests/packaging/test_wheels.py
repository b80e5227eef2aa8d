"""The wheels: what they contain, for which processor, that the same sources give the same bytes, and that one works.

By default, two are built, and the sources are compiled for Windows; with WHEELS=FOLDER, all that are in a folder are
tested (`make wheels`): the C library of Windows takes the linker more than a minute.
"""

import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from glassformer.kernels.build import FLAGS, TARGETS
from glassformer.kernels.build import FOLDER as SOURCES
from tests.journeys.conftest import ENVIRONMENT
from tests.journeys.test_without_torch import BLOCK

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # compilers for three platforms, on a machine that is busy

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


def built(folder: Path, *platforms: str, root: Path = ROOT) -> Path:
    command = [sys.executable, root / "packaging" / "wheels.py", folder, *platforms]
    subprocess.run(command, check=True, capture_output=True, env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": "1700000000"})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    if "WHEELS" in os.environ:
        return ROOT / os.environ["WHEELS"]
    return built(tmp_path_factory.mktemp("wheels"), "manylinux_2_17_x86_64", "macosx_11_0_arm64")


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


@pytest.mark.parametrize("source", ["library.c", "parallel.c", "program.c", "threads.c", "training.c"])
def test_the_kernels_compile_for_windows(source, tmp_path):
    target = TARGETS["win_amd64"][0]
    options = [*FLAGS.split(), "-Werror", "-DSUFFIX=plain", "-DVARIANTS(X)=X(plain, 1)", '-DSOURCE_HASH=""', "-O1"]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *options]
    subprocess.run([*command, "-c", SOURCES / source, "-o", tmp_path / "object"], check=True)


def sections_of(library: bytes) -> dict[str, int]:
    """Names and sizes of the sections of a PE file."""
    (header,) = struct.unpack_from("<I", library, 0x3C)
    n_sections, size_of_optional = struct.unpack_from("<H12xH", library, header + 6)
    rows = (struct.unpack_from("<8sI28x", library, header + 24 + size_of_optional + 40 * i) for i in range(n_sections))
    return {name.rstrip(b"\0").decode(): size for name, size in rows}


def test_the_kernels_need_only_the_c_library_of_the_system(wheels):
    for platform, path in wheels.items():
        with zipfile.ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if "/libkernels." in name)
            library = archive.read(name)
        needed = set(re.findall(rb"\0((?:/usr/lib/)?[\w.-]+\.(?:so(?:\.\d+)?|dll|dylib))(?=\0)", library))
        needed -= {b"libkernels.c.dll", b"libkernels.c.dylib"}
        system = {
            "manylinux": rb"(libc|libm|libpthread|libdl|ld-linux-x86-64)\.so\.\d",
            "musllinux": rb"libc\.so",
            "macosx": rb"/usr/lib/libSystem\.B\.dylib",
            "win": rb"api-ms-win-crt-[\w-]+\.dll|KERNEL32\.dll|kernelbase\.dll",
        }[platform.partition("_")[0]]
        assert needed
        assert all(re.fullmatch(system, file) for file in needed), (platform, needed)
        if platform.startswith("win"):  # Windows copies it for each thread of the process
            assert sections_of(library).get(".tls", 0) < 1000


def test_each_wheel_has_webassembly_licences_and_a_bill_of_materials_and_nothing_that_should_not_be_there(wheels):
    for platform, path in wheels.items():
        assert path.stat().st_size < 3e6
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (materials,) = (json.loads(archive.read(name)) for name in names if name.endswith(".cdx.json"))
            digests = {name.rpartition("/")[2]: sha256(archive.read(name)).hexdigest() for name in names}
        assert sum(name.endswith(".wasm") for name in names) == 3
        assert sum("/licenses/" in name for name in names) == 6
        parts = {part["name"]: part for part in materials["components"]}
        compiled = {name.rpartition("/")[2] for name in names if name.endswith(".wasm") or "/libkernels." in name}
        linked = {"compiler-rt", "wasi-libc"} | ({"mingw-w64", "winpthreads"} if platform == "win_amd64" else set())
        assert parts.keys() == {*compiled, *linked, "d3", "plot"}
        assert all(parts[name]["hashes"][0]["content"] == digests[name] for name in compiled)
        git = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True)
        sources = {name.removeprefix("src/") for name in git.stdout.split()}
        others = {name.rpartition("/")[2] for name in {*names} - sources if not name.startswith("glassformer-")}
        assert others == compiled
        assert sources <= {*names}


def test_the_same_sources_give_the_same_bytes(folder, wheels, tmp_path):
    if "WHEELS" in os.environ:
        pytest.skip("compares wheels that the test has built")
    (again,) = built(tmp_path, "macosx_11_0_arm64").glob("*.whl")
    assert again.read_bytes() == wheels["macosx_11_0_arm64"].read_bytes()
    (source,) = tmp_path.glob("*.tar.gz")
    assert source.read_bytes() == (folder / source.name).read_bytes()


HIDE_ZIGLANG = """
import sys
from importlib.machinery import PathFinder

class WithoutZiglang:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name == "ziglang" else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutZiglang
"""


@pytest.fixture
def unpacked(folder, tmp_path) -> Path:
    """Folder with the files of the source distribution."""
    return extracted(folder, tmp_path / "source")


def extracted(folder: Path, to: Path) -> Path:
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(to, filter="data")
    return to / path.name.removesuffix(".tar.gz")


def test_the_source_distribution_gives_the_same_wheel(folder, wheels, tmp_path):
    if "WHEELS" in os.environ:
        pytest.skip("compares wheels that the test has built")
    # The compiler keeps what it has made by the path of the sources.
    sources = Path(os.environ["ZIG_GLOBAL_CACHE_DIR"], "source-distribution")
    sources.mkdir(parents=True, exist_ok=True)
    with open(sources / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may be here
        for old in sources.glob("glassformer-*"):
            shutil.rmtree(old)
        (again,) = built(tmp_path, "macosx_11_0_arm64", root=extracted(folder, sources)).glob("*.whl")
    assert again.read_bytes() == wheels["macosx_11_0_arm64"].read_bytes()


def test_the_source_distribution_has_the_site_if_it_was_built(unpacked, tmp_path):
    page = Path("build", "website", "site", "index.html")
    assert (unpacked / page).exists() or "WHEELS" not in os.environ
    (unpacked / page).parent.mkdir(parents=True, exist_ok=True)
    (unpacked / page).write_text("a site")
    (tmp_path / "sitecustomize.py").write_text(HIDE_ZIGLANG)  # nothing is compiled
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path / "again"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path)}
    subprocess.run(command, cwd=unpacked, check=True, capture_output=True, env=environment)
    (path,) = (tmp_path / "again").iterdir()
    with tarfile.open(path) as archive:
        assert archive.extractfile(f"{unpacked.name}/{page.as_posix()}").read() == b"a site"


@pytest.mark.parametrize("compiler", [True, False])
def test_a_wheel_from_the_source_distribution_has_webassembly_and_what_the_compiler_of_the_machine_makes(
    unpacked, tmp_path, compiler
):
    (tmp_path / "sitecustomize.py").write_text(HIDE_ZIGLANG)
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path), "CFLAGS": "-O0"}  # quickly
    environment |= {} if compiler else {"PATH": "/nonexistent"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=unpacked, check=True, capture_output=True, env=environment)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sum(name.endswith(".wasm") for name in names) == 3
    assert sum("/libkernels." in name for name in names) == compiler
    assert wheel.stem.endswith("-none-any") == (not compiler)


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
