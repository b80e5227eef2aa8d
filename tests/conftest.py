"""Shapes in signatures are checked in every test: the hook must be there before the modules are."""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from jaxtyping import install_import_hook

install_import_hook(
    ["glassformer.nn", "glassformer.models", "glassformer.objectives", "glassformer.generate", "glassformer.data"],
    "beartype.beartype",
)

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every test, whichever others run."""
    torch.manual_seed(0)
