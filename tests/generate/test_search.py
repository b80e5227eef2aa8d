from itertools import product

import numpy as np
import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.generate.policy import length_penalty
from glassformer.generate.protocol import ComputesLogits
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search

PAD, BOS, EOS = 0, 1, 2
WORDS = (3, 4, 5)
VOCAB = 3 + len(WORDS)
BANNED = (PAD, BOS)


class Prefixes:
    """Decoder state that stores the prefixes of the hypotheses."""

    def __init__(self, sources, n_hypotheses):
        self.sources = [source for source in sources for _ in range(n_hypotheses)]
        self.rows = [() for _ in self.sources]
        self.n_hypotheses = n_hypotheses

    def select(self, rows, sentences=None):
        self.rows = [self.rows[i] for i in rows.tolist()]
        self.sources = [self.sources[i] for i in rows.tolist()]


class Table(ComputesLogits):
    """A `Decodable` with random logits that are a function of the source and the prefix."""

    config = None

    def __init__(self, seed: int, vocab_size: int = VOCAB, spread: float = 2.0):
        self.seed, self.vocab_size, self.spread = seed, vocab_size, spread

    def row(self, source: int, prefix: tuple[int, ...]) -> torch.Tensor:
        number = hash((self.seed, source, prefix)) % (1 << 31)
        return torch.randn(self.vocab_size, generator=torch.Generator().manual_seed(number)) * self.spread

    def log_probs(self, source: int, prefix: tuple[int, ...], banned=BANNED) -> list[float]:
        logits = self.row(source, prefix)
        logits[list(banned)] = -torch.inf
        return logits.log_softmax(-1).tolist()

    def start(self, sources, n_hypotheses=1):
        return Prefixes([first for first, *_ in sources], n_hypotheses), np.full(len(sources) * n_hypotheses, BOS)

    def logits(self, ids, state):
        state.rows = [(*row, last) for row, last in zip(state.rows, ids.tolist(), strict=True)]
        return np.stack(
            [self.row(source, row[1:]).numpy() for source, row in zip(state.sources, state.rows, strict=True)]
        )


def sources(*names: int) -> list[list[int]]:
    return [[name] for name in names]


def ask(model, src, max_lengths, no_repeat_ngram_size=None, **options):
    rules = search_rules(BANNED, DecodeConfig(no_repeat_ngram_size=no_repeat_ngram_size))
    return beam_search(model, src, max_lengths, eos_id=EOS, rules=rules, **options)


def score(table: Table, source: int, ids: tuple[int, ...], alpha: float) -> float:
    total = sum(table.log_probs(source, ids[:i])[token] for i, token in enumerate(ids))
    return total / length_penalty(len(ids), alpha)


def every_sequence(max_new_tokens: int):
    """All outputs of at most `max_new_tokens` tokens: those that end, and those that are truncated."""
    for length in range(1, max_new_tokens + 1):
        for words in product(WORDS, repeat=length - 1):
            yield (*words, EOS)
    yield from product(WORDS, repeat=max_new_tokens)


def reference_beam(table: Table, source: int, max_new_tokens: int, beam: int, alpha: float):
    """Simple beam search that continues to the maximum length unless `beam` hypotheses are finished."""
    alive, finished = [((), 0.0)], []
    for length in range(1, max_new_tokens + 1):
        extensions = sorted(
            (
                ((*ids, token), total + p)
                for ids, total in alive
                for token, p in enumerate(table.log_probs(source, ids))
                if p > -float("inf")
            ),
            key=lambda row: -row[1],
        )
        finished += [(ids, total / length_penalty(length, alpha)) for ids, total in extensions[:beam] if ids[-1] == EOS]
        alive = [row for row in extensions if row[0][-1] != EOS][:beam]
        if length == max_new_tokens:
            finished += [(ids, total / length_penalty(length, alpha)) for ids, total in alive]
        if len(finished) >= beam:
            break
    return sorted(finished, key=lambda row: -row[1])


MAX_LEN = 4
EXHAUSTIVE = len(WORDS) ** (MAX_LEN - 1) * (len(WORDS) + 1)  # every extension at the last step


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_an_exhaustive_beam_equals_enumeration(seed, alpha):
    table = Table(seed)
    found = ask(table, sources(7), [MAX_LEN], beam=EXHAUSTIVE, nbest=EXHAUSTIVE, alpha=alpha)[0]
    expected = sorted(every_sequence(MAX_LEN), key=lambda ids: -score(table, 7, ids, alpha))
    assert [tuple(h.ids) for h in found] == expected[:EXHAUSTIVE]


def test_log_probs_are_those_of_the_model_and_the_score_is_their_penalized_sum():
    table = Table(5)
    for h in ask(table, sources(7), [MAX_LEN], beam=7, nbest=7, alpha=0.6)[0]:
        ids = tuple(h.ids)
        assert h.log_probs == pytest.approx([table.log_probs(7, ids[:i])[token] for i, token in enumerate(ids)])
        assert h.score == pytest.approx(score(table, 7, ids, 0.6))


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_narrow_beam_equals_the_reference_beam_search(beam, alpha):
    names = range(37)
    found = ask(Table(11), sources(*names), [7] * len(names), beam=beam, nbest=beam, alpha=alpha)
    for name, hypotheses in zip(names, found, strict=True):
        expected = reference_beam(Table(11), name, 7, beam, alpha)[: len(hypotheses)]
        assert [(tuple(h.ids), pytest.approx(h.score)) for h in hypotheses] == expected


