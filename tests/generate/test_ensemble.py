"""An ensemble against the mean of the probabilities, by enumeration of all outputs."""

import math
from itertools import product

import numpy as np
import pytest

from glassformer.decode_config import DecodeConfig
from glassformer.generate.ensemble import Ensemble
from glassformer.generate.protocol import ComputesLogits
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from tests.generate.test_search import BANNED, EOS, VOCAB, WORDS, Table, sources

LIMIT = 4


class Member(Table):
    pad_to_multiple_of = 1


def log_probability(tables, source, output):
    """Log-probability of an output: at each step the logarithm of the mean of the probabilities."""
    total, prefix = 0.0, ()
    for token in output:
        probabilities = [math.exp(table.row(source, prefix).log_softmax(-1)[token].item()) for table in tables]
        allowed = [
            sum(math.exp(table.row(source, prefix).log_softmax(-1)[t].item()) for table in tables)
            for t in range(VOCAB)
            if t not in BANNED
        ]
        total += math.log(sum(probabilities) / sum(allowed))
        prefix = (*prefix, token)
    return total


@pytest.mark.parametrize("n_members", [1, 2, 3])
def test_a_wide_beam_finds_the_best_output_of_the_mean_of_the_probabilities(n_members):
    tables = [Member(seed) for seed in range(n_members)]
    outputs = [(*words, EOS) for n in range(LIMIT) for words in product(WORDS, repeat=n)]
    n_checked = 0
    for source in range(5):
        scores = {output: log_probability(tables, source, output) for output in outputs}
        rules = search_rules(BANNED, DecodeConfig(), eos_id=EOS)
        ((best, *_),) = beam_search(
            Ensemble(tables), sources(source), [LIMIT], eos_id=EOS, rules=rules, beam=81, alpha=0.0
        )
        if best.ids[-1] != EOS:
            continue  # a truncated output is not among those enumerated
        n_checked += 1
        assert tuple(best.ids) == max(scores, key=scores.get)
        assert best.score == pytest.approx(scores[tuple(best.ids)], abs=1e-4)
    assert n_checked >= 3


def test_the_logits_are_logarithms_of_probabilities():
    ensemble = Ensemble([Member(0), Member(1)])
    state, ids = ensemble.start(sources(1, 2), 2)
    logits = ensemble.logits(ids, state)
    np.testing.assert_allclose(np.exp(logits).sum(-1), 1, rtol=1e-5)
    state.select(np.array([3, 3, 0, 1]))
    assert [own.sources for own in state.states] == [[2, 2, 1, 1]] * 2


def test_a_token_that_no_member_allows_has_no_probability():
    class Narrow(Member):
        def logits(self, ids, state):
            return np.where(np.arange(self.vocab_size) == EOS, -np.inf, super().logits(ids, state))

    ensemble = Ensemble([Narrow(0), Narrow(1)])
    state, ids = ensemble.start(sources(1), 1)
    logits = ensemble.logits(ids, state)
    assert np.flatnonzero(logits == -np.inf).tolist() == [EOS]
    assert np.exp(logits).sum() == pytest.approx(1)


@pytest.mark.parametrize("banned", [(), BANNED])
def test_the_best_tokens_are_those_of_the_logits(banned):
    ensemble = Ensemble([Member(0), Member(1), Member(2)])
    (state, ids), (other, _) = (ensemble.start(sources(*range(1, 6)), 9) for _ in range(2))  # more rows than one part
    ((log_probs, tokens),) = ensemble.next_tokens([(ids, state)], 3, banned)
    ((expected, best),) = ComputesLogits.next_tokens(ensemble, [(ids, other)], 3, banned)
    assert tokens.tolist() == best.tolist()
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)
