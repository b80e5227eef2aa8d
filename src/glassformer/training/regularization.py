"""Dropout probability by the number of epochs: a model overfits only to text that it is trained on many times."""

import math

from glassformer.models.base import Model
from glassformer.nn.dropout import Dropout

FEW_EPOCHS = 2.5
PER_DOUBLING = 0.05
LEAST, MOST = 0.02, 0.3
"""The probability is LEAST for FEW_EPOCHS epochs, and PER_DOUBLING more for twice as many. Chosen on the dev set of
Multi30k (docs/results.md), whose published recipe has 0.3 for 140 epochs."""

STEP = 0.02
"""The probability changes by at least so much: compiled steps and CUDA graphs contain it."""

KNOWN_AFTER = 0.02
"""Of a training of so many minutes, the number of epochs is known after this fraction."""


def dropout_for(n_epochs: float) -> float:
    """Dropout probability for a training of so many passes over its text."""
    return min(MOST, LEAST + PER_DOUBLING * max(0.0, math.log2(max(n_epochs, 1e-9) / FEW_EPOCHS)))


def set_dropout(model: Model, p: float) -> None:
    """Set the dropout probability of a model, which its configuration then has."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = p
    model.config = model.config.model_copy(update={"dropout": p})
