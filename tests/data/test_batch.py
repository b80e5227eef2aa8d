import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data.batch import BatchSampler, batch_by_tokens, make_batch, pad
from glassformer.data.dataset import IDS, Dataset

PAD, BOS, EOS = 0, 1, 2
N_PAIRS, BATCH_TOKENS = 997, 211

LENGTHS = st.lists(st.integers(1, 53), min_size=1, max_size=97).map(np.array)
quick = settings(deadline=None, max_examples=50)


def realistic_lengths(n: int) -> np.ndarray:
    """Tokens of the longer side of a pair, as in news text: log-normal, about 27 on average."""
    return np.random.default_rng(5).lognormal(3.1, 0.6, n).astype(np.int64).clip(2, 256)


def sampler(seed: int = 3, batch_tokens: int = BATCH_TOKENS) -> BatchSampler:
    return BatchSampler(np.random.default_rng(7).integers(1, 53, N_PAIRS), batch_tokens, seed)


def epoch(s: BatchSampler) -> list[list[int]]:
    return [next(s).tolist() for _ in range(len(s.batches))]


@given(LENGTHS, st.integers(1, 211), st.integers(0, (1 << 63) - 1))
@quick
def test_every_pair_comes_exactly_once_an_epoch(lengths, batch_tokens, seed):
    s = BatchSampler(lengths, batch_tokens, seed)
    for _ in range(3):
        assert sorted(i for batch in epoch(s) for i in batch) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 211), st.integers(0, (1 << 63) - 1))
@quick
def test_no_batch_exceeds_the_budget_but_a_single_pair(lengths, batch_tokens, seed):
    for batch in epoch(BatchSampler(lengths, batch_tokens, seed)):
        assert len(batch) == 1 or lengths[batch].max() * len(batch) <= batch_tokens


@given(LENGTHS, st.integers(1, 211))
@quick
def test_items_in_any_order_are_cut_within_the_budget(lengths, batch_tokens):
    batches = batch_by_tokens(np.arange(len(lengths)), lengths, batch_tokens)
    assert np.concatenate(batches).tolist() == list(range(len(lengths)))
    assert all(len(batch) == 1 or lengths[batch].max() * len(batch) <= batch_tokens for batch in batches)


@given(LENGTHS, st.integers(1, 211))
@quick
def test_cutting_leaves_no_room_for_the_next_item(lengths, batch_tokens):
    batches = batch_by_tokens(np.arange(len(lengths)), lengths, batch_tokens)
    for batch, following in zip(batches, batches[1:], strict=False):
        longest = max(lengths[batch].max(), lengths[following[0]])
        assert longest * (len(batch) + 1) > batch_tokens


@given(st.integers(0, 400))
@quick
def test_resumed_is_unbroken_wherever_it_was_broken_off(position):
    unbroken = sampler(batch_tokens=499)
    for _ in range(position):
        next(unbroken)
    resumed = sampler(seed=11, batch_tokens=499)
    resumed.load_state_dict(unbroken.state_dict())
    for _ in range(2 * len(unbroken.batches)):
        assert next(resumed).tolist() == next(unbroken).tolist()


def test_state_is_plain_integers_that_json_can_hold():
    s = sampler()
    next(s)
    assert s.state_dict() == {"seed": 3, "epoch": 0, "position": 1}
    assert {type(value) for value in s.state_dict().values()} == {int}


def test_the_same_seed_gives_the_same_batches():
    assert epoch(sampler(seed=5)) == epoch(sampler(seed=5))


def test_another_seed_gives_other_batches():
    assert sorted(epoch(sampler(seed=5))) != sorted(epoch(sampler(seed=6)))


def test_another_epoch_has_other_batches_in_another_order():
    s = sampler()
    first, second = epoch(s), epoch(s)
    assert first != second
    assert sorted(first) != sorted(second)


def test_batches_do_not_come_sorted_by_length():
    s = sampler()
    longest = [s.lengths[batch].max() for batch in epoch(s)]
    assert abs(np.corrcoef(longest, range(len(longest)))[0, 1]) < 0.3


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


def test_little_of_a_batch_is_padding_at_realistic_lengths():
    lengths = realistic_lengths(20_011)
    batches = epoch(BatchSampler(lengths, 2500, 3))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert 1 - lengths.sum() / padded < 0.02


def test_most_of_the_budget_is_used_at_realistic_lengths():
    lengths = realistic_lengths(20_011)
    batches = epoch(BatchSampler(lengths, 2500, 3))
    assert lengths.sum() / len(batches) > 0.9 * 2500


def test_source_ends_and_target_begins_and_ends():
    batch = make_batch([([5, 6, 7], [8]), ([9], [4, 3])], pad_id=PAD, bos_id=BOS, eos_id=EOS)
    assert batch.src.tolist() == [[5, 6, 7, EOS], [9, EOS, PAD, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 8, PAD], [BOS, 4, 3]]
    assert batch.tgt_out.tolist() == [[8, EOS, PAD], [4, 3, EOS]]


def test_tokens_of_a_batch_are_those_to_predict():
    batch = make_batch([([5, 6, 7], [8]), ([9], []), ([4], [4, 3])], pad_id=PAD, bos_id=BOS, eos_id=EOS)
    assert batch.n_targets == int((batch.tgt_out != PAD).sum()) == 6


def test_padding_stands_behind():
    assert pad([[5], [6, 7, 8]], PAD).tolist() == [[5, PAD, PAD], [6, 7, 8]]


def test_a_pair_is_as_long_as_its_longer_side_and_one_special_token(tmp_path):
    dataset = Dataset.write(tmp_path, [([5, 6, 7], [8]), ([9], [4, 3, 7, 7])], {"src": IDS, "tgt": IDS}, 31)
    assert dataset.lengths.tolist() == [4, 5]


@pytest.mark.parametrize("batch_tokens", [53, 211])
def test_the_budget_holds_for_the_padded_batch_itself(tmp_path, batch_tokens):
    rng = np.random.default_rng(11)
    sides = [rng.integers(3, 31, rng.integers(1, 23)).tolist() for _ in range(2 * 97)]
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    s = BatchSampler(Dataset.write(tmp_path, pairs, {"src": IDS, "tgt": IDS}, 31).lengths, batch_tokens, 3)
    for rows in [next(s) for _ in range(len(s.batches))]:
        batch = make_batch([pairs[i] for i in rows], pad_id=PAD, bos_id=BOS, eos_id=EOS)
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= batch_tokens
