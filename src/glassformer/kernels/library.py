"""Loads the C library of the kernels and selects the instruction set."""

import ctypes
import os
import warnings
from functools import cache
from pathlib import Path

from glassformer.errors import ConfigError
from glassformer.kernels.build import FOLDER, LIBRARY, source_hash

VARIABLE = "GLASSFORMER_KERNELS"
"""Environment variable that selects an instruction set, or `none` for the implementation in PyTorch."""


class Kernels:
    """The loaded library with the instruction set that it uses."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            OSError: the library cannot be loaded, or was built from other sources.
        """
        self.library = ctypes.CDLL(str(path))
        for name in ("kernels_variant", "kernels_source_hash"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.library.kernels_run.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.library.kernels_run.restype = None
        self.library.kernels_train.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
        self.library.kernels_train.restype = None
        if self.library.kernels_source_hash().decode() != source_hash():
            raise OSError(f"{path} was built from other sources; install the package again")
        self.supported: dict[str, int] = {}
        """Names of the instruction sets that the library and the processor have, the fastest first -> index."""
        index = 0
        while name := self.library.kernels_variant(index):
            if self.library.kernels_is_supported(index):
                self.supported[name.decode()] = index
            index += 1
        self.variant = next(iter(self.supported))

    def select(self, variant: str) -> None:
        """Use another instruction set than the fastest.

        Raises:
            ConfigError: the processor or the library does not have it.
        """
        if variant not in self.supported:
            raise ConfigError(
                f"{VARIABLE}={variant}: not available here. Choose from: {', '.join([*self.supported, 'none'])}."
            )
        self.variant = variant

    @property
    def is_plain(self) -> bool:
        """Whether only the basic instruction set of the processor is in use. Its kernels are slower than PyTorch's."""
        return self.variant == "plain"

    def run(self, program: ctypes.Structure, rows: ctypes.Structure, n_threads: int) -> None:
        """Execute a program."""
        self.library.kernels_run(
            self.supported[self.variant], n_threads, ctypes.addressof(program), ctypes.addressof(rows)
        )


@cache
def load() -> tuple[Kernels | None, str]:
    """The library, or None where PyTorch is used instead; and the reason in words.

    Raises:
        ConfigError: the environment selects an instruction set that is not available.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "none":
        return None, f"PyTorch, because {VARIABLE}=none"
    path = FOLDER / LIBRARY
    if not path.exists():
        return None, "PyTorch, because the package was installed without a C compiler"
    try:
        kernels = Kernels(path)
    except (OSError, AttributeError) as error:
        return None, f"PyTorch, because {path} cannot be used: {error}"
    if wanted:
        kernels.select(wanted)
    return kernels, f"C library, instruction set {kernels.variant}" + (
        f", because {VARIABLE}={wanted}" if wanted else ""
    )


def load_or_warn() -> Kernels | None:
    """The library. Where it is not used, a warning that int8 is slow."""
    kernels, reason = load()
    if kernels is None:
        warnings.warn(f"int8 is slow here: it is computed by {reason}", stacklevel=4)
    return kernels


def implementation() -> str:
    """Name of the instruction set of the library; "none" where PyTorch is used instead."""
    kernels, _ = load()
    return kernels.variant if kernels else "none"
