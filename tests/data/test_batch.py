import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data.batch import pad
from glassformer.data.dataset import IDS, Dataset
from glassformer.data.pairs import make_batch
from glassformer.data.sampler import BatchSampler, batch_by_tokens, length_buckets

PAD, BOS, EOS = 0, 1, 2
N_PAIRS, BATCH_TOKENS = 997, 211

LENGTHS = st.lists(st.integers(1, 53), min_size=1, max_size=97).map(np.array)
quick = settings(max_examples=50)


def realistic_lengths(n: int) -> np.ndarray:
    """Tokens of the longer side of a pair, as in news text: log-normal, about 27 on average."""
    return np.random.default_rng(5).lognormal(3.1, 0.6, n).astype(np.int64).clip(2, 256)


def sampler(seed: int = 3, batch_tokens: int = BATCH_TOKENS) -> BatchSampler:
    return BatchSampler(np.random.default_rng(7).integers(1, 53, N_PAIRS), batch_tokens, seed)


def epoch(s: BatchSampler) -> list[list[int]]:
    return [next(s).tolist() for _ in range(len(s.batches))]


@given(LENGTHS, st.integers(1, 211), st.integers(0, (1 << 63) - 1))
@quick
def test_every_pair_occurs_exactly_once_per_epoch(lengths, batch_tokens, seed):
    s = BatchSampler(lengths, batch_tokens, seed)
    for _ in range(3):
        assert sorted(i for batch in epoch(s) for i in batch) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 211), st.integers(0, (1 << 63) - 1))
@quick
def test_no_batch_exceeds_batch_tokens_except_a_single_pair(lengths, batch_tokens, seed):
    for batch in epoch(BatchSampler(lengths, batch_tokens, seed)):
        assert len(batch) == 1 or lengths[batch].max() * len(batch) <= batch_tokens


