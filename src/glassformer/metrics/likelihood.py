"""Perplexity and bits per byte of a language model."""

import math
from collections.abc import Sequence

import numpy as np

from glassformer.metrics.score import mean_from
from glassformer.shapes import Float


def perplexity(nll: float, n_tokens: int) -> float:
    """Perplexity: exp of the mean negative log-likelihood per token; infinity on overflow.

    Comparable only between models with the same tokenizer; otherwise use `bits_per_byte`.

    Args:
        nll: negative log-likelihood of the text, summed over its tokens, in nats.
        n_tokens: number of predicted tokens.

    Raises:
        ValueError: n_tokens < 1.
    """
    _check(n_tokens, "tokens")
    return float(perplexity_from(np.array([nll, n_tokens, 1.0])))


def bits_per_byte(nll: float, n_bytes: int) -> float:
    """Negative log-likelihood in bits per byte of UTF-8 text; comparable between tokenizers.

    Args:
        nll: as in `perplexity`.
        n_bytes: size of the text, `len(text.encode())`.

    Raises:
        ValueError: n_bytes < 1.
    """
    _check(n_bytes, "bytes")
    return float(bits_per_byte_from(np.array([nll, 1.0, n_bytes])))


def _check(count: int, name: str) -> None:
    if count < 1:
        raise ValueError(f"{count} {name}: expected at least 1")


def likelihood_statistics(
    nlls: Sequence[float], n_tokens: Sequence[int], n_bytes: Sequence[int]
) -> Float[np.ndarray, "n 3"]:
    """Per text: negative log-likelihood in nats, number of tokens, number of bytes."""
    return np.array(list(zip(nlls, n_tokens, n_bytes, strict=True)), dtype=np.float64)


def perplexity_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Perplexity from summed `likelihood_statistics`."""
    with np.errstate(over="ignore"):
        return np.exp(mean_from(sums[..., [0, 1]]))


def bits_per_byte_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Bits per byte from summed `likelihood_statistics`."""
    return mean_from(sums[..., [0, 2]]) / math.log(2)
