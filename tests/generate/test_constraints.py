"""Constrained beam search against all outputs of a tiny vocabulary, and its independence of the batch."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import DecodeConfig
from glassformer.generate.constraints import ConstrainedBeamSearch, Constraint
from glassformer.generate.engine import Engine, Sources
from glassformer.generate.processors import min_length, search_processors
from tests.generate.test_search import BANNED, EOS, VOCAB, WORDS, Table, score, sources

LENGTH = 6
A, B, C = WORDS


def search(model, names, constraints, beam=4, limit=LENGTH, processors=(), alpha=0.6):
    """The best hypothesis of each source."""
    src = sources(*names)
    found = ConstrainedBeamSearch(
        *model.start(src), [limit] * len(src), constraints=constraints, eos_id=EOS, beam=beam, alpha=alpha,
        processors=[*search_processors(BANNED), *processors],
    )  # fmt: skip
    with torch.inference_mode():
        while len(found.alive):
            found.advance(*found.candidates(model))
    return [found.best_hypotheses(i)[0] for i in range(len(src))]


def occurrences(ids, sequence):
    n = len(sequence)
    return [i for i in range(len(ids) - n + 1) if tuple(ids[i : i + n]) == tuple(sequence)]


def meets(ids, constraints):
    """Whether places that do not overlap exist for all constraints, found by trying all."""

    def place(left, taken):
        if not left:
            return True
        i, *rest = left
        return any(
            place(rest, taken | span)
            for sequence in constraints[i].alternatives
            for start in occurrences(ids, sequence)
            if not (span := set(range(start, start + len(sequence)))) & taken
        )

    return place(list(range(len(constraints))), set())


def one(*sequence, **options):
    return Constraint((sequence,), **options)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "constraints",
    [
        [],
        [one(A)],
        [one(A, B)],
        [one(A), one(A)],
        [one(A, B), one(C)],
        [Constraint(((A, A), (B, C)))],
        [one(A, B, C, A)],
        [one(B), one(C, A), one(A)],
    ],
)
def test_the_best_output_that_meets_the_constraints_is_found(seed, constraints):
    """All outputs have one length, so that the search does not end before all are found."""
    table, name = Table(seed), seed + 1
    (found,) = search(table, [name], [constraints], beam=400, processors=[min_length(LENGTH - 1, [EOS])])
    outputs = [(*words, EOS) for words in product(WORDS, repeat=LENGTH - 1)]
    best = max((ids for ids in outputs if meets(ids, constraints)), key=lambda ids: score(table, name, ids, 0.6))
    assert tuple(found.ids) == best
    assert found.score == pytest.approx(score(table, name, best, 0.6), abs=1e-4)


@given(st.integers(0, 10**6), st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), max_size=4), st.data())
def test_every_constraint_is_met_with_any_beam_and_limit(seed, sequences, data):
    constraints = [Constraint((tuple(sequence),)) for sequence in sequences]
    limit = sum(map(len, sequences)) + data.draw(st.integers(1, 6))
    (found,) = search(Table(seed), [1], [constraints], beam=data.draw(st.integers(1, 9)), limit=limit)
    assert meets(found.ids, constraints)
    assert len(found.ids) <= limit


def test_constraints_that_do_not_fit_are_left_out_the_last_first():
    (found,) = search(Table(1), [1], [[one(A, B), one(C, C, C, C)]], limit=5)
    assert occurrences(found.ids, (A, B))


@pytest.mark.parametrize("seed", range(20))
def test_a_token_that_continues_a_word_does_not_follow(seed):
    continues = np.arange(6) == B
    (found,) = search(Table(seed), [1], [[one(A, A, not_before=continues)]], limit=9, alpha=5.0)
    first = occurrences(found.ids, (A, A))[0]
    assert found.ids[first + 2] != B


def engine_of(table):
    table.config = SimpleNamespace(vocab_size=VOCAB, n_layers=1, d_model=1)
    return Engine(
        table, pad_id=0, eos_id=EOS, max_len=30, device=torch.device("cpu"), batch_tokens=10**6, banned_ids=BANNED
    )


@given(st.lists(st.sampled_from([(), (A,), (B, C), (C, C, A)]), min_size=2, max_size=6), st.integers(0, 99))
def test_requests_with_and_without_constraints_do_not_depend_on_one_another(required, seed):
    constraints = [[one(*sequence)] if sequence else [] for sequence in required]
    names = [[3 + i] for i in range(len(required))]
    options = DecodeConfig(beam=3, nbest=2, max_length=4)

    def decode(chosen):
        sources = Sources([names[i] for i in chosen], options, constraints=[constraints[i] for i in chosen])
        return engine_of(Table(seed)).decode(sources)

    together = decode(range(len(names)))
    for i, hypotheses in enumerate(together):
        assert decode([i]) == [hypotheses]
        assert all(meets(h.ids, constraints[i]) for h in hypotheses)


def test_a_cancelled_request_with_constraints_leaves_the_others():
    options = DecodeConfig(beam=2)
    engine = engine_of(Table(5))
    ids = [engine.submit([i], options, max_new_tokens=9, constraints=[one(A, B, C)]) for i in (3, 4, 5)]
    expected = {i: engine_of(Table(5)).decode(Sources([[i + 3]], options, [9], [[one(A, B, C)]]))[0] for i in range(3)}
    engine.step()
    engine.cancel(ids[1])
    found = {}
    while engine.n_unfinished:
        found |= {event.request_id: event.hypotheses for event in engine.step() if event.hypotheses}
    assert found == {ids[0]: expected[0], ids[2]: expected[2]}
