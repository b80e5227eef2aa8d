"""The Windows wheel under Wine: it translates as on Linux.

CPython for Windows is that in the package panda3d: python3X.dll and the extension modules, but no python.exe, which is
compiled here. Its standard library is that of this Python. Wine 8 lacks a function of the C library that NumPy 2 calls,
and a DLL that Rust's standard library does.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.journeys.conftest import ENVIRONMENT
from tests.packaging.test_wheels import built

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
WINE = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine")
pytestmark = [
    pytest.mark.exhaustive,  # downloads 65 MB, and installs Wine's files
    pytest.mark.timeout(1800),
    pytest.mark.skipif(WINE is None, reason="needs wine64"),
]

PROGRAM = """
#include <windows.h>
int wmain(int n, wchar_t **arguments) {
    int (*run)(int, wchar_t **) = (void *)GetProcAddress(LoadLibraryA(PYTHON), "Py_Main");
    return run(n, arguments);
}
"""

RANDOM = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID data, ULONG n);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T n) { return SystemFunction036(data, n); }
"""

ENTRY = "int DllMainCRTStartup(void *library, unsigned reason, void *reserved) { return 1; }"


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--platform", "win_amd64", "--python-version", VERSION]
    subprocess.run([*command, "--only-binary=:all:", "-q"], check=True, capture_output=True)


def compile_c(out: Path, source: str, *options: object) -> None:
    path = out.with_suffix(".c")
    path.write_text(source)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-O1", "-o", out, path]
    subprocess.run([*command, *options], check=True, capture_output=True)


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """python.exe, with glassformer and what it requires."""
    folder = tmp_path_factory.mktemp("windows")
    pip("download", "--no-deps", "panda3d==1.10.16", "-d", folder)
    (package,) = folder.glob("*.whl")
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if name.startswith("deploy_libs/") and not Path(name).name.startswith("api-ms-"):
                (folder / Path(name).name).write_bytes(archive.read(name))
    library = folder / f"python{VERSION.replace('.', '')}.dll"
    compile_c(folder / "python.exe", PROGRAM, "-municode", f'-DPYTHON="{library.name}"')
    compile_c(folder / "bcryptprimitives.dll", RANDOM, "-shared", "-ladvapi32")
    names = {name.decode() for name in re.findall(rb"\0(_?Py\w+)(?=\0)", library.read_bytes())}
    definitions = folder / "python3.def"  # the stable interface: the functions of python3X.dll
    definitions.write_text(
        "LIBRARY python3.dll\nEXPORTS\n" + "".join(f"  {name}={library.stem}.{name}\n" for name in sorted(names))
    )
    compile_c(folder / "python3.dll", ENTRY, definitions, "-shared", "-nostdlib")
    others = shutil.ignore_patterns("site-packages", "test", "lib-dynload", "__pycache__", "config-*")
    shutil.copytree(sysconfig.get_path("stdlib"), folder / "Lib", ignore=others)
    (wheel,) = built(folder / "wheels", "win_amd64").glob("*.whl")
    pip("install", "--target", folder / "Lib" / "site-packages", wheel, "numpy==1.26.4", "colorama")
    return folder / "python.exe"


def test_the_windows_wheel_translates_as_on_linux(python, model, tmp_path):
    text = "The cat slept.\n\nThe <b>dog</b> saw 3 cats — à côté.\n"
    options = ["-m", "glassformer", "translate", model, "--json", "--nbest", "2", "--max-length", "7"]
    environment = {**ENVIRONMENT, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all", "HOME": str(tmp_path)}
    subprocess.run([WINE, "wineboot", "-i"], check=True, capture_output=True, env=environment)

    def run(*command):
        return subprocess.run(command, env=environment, input=text.encode(), capture_output=True)

    system = run(WINE, python, "-c", "import os, glassformer.kernels.library as k; print(os.name, k.implementation())")
    assert system.stdout.startswith(b"nt "), system.stderr
    assert b"none" not in system.stdout
    here, there = run(sys.executable, *options), run(WINE, python, *options)
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert b"\r" not in there.stdout
