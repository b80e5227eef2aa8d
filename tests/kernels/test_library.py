"""Which implementation is used, and why."""

import pytest

from glassformer.errors import ConfigError
from glassformer.kernels import library
from glassformer.kernels.build import FOLDER as BUILT
from glassformer.recording.precision import quantized
from tests.runtime.models import model_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which the library is looked for, with no library yet."""
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.delenv(library.VARIABLE, raising=False)
    library.load.cache_clear()
    yield tmp_path
    library.load.cache_clear()


def test_without_a_library_pytorch_computes(folder):
    assert library.load() == (None, "PyTorch, because the package was installed without a C compiler")


def test_a_damaged_library_is_not_used(folder):
    (folder / library.LIBRARY).write_bytes(b"\x7fELF damaged")
    kernels, reason = library.load()
    assert kernels is None
    assert "cannot be used" in reason
    assert library.LIBRARY in reason


def test_a_library_that_the_system_does_not_name_is_named(folder, monkeypatch):
    """As on Windows."""

    def refuse(path):
        raise OSError("[WinError 193] %1 is not a valid Win32 application")

    (folder / library.LIBRARY).write_bytes(b"\x7fELF damaged")
    monkeypatch.setattr(library, "Kernels", refuse)
    assert f"{folder / library.LIBRARY} cannot be used: [WinError 193]" in library.load()[1]


@pytest.mark.skipif(not (library.FOLDER / library.LIBRARY).exists(), reason="no C compiler")
def test_a_library_of_other_sources_is_not_used(folder, monkeypatch):
    (folder / library.LIBRARY).write_bytes((BUILT / library.LIBRARY).read_bytes())
    assert library.load()[0] is not None
    library.load.cache_clear()
    monkeypatch.setattr(library, "source_hash", lambda: "another")
    kernels, reason = library.load()
    assert kernels is None
    assert "was built from other sources; install the package again" in reason


def test_the_environment_selects_an_implementation(folder, monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "none")
    assert library.load() == (None, "PyTorch, because GLASSFORMER_KERNELS=none")


@pytest.mark.skipif(not (library.FOLDER / library.LIBRARY).exists(), reason="no C compiler")
def test_an_unknown_instruction_set_is_an_error_that_lists_those_that_there_are(monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "avx1024")
    library.load.cache_clear()
    with pytest.raises(ConfigError, match=r"avx1024: not available here. Choose from: .*plain, none"):
        library.load()
    library.load.cache_clear()


def test_int8_without_the_library_warns(folder):
    with pytest.warns(UserWarning, match="int8 is slow here: it is computed by PyTorch, because"):
        quantized(model_of("transformer"))
