"""The vocabulary shortlist: IBM Model 1 in a plain form, and lists of known translations."""

import random
from collections import defaultdict

import numpy as np
import pytest

from glassformer.errors import CheckpointError
from glassformer.generate import shortlist as shortlist_module
from glassformer.generate.shortlist import Shortlist, expected_counts, parts_of

VOCAB, EOS = 40, 2
DICTIONARY = {source: 20 + (source * 7) % 13 for source in range(3, 16)}


def corpus(n=200, seed=1):
    """Sources of words, and the translations of their words in any order."""
    rng = random.Random(seed)
    sources = [rng.sample(sorted(DICTIONARY), rng.randrange(1, 7)) for _ in range(n)]
    return [(source, rng.sample([DICTIONARY[s] for s in source], len(source))) for source in sources]


def plain_model_1(pairs, n_iterations):
    """Expected counts, as in Brown et al. 1993, section 4.1. Tokens of a line are counted once."""
    probability = defaultdict(lambda: 1.0)
    for _ in range(n_iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            words = [*set(source), VOCAB]
            for t in set(target):
                total = sum(probability[s, t] for s in words)
                for s in words:
                    counts[s, t] += probability[s, t] / total
                    totals[s] += probability[s, t] / total
        probability = defaultdict(float, {(s, t): count / totals[s] for (s, t), count in counts.items()})
    return counts


def test_expected_counts_are_those_of_model_1():
    pairs = corpus(20)
    keys, counts = expected_counts(pairs, VOCAB)
    expected = plain_model_1(pairs, shortlist_module.N_ITERATIONS)
    found = dict(zip(zip(*(x.tolist() for x in np.divmod(keys, VOCAB)), strict=True), counts.tolist(), strict=True))
    assert all(
        found.get(pair, 0.0) == pytest.approx(count, abs=1e-6) for pair, count in expected.items() if count > 0.01
    )
    assert min(found.values()) >= shortlist_module.MIN_COUNT


@pytest.mark.parametrize("max_links", [4_000_000, 100])
def test_the_translation_of_each_word_is_the_first_of_its_list(max_links, monkeypatch):
    monkeypatch.setattr(shortlist_module, "MAX_LINKS", max_links)
    monkeypatch.setattr(shortlist_module, "N_FREQUENT", 0)
    monkeypatch.setattr(shortlist_module, "N_PER_TOKEN", 2)
    done = []
    learned = Shortlist.learn(corpus(), VOCAB, EOS, done.append)
    assert sum(done) == 200
    assert len(done) == 1 if max_links > 100 else len(done) > 20
    for source, target in DICTIONARY.items():
        assert learned.targets[learned.begins[source]] == target
        assert target in learned.tokens([source, EOS])
        assert len(learned.tokens([source, EOS])) <= 4


def test_a_list_contains_frequent_tokens_those_of_the_source_and_the_end():
    learned = Shortlist.learn([*corpus(), ([3], [30] * 500)], VOCAB, EOS)
    tokens = learned.tokens([3, 4, EOS]).tolist()
    assert tokens == sorted(set(tokens))
    assert {EOS, 3, 4, 30} <= set(tokens)
    assert learned.tokens([3, 4, EOS], excluded=(30,)).tolist() == [t for t in tokens if t != 30]


def test_nothing_is_known_of_a_source_with_a_token_that_was_not_seen():
    learned = Shortlist.learn(corpus(), VOCAB, EOS)
    assert learned.tokens([3, 17, EOS]) is None
    assert learned.tokens([EOS]).tolist() == learned.frequent.tolist()


def test_parts_have_at_most_the_maximum_number_of_links(monkeypatch):
    monkeypatch.setattr(shortlist_module, "MAX_LINKS", 50)
    pairs = [*corpus(30), ([3] * 30, [20] * 30), ([], [20]), ([3], [])]
    parts = list(parts_of(pairs))
    assert [pair for part in parts for pair in part] == pairs[:-2]
    assert all(len(part) == 1 or sum((len(s) + 1) * len(t) for s, t in part) <= 50 for part in parts)


def test_a_stored_shortlist_is_read_again_and_a_damaged_one_is_an_error():
    learned = Shortlist.learn(corpus(), VOCAB, EOS)
    tensors = learned.to_tensors()
    assert Shortlist.from_tensors(tensors, VOCAB).tokens([3, 4, EOS]).tolist() == learned.tokens([3, 4, EOS]).tolist()
    for damage in (
        {"targets": tensors["targets"] + VOCAB}, {"targets": tensors["targets"][1:]}, {"frequent": np.zeros(0)},
        {"begins": tensors["begins"][::-1]}, {"begins": tensors["begins"][:0]}, {"other": tensors["begins"]},
    ):  # fmt: skip
        with pytest.raises(CheckpointError, match="damaged"):
            Shortlist.from_tensors({**tensors, **damage}, VOCAB)
    with pytest.raises(CheckpointError, match="another vocabulary"):
        Shortlist.from_tensors(tensors, VOCAB + 1)
