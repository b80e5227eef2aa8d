import pytest
import torch

from glassformer.objectives.denoise import mask_tokens

ROWS, LENGTH, MASK, N_SPECIAL, VOCAB = 401, 103, 3, 5, 1009
WORDS = torch.arange(N_SPECIAL, VOCAB)


@pytest.fixture
def ids():
    ids = torch.randint(N_SPECIAL, VOCAB, (ROWS, LENGTH))
    ids[:, 0] = 1
    ids[: ROWS // 2, 60:] = 0
    return ids


def test_15_percent_of_the_maskable_tokens_of_each_sequence_are_selected(ids):
    maskable = ids >= N_SPECIAL
    masked, chosen = mask_tokens(ids, maskable, MASK, WORDS)
    assert chosen.sum(1).tolist() == (maskable.sum(1) * 0.15).round().int().tolist()
    assert not (chosen & ~maskable).any()
    assert masked[~chosen].equal(ids[~chosen])


def test_80_percent_of_the_selected_are_masked_10_random_and_10_unchanged(ids):
    masked, chosen = mask_tokens(ids, ids >= N_SPECIAL, MASK, WORDS)
    n = int(chosen.sum())
    masks = float((masked[chosen] == MASK).sum()) / n
    kept = float((masked[chosen] == ids[chosen]).sum()) / n
    # Four standard deviations of a fraction of n.
    assert abs(masks - 0.8) < 4 * (0.8 * 0.2 / n) ** 0.5
    assert abs(kept - 0.1) < 4 * (0.1 * 0.9 / n) ** 0.5 + 1 / len(WORDS)


def test_random_tokens_are_drawn_from_all_random_ids(ids):
    masked, chosen = mask_tokens(ids, ids >= N_SPECIAL, MASK, WORDS)
    others = masked[chosen & (masked != ids) & (masked != MASK)]
    assert others.min() >= N_SPECIAL
    assert others.float().mean().sub(WORDS.float().mean()).abs() < 4 * 291 / len(others) ** 0.5


def test_every_position_is_equally_likely(ids):
    counts = sum(mask_tokens(ids[-100:], ids[-100:] >= N_SPECIAL, MASK, WORDS)[1].sum(0) for _ in range(40))
    fraction = counts[1:] / 4000
    assert (fraction - 0.15).abs().max() < 5 * (0.15 * 0.85 / 4000) ** 0.5


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_short_text_has_one_mask(length):
    ids = torch.full((7, 5), 0)
    ids[:, :length] = 9
    _, chosen = mask_tokens(ids, ids > 0, MASK, WORDS)
    assert chosen.sum(1).tolist() == [1] * 7


def test_a_sequence_without_maskable_tokens_has_no_mask():
    ids = torch.zeros(3, 5, dtype=torch.long)
    masked, chosen = mask_tokens(ids, ids > 0, MASK, WORDS)
    assert not chosen.any()
    assert masked.equal(ids)


def test_masking_is_reproducible_with_torchs_seed(ids):
    runs = []
    for _ in range(2):
        torch.manual_seed(7)
        runs.append(mask_tokens(ids, ids >= N_SPECIAL, MASK, WORDS)[0])
    assert runs[0].equal(runs[1])
    assert not runs[0].equal(mask_tokens(ids, ids >= N_SPECIAL, MASK, WORDS)[0])