@given(LENGTHS, st.integers(1, 211), st.integers(0, 97))
@quick
def test_longest_first_makes_the_number_of_examples_a_function_of_the_length(lengths, batch_tokens, seed):
    lengths = length_buckets(lengths)
    batches = BatchSampler(lengths, batch_tokens, seed, longest_first=True).batches
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    full = [len(batch) == max(1, batch_tokens // lengths[batch].max()) for batch in batches]
    assert full.count(False) <= 1


@given(LENGTHS, st.integers(1, 211))
@quick
def test_items_in_any_order_are_batched_within_batch_tokens(lengths, batch_tokens):
    batches = batch_by_tokens(np.arange(len(lengths)), lengths, batch_tokens)
    assert np.concatenate(batches).tolist() == list(range(len(lengths)))
    assert all(len(batch) == 1 or lengths[batch].max() * len(batch) <= batch_tokens for batch in batches)


def batch_one_by_one(order, lengths, batch_tokens):
    """The definition of `batch_by_tokens`, one example at a time."""
    batches, start, max_length = [], 0, 0
    for end, length in enumerate(lengths[order].tolist()):
        max_length = max(max_length, length)
        if max_length * (end - start + 1) > batch_tokens and end > start:
            batches.append(order[start:end].tolist())
            start, max_length = end, length
    return [*batches, order[start:].tolist()]


@given(LENGTHS, st.integers(1, 499), st.sampled_from(["sorted", "reversed", "random"]), st.integers(1, 53))
@settings(max_examples=300)
def test_batches_are_those_that_are_filled_one_example_at_a_time(lengths, batch_tokens, order, most):
    lengths = np.minimum(lengths, most)  # a small maximum makes long runs of equal length
    indices = np.random.default_rng(len(lengths)).permutation(len(lengths))
    if order != "random":
        indices = np.argsort(lengths, kind="stable")[:: 1 if order == "sorted" else -1]
    batches = batch_by_tokens(indices, lengths, batch_tokens)
    assert [batch.tolist() for batch in batches] == batch_one_by_one(indices, lengths, batch_tokens)


@given(LENGTHS, st.integers(1, 211))
@quick
def test_a_batch_has_no_capacity_for_the_next_item(lengths, batch_tokens):
    batches = batch_by_tokens(np.arange(len(lengths)), lengths, batch_tokens)
    for batch, following in zip(batches, batches[1:], strict=False):
        max_length = max(lengths[batch].max(), lengths[following[0]])
        assert max_length * (len(batch) + 1) > batch_tokens


@given(st.integers(0, 400))
@quick
def test_resuming_at_any_position_gives_the_same_batches(position):
    unbroken = sampler(batch_tokens=499)
    for _ in range(position):
        next(unbroken)
    resumed = sampler(seed=11, batch_tokens=499)
    resumed.load_state_dict(unbroken.state_dict())
    for _ in range(2 * len(unbroken.batches)):
        assert next(resumed).tolist() == next(unbroken).tolist()


@pytest.mark.parametrize("longest", [53, 300, 70_000])
@pytest.mark.parametrize("longest_first", [False, True])
def test_an_epoch_is_sorted_by_length_and_then_by_a_random_number(longest, longest_first):
    lengths = np.random.default_rng(7).integers(1, longest, N_PAIRS)
    s = BatchSampler(lengths, 211, 3, longest_first=longest_first)
    rng = np.random.Generator(np.random.Philox(key=[3, 1]))
    order = np.lexsort((rng.random(N_PAIRS), lengths))
    batches = batch_one_by_one(order[::-1] if longest_first else order, lengths, 211)
    assert [batch.tolist() for batch in s.plan(1)] == [batches[i] for i in rng.permutation(len(batches))]


def test_the_state_consists_of_integers_that_json_can_represent():
    s = sampler()
    next(s)
    assert s.state_dict() == {"seed": 3, "epoch": 0, "position": 1}
    assert {type(value) for value in s.state_dict().values()} == {int}


def test_the_same_seed_gives_the_same_batches():
    assert epoch(sampler(seed=5)) == epoch(sampler(seed=5))


def test_another_seed_gives_different_batches():
    assert sorted(epoch(sampler(seed=5))) != sorted(epoch(sampler(seed=6)))


def test_another_epoch_has_different_batches_in_a_different_order():
    s = sampler()
    first, second = epoch(s), epoch(s)
    assert first != second
    assert sorted(first) != sorted(second)


def test_batches_are_not_sorted_by_length():
    s = sampler()
    max_lengths = [s.lengths[batch].max() for batch in epoch(s)]
    assert abs(np.corrcoef(max_lengths, range(len(max_lengths)))[0, 1]) < 0.3


def test_epochs_done_grows_evenly_over_the_epoch():
    s = sampler()
    n = len(s.batches)
    seen = [s.epochs_done]
    for _ in range(2 * n):
        next(s)
        seen.append(s.epochs_done)
    assert seen[n] == 1
    assert seen[2 * n] == 2
    assert seen == sorted(seen)


def test_batches_have_little_padding_at_realistic_lengths():
    lengths = realistic_lengths(20_011)
    batches = epoch(BatchSampler(lengths, 2500, 3))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert 1 - lengths.sum() / padded < 0.02


def test_most_of_batch_tokens_is_used_at_realistic_lengths():
    lengths = realistic_lengths(20_011)
    batches = epoch(BatchSampler(lengths, 2500, 3))
    assert lengths.sum() / len(batches) > 0.9 * 2500


def test_the_source_gets_an_end_token_and_the_target_start_and_end_tokens():
    batch = make_batch([([5, 6, 7], [8]), ([9], [4, 3])], pad_id=PAD, bos_id=BOS, eos_id=EOS)
    assert batch.src.tolist() == [[5, 6, 7, EOS], [9, EOS, PAD, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 8, PAD], [BOS, 4, 3]]
    assert batch.tgt_out.tolist() == [[8, EOS, PAD], [4, 3, EOS]]


def test_n_targets_is_the_number_of_tokens_to_predict():
    batch = make_batch([([5, 6, 7], [8]), ([9], []), ([4], [4, 3])], pad_id=PAD, bos_id=BOS, eos_id=EOS)
    assert batch.n_targets == int((batch.tgt_out != PAD).sum()) == 6


def test_padding_is_at_the_end():
    assert pad([[5], [6, 7, 8]], PAD).tolist() == [[5, PAD, PAD], [6, 7, 8]]


def test_the_length_of_a_pair_is_its_longer_side_plus_one_special_token(tmp_path):
    dataset = Dataset.write(tmp_path, [([5, 6, 7], [8]), ([9], [4, 3, 7, 7])], {"src": IDS, "tgt": IDS}, 31)
    assert dataset.lengths.tolist() == [4, 5]


@pytest.mark.parametrize("batch_tokens", [53, 211])
def test_the_padded_batch_does_not_exceed_batch_tokens(tmp_path, batch_tokens):
    rng = np.random.default_rng(11)
    sides = [rng.integers(3, 31, rng.integers(1, 23)).tolist() for _ in range(2 * 97)]
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    s = BatchSampler(Dataset.write(tmp_path, pairs, {"src": IDS, "tgt": IDS}, 31).lengths, batch_tokens, 3)
    for rows in [next(s) for _ in range(len(s.batches))]:
        batch = make_batch([pairs[i] for i in rows], pad_id=PAD, bos_id=BOS, eos_id=EOS)
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= batch_tokens
