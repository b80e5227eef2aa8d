from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import CorpusError
from glassformer.learning import held_out
from glassformer.learning.held_out import LastExamples, SmallestHashes


def selected(selection, hashes, cuts):
    """Indices that are selected from hashes added in parts."""
    for start, end in pairwise([0, *cuts, len(hashes)]):
        selection.add(np.array(hashes[start:end], np.uint64))
    return selection.indices("corpus").tolist()


HASHES = st.integers(2, 211).flatmap(lambda n: st.lists(st.integers(0, n), min_size=2, max_size=307))


@given(HASHES, st.lists(st.integers(0, 307), max_size=7).map(sorted))
@settings(max_examples=200)
@pytest.mark.parametrize("max_held_out", [3, 1000])
def test_a_twentieth_of_the_distinct_keys_with_the_smallest_hashes_is_held_out_up_to_a_number_of_examples(
    max_held_out, hashes, cuts
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "MAX_HELD_OUT", max_held_out)
        distinct = sorted(set(hashes))
        if len(distinct) < 2:
            with pytest.raises(CorpusError, match="only one distinct example"):
                selected(SmallestHashes(), hashes, cuts)
            return
        chosen = distinct[: min(max_held_out, max(1, len(distinct) // 20))]
        while len(chosen) > 1 and sum(value in chosen for value in hashes) > max_held_out:
            del chosen[-1]
        expected = [i for i, value in enumerate(hashes) if value in chosen]
        assert selected(SmallestHashes(), hashes, [min(cut, len(hashes)) for cut in cuts]) == expected


def test_hashes_of_all_64_bits_are_compared_as_unsigned_numbers():
    hashes = [(1 << 64) - 1, 1 << 63, 5, 7, *range(1 << 62, (1 << 62) + 37)]
    assert selected(SmallestHashes(), hashes, [3]) == [2, 3]


def test_memory_does_not_grow_with_the_number_of_distinct_keys():
    selection = SmallestHashes()
    for _ in range(30):
        selection.add(np.random.default_rng(selection.n_examples).integers(0, 1 << 63, 9973, dtype=np.uint64))
    assert len(selection.distinct) == held_out.EVERY * held_out.MAX_HELD_OUT
    assert len(selection.candidates) == len(selection.candidate_indices) == held_out.MAX_HELD_OUT


@pytest.mark.parametrize(
    ("n", "expected"), [(2, [1]), (39, [38]), (41, [39, 40]), (100_000, list(range(99_000, 100_000)))]
)
def test_the_last_twentieth_of_documents_is_held_out_and_at_most_a_thousand(n, expected):
    assert selected(LastExamples(), list(range(n)), [n // 3]) == expected


def test_one_document_is_too_short():
    with pytest.raises(CorpusError, match="too short"):
        selected(LastExamples(), [5], [])
