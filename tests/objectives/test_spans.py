"""Span corruption."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.objectives.denoise import corrupt_spans, random_partition, span_mask

SENTINELS = torch.arange(1000, 1100)


def restore(src: list[int], tgt: list[int]) -> list[int]:
    """Reconstruct the text: replace each sentinel in the source by its span."""
    spans: dict[int, list[int]] = {}
    for token in tgt:
        if token >= 1000:
            spans[token] = []
        else:
            spans[list(spans)[-1]].append(token)
    return [token for place in src for token in (spans[place] if place >= 1000 else [place])]


@given(st.integers(2, 300))
def test_source_and_target_together_contain_the_whole_text(n):
    ids = torch.randint(1000, (n,))
    noise_mask = span_mask(n)
    src, tgt = corrupt_spans(ids, noise_mask, SENTINELS)
    assert restore(src.tolist(), tgt.tolist()) == ids.tolist()
    assert not noise_mask[0]
    assert 1 <= int(noise_mask.sum()) == max(1, min(round(0.15 * n), n - 1))


def test_the_example_of_the_paper():
    """Thank you for inviting me to your party last week, without `for inviting` and `last`."""
    ids = torch.arange(10)
    noise_mask = torch.zeros(10, dtype=torch.bool)
    noise_mask[[2, 3, 8]] = True
    src, tgt = corrupt_spans(ids, noise_mask, SENTINELS)
    assert src.tolist() == [0, 1, 1000, 4, 5, 6, 7, 1001, 9]
    assert tgt.tolist() == [1000, 2, 3, 1001, 8]


def test_the_mean_length_of_spans_is_three_tokens():
    n_out = n_spans = 0
    for _ in range(50):
        noise_mask = span_mask(512)
        n_out += int(noise_mask.sum())
        n_spans += int((noise_mask & ~torch.cat([torch.zeros(1, dtype=torch.bool), noise_mask[:-1]])).sum())
    assert n_out / n_spans == pytest.approx(3, rel=0.05)
    assert n_out / (50 * 512) == pytest.approx(0.15, rel=0.01)


def test_all_partitions_are_equally_likely():
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(3000):
        parts = tuple(random_partition(5, 3).tolist())
        counts[parts] = counts.get(parts, 0) + 1
    assert len(counts) == 6  # 5 = 1+1+3 in all orders, 1+2+2 in all orders
    assert max(counts.values()) - min(counts.values()) < 150


def test_a_text_of_one_token_is_refused():
    with pytest.raises(ValueError, match="span corruption requires at least 2"):
        span_mask(1)
