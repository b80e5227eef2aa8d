"""Devices by name. PyTorch is imported only where there may be another device than the CPU."""

import importlib.util
import platform
from pathlib import Path

from glassformer.errors import ConfigError

DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Files of the drivers of GPUs on Linux: of NVIDIA, AMD, and those of a Windows host."""


class Device(str):
    """Name of a device, such as `cpu` or `cuda:1`; accepted by PyTorch wherever it takes a device."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The name without the number."""
        return self.partition(":")[0]


def may_have_gpu() -> bool:
    """Whether PyTorch, which takes seconds to import, could find another device than the CPU."""
    if platform.system() == "Linux":
        return any(Path(path).exists() for path in DRIVERS)
    return platform.system() != "Darwin"


def pick_device(name: str) -> Device:
    """Device by name; "auto" selects CUDA, else the CPU.

    Raises:
        ConfigError: the device is not available, or not supported.
    """
    if name == "mps":
        raise ConfigError(
            "device 'mps' is not supported: nothing of glassformer has been tested on Apple's GPU.\n"
            "  Leave out --device, or use --device cpu."
        )
    if name == "cpu" or (name == "auto" and not (has_torch() and may_have_gpu())):
        return Device("cpu")
    available = {"cpu": True}
    if has_torch():
        import torch

        available = {"cuda": torch.cuda.is_available(), "cpu": True}
    if name == "auto":
        name = next(device for device, is_available in available.items() if is_available)
    if not available.get(name):
        names = ", ".join(device for device, is_available in available.items() if is_available)
        advice = "" if has_torch() else f"\n  Other devices need PyTorch: {INSTALL_TORCH}"
        raise ConfigError(f"device {name!r} is not available; available: {names}.{advice}")
    return Device(name)


INSTALL_TORCH = 'pip install "glassformer[train]"'
"""The command that installs PyTorch."""


def has_torch() -> bool:
    """Whether PyTorch is installed, and what the models in PyTorch need besides."""
    return missing_package() is None


def missing_package() -> str | None:
    """Name of the first package that models in PyTorch need and that is not installed. None: there are all."""
    for module, name in (("torch", "PyTorch"), ("jaxtyping", "jaxtyping")):
        try:
            if importlib.util.find_spec(module) is None:
                return name
        except (ImportError, ValueError):  # an import hook, or a test, hides it
            return name
    return None


def require_torch(what: str) -> None:
    """Check that PyTorch is installed, and what the models in PyTorch need besides.

    Args:
        what: what needs it, as the beginning of a sentence.

    Raises:
        ConfigError: it is not.
    """
    if name := missing_package():
        raise ConfigError(f"{what} needs {name}, which is not installed.\n  Install it: {INSTALL_TORCH}")