@pytest.mark.parametrize("nbest", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 4.0])
def test_early_stopping_does_not_change_the_best_hypotheses(alpha, nbest):
    names, beam, max_new_tokens = range(53), 5, 11
    table = Table(13, spread=4.0)  # sure of most words, so that the long can overtake the short
    found = ask(table, sources(*names), [max_new_tokens] * len(names), beam=beam, nbest=nbest, alpha=alpha)
    for name, hypotheses in zip(names, found, strict=True):
        expected = reference_beam(table, name, max_new_tokens, beam, alpha)[:nbest]
        assert [tuple(h.ids) for h in hypotheses] == [ids for ids, _ in expected]


def test_early_stopping_saves_steps():
    calls = []

    class Counting(Table):
        def logits(self, ids, state):
            calls.append(len(ids))
            logits = super().logits(ids, state)
            logits[:, EOS] += 30
            return logits

    ask(Counting(17), sources(1, 2), [101, 101], beam=5)
    assert len(calls) < 7


def test_a_beam_of_one_selects_the_most_probable_token_at_each_step():
    table, max_new_tokens = Table(19), 11
    for name, (best,) in zip(range(23), ask(table, sources(*range(23)), [max_new_tokens] * 23, beam=1), strict=True):
        ids: tuple[int, ...] = ()
        while len(ids) < max_new_tokens and EOS not in ids:
            log_probs = table.log_probs(name, ids)
            ids = (*ids, log_probs.index(max(log_probs)))
        assert tuple(best.ids) == ids


def test_hypotheses_are_distinct_and_sorted_by_score():
    for hypotheses in ask(Table(23), sources(*range(31)), [7] * 31, beam=5, nbest=5):
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.ids) for h in hypotheses}) == len(hypotheses) == 5


def test_banned_tokens_are_never_generated():
    class Tempting(Table):
        def row(self, source, prefix):
            logits = super().row(source, prefix)
            logits[list(BANNED)] += 30
            return logits

    found = ask(Tempting(29), sources(*range(31)), [7] * 31, beam=5, nbest=5)
    assert not {i for hypotheses in found for h in hypotheses for i in h.ids} & set(BANNED)


def repeated(ids, n: int) -> bool:
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_repeat_ngram_search_equals_enumeration_without_repetitions(n):
    table, max_new_tokens = Table(3), 5
    beam = len(WORDS) ** (max_new_tokens - 1) * (len(WORDS) + 1)
    found = ask(table, sources(7), [max_new_tokens], beam=beam, nbest=beam, alpha=0.6, no_repeat_ngram_size=n)[0]
    expected = [ids for ids in every_sequence(max_new_tokens) if not repeated(ids, n)]
    assert len(expected) < len(list(every_sequence(max_new_tokens)))
    assert [tuple(h.ids) for h in found] == sorted(expected, key=lambda ids: -score(table, 7, ids, 0.6))[:beam]
    for h in found:
        assert h.score == pytest.approx(score(table, 7, tuple(h.ids), 0.6))


def test_each_sentence_has_its_own_maximum_length():
    class Endless(Table):
        def row(self, source, prefix):
            logits = super().row(source, prefix)
            logits[EOS] = -30
            return logits

    max_lengths = [3, 1, 7, 2, 5]
    found = ask(Endless(31), sources(*range(5)), max_lengths, beam=3, nbest=3)
    assert [{len(h.ids) for h in hypotheses} for hypotheses in found] == [{n} for n in max_lengths]


def test_searching_a_sentence_alone_equals_searching_in_a_batch():
    names, max_lengths = range(29), [1 + i % 7 for i in range(29)]
    together = ask(Table(37), sources(*names), max_lengths, beam=3, nbest=3)
    alone = [ask(Table(37), sources(i), [n], beam=3, nbest=3)[0] for i, n in zip(names, max_lengths, strict=True)]
    assert together == alone


@pytest.mark.parametrize("beam", [1, 4, 11])
def test_the_vocabulary_may_be_smaller_than_the_beam(beam):
    table = Table(41, vocab_size=4)  # one word
    found = ask(table, sources(7), [5], beam=beam, nbest=beam)[0]
    assert len(found) == min(beam, 6)  # five that end and one that is cut
    assert [tuple(h.ids) for h in found] == [ids for ids, _ in reference_beam(table, 7, 5, beam, 1.0)[: len(found)]]


def test_all_possible_outputs_are_returned_if_there_are_fewer_than_the_beam():
    found = ask(Table(43, vocab_size=4), sources(7), [2], beam=11, nbest=11)[0]
    assert sorted(h.ids for h in found) == [[2], [3, 2], [3, 3]]


def test_length_penalty_is_that_of_wu_et_al():
    """Wu et al. 2016, equation 14: (5 + |Y|)^a / (5 + 1)^a."""
    for n in (1, 7, 53):
        assert length_penalty(n, 0.6) == pytest.approx((5 + n) ** 0.6 / 6**0.6)
    assert length_penalty(53, 0.0) == 1.0
