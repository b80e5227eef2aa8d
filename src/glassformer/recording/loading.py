"""Modules of PyTorch from the files of a folder, and the files of a folder from a module."""

import torch

from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.runtime.stored import StoredModel


def module_of(family: str, stored: StoredModel) -> Model:
    """The module of a family with the weights of a folder, which are copied.

    Raises:
        CheckpointError: they do not fit.
    """
    tensors = {name: torch.tensor(array) for name, array in stored.weights().items()}
    return FAMILIES[family].from_state_dict(stored.config, tensors)
