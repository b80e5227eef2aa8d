"""How probable a text is to a language model: perplexity, bits per byte."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from glassformer.metrics.score import mean_from


def perplexity(nll: float, n_tokens: int) -> float:
    """exp of the mean negative log-likelihood of a token; infinite beyond what a float holds.

    Comparable only between models with the same tokens; for others see `bits_per_byte`.

    Args:
        nll: negative log-likelihood of the text, summed over its tokens, in nats.

    Raises:
        ValueError: no tokens.
    """
    _check(n_tokens, "tokens")
    return float(perplexity_from(np.array([nll, n_tokens, 1.0])))


def bits_per_byte(nll: float, n_bytes: int) -> float:
    """Bits that the model needs for a byte of UTF-8 text, whatever its tokens.

    Args:
        nll: as in `perplexity`.
        n_bytes: of the text itself, `len(text.encode())`.

    Raises:
        ValueError: no bytes.
    """
    _check(n_bytes, "bytes")
    return float(bits_per_byte_from(np.array([nll, 1.0, n_bytes])))


def _check(count: int, what: str) -> None:
    if count < 1:
        raise ValueError(f"{count} {what}: no figure")


def likelihood_statistics(
    nlls: Sequence[float], n_tokens: Sequence[int], n_bytes: Sequence[int]
) -> Float[np.ndarray, "n 3"]:
    """Per text: negative log-likelihood in nats, tokens, bytes."""
    return np.array(list(zip(nlls, n_tokens, n_bytes, strict=True)), dtype=np.float64)


def perplexity_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Perplexity of summed `likelihood_statistics`."""
    with np.errstate(over="ignore"):
        return np.exp(mean_from(sums[..., [0, 1]]))


def bits_per_byte_from(sums: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n"]:
    """Bits per byte of summed `likelihood_statistics`."""
    return mean_from(sums[..., [0, 2]]) / math.log(2)
