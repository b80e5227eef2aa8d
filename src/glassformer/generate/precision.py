"""A model in the precision in which it generates text."""

import copy
import sys
from typing import Any

import torch

from glassformer.config import DecodePrecision
from glassformer.errors import ConfigError
from glassformer.kernels.library import load
from glassformer.models.decoding import Decodable
from glassformer.runtime.decoder import CompiledDecoder, verify
from glassformer.runtime.recorder import UnsupportedError


def in_precision(model: Any, precision: DecodePrecision, cache: dict[str, Decodable]) -> Decodable:
    """The model itself in fp32, a copy in bf16, or its programs in int8.

    Args:
        precision: "auto" is fp32.
        cache: where a copy is kept for the next call.

    Raises:
        ConfigError: int8 for a model that is not on a CPU.
    """
    if precision in ("auto", "fp32"):
        decodable: Decodable = model
        return decodable
    if precision not in cache:
        cache[precision] = copy.deepcopy(model).bfloat16() if precision == "bf16" else in_int8(model)
    return cache[precision]


def in_int8(model: Any) -> Decodable:
    """The model's programs in int8. A model that has none is used as it is, and the reason is printed.

    Raises:
        ConfigError: the model is not on a CPU.
    """
    device: torch.device = next(model.parameters()).device
    if device.type != "cpu":
        raise ConfigError(
            f"precision int8 is for CPUs, but the model is on {device}.\n  Use --device cpu, or --precision bf16."
        )
    decodable: Decodable = model
    try:
        verify(model)
        decodable = CompiledDecoder(model, load()[0])
    except UnsupportedError as error:
        print(f"note: this model has no int8 implementation ({error}); fp32 is used.", file=sys.stderr)
    return decodable
