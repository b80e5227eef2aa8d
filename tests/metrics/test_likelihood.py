"""metrics.likelihood: perplexity and bits per byte."""

import math

import numpy as np
import pytest

from glassformer.metrics.likelihood import (
    bits_per_byte,
    bits_per_byte_from,
    likelihood_statistics,
    perplexity,
    perplexity_from,
)


def test_a_fair_die_has_the_perplexity_of_its_faces():
    assert perplexity(-7 * math.log(1 / 6), 7) == pytest.approx(6)


def test_uniform_bytes_need_8_bits_per_byte_for_any_number_of_tokens():
    text = "Äpfel"
    assert bits_per_byte(len(text.encode()) * math.log(256), len(text.encode())) == pytest.approx(8)


def test_perplexity_overflows_to_infinity_without_a_warning():
    assert perplexity(1e6, 7) == math.inf


@pytest.mark.parametrize("metric", [perplexity, bits_per_byte])
def test_an_empty_text_raises_value_error(metric):
    with pytest.raises(ValueError, match=r"0 (tokens|bytes): expected at least 1"):
        metric(1.0, 0)


def test_statistics_weight_texts_by_their_length():
    sums = likelihood_statistics([3.0, 5.0], [2, 11], [7, 13]).sum(0)
    assert perplexity_from(sums) == pytest.approx(perplexity(8, 13))
    assert bits_per_byte_from(np.stack([sums, sums]))[1] == pytest.approx(bits_per_byte(8, 20))
