"""Wheels that are built from source on a machine of its own: tags and names of files."""

import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook():
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tags_are_those_that_pip_accepts_on_the_machine(hook, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    assert hook.platform_of_machine() == "linux_x86_64"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "macosx-14.6-universal2")
    monkeypatch.setattr(hook, "platform_tags", lambda: iter(["macosx_14_0_arm64", "macosx_14_0_universal2"]))
    assert hook.platform_of_machine() == "macosx_14_0_arm64"


def test_files_are_named_with_slashes_on_windows_too(hook, monkeypatch):
    root = PureWindowsPath("C:/glassformer")
    built = root / "src/glassformer/kernels"
    made = SimpleNamespace(build_web=lambda: [built / "web-simd.wasm"], build=lambda: built / "libkernels.c.dll")
    monkeypatch.setattr(hook, "load_build", lambda root: made)
    monkeypatch.setattr(hook, "Path", lambda path: root)
    monkeypatch.delenv("GLASSFORMER_PLATFORM", raising=False)
    monkeypatch.delenv("GLASSFORMER_KERNELS", raising=False)
    data = {"artifacts": []}
    hook.KernelsHook.initialize(SimpleNamespace(root="", target_name="wheel"), "standard", data)
    folder = "src/glassformer/kernels"
    assert data["artifacts"] == [f"{folder}/web-simd.wasm", f"{folder}/libkernels.c.dll"]
    assert data["pure_python"] is False
