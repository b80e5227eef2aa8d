"""Diverse beam search, against a simple implementation."""

from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from glassformer.config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.generate.engine import Engine, Sources
from glassformer.generate.search import length_penalty
from tests.generate.test_search import BANNED, EOS, VOCAB, Table

LENGTH = 6


def reference(table: Table, source: int, groups: int, size: int, penalty: float, alpha: float):
    """Finished outputs of each group with their scores, best first."""
    alive = [[((), 0.0)] for _ in range(groups)]
    finished: list[list] = [[] for _ in range(groups)]
    for length in range(1, LENGTH + 1):
        chosen = Counter()
        for g in range(groups):
            if len(finished[g]) >= size:
                continue
            extensions = sorted(
                (
                    ((*ids, token), total + p)
                    for ids, total in alive[g]
                    for token, p in enumerate(table.log_probs(source, ids))
                    if p > -float("inf")
                ),
                key=lambda row: -(row[1] - penalty * chosen[row[0][-1]]),
            )[: 2 * size]
            finished[g] += [(i, t / length_penalty(length, alpha)) for i, t in extensions[:size] if i[-1] == EOS]
            alive[g] = [row for row in extensions if row[0][-1] != EOS][:size]
            chosen.update(ids[-1] for ids, _ in alive[g])
            if length == LENGTH:
                finished[g] += [(ids, total / length_penalty(length, alpha)) for ids, total in alive[g]]
    return [sorted(rows, key=lambda row: -row[1])[:size] for rows in finished]


def new_engine() -> Engine:
    table = Table(3)
    table.config = SimpleNamespace(vocab_size=VOCAB, n_layers=1, d_model=1)
    return Engine(
        table, pad_id=0, eos_id=EOS, max_len=30, device=torch.device("cpu"), batch_tokens=10**6, banned_ids=BANNED
    )


def decode(names: list[int], **options) -> list[list]:
    return new_engine().decode(Sources([[name] for name in names], DecodeConfig(max_length=LENGTH, **options)))


@pytest.mark.parametrize(("groups", "size"), [(2, 1), (3, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("penalty", [0.0, 0.7, 100.0])
def test_the_hypotheses_are_those_of_a_simple_implementation(groups, size, penalty):
    names = list(range(3, 20))
    beam = groups * size
    found = decode(names, beam=beam, nbest=beam, beam_groups=groups, diversity_penalty=penalty)
    for name, hypotheses in zip(names, found, strict=True):
        rows = {ids: score for group in reference(Table(3), name, groups, size, penalty, 0.6) for ids, score in group}
        expected = sorted(rows.items(), key=lambda row: -row[1])
        assert [(tuple(h.ids), pytest.approx(h.score)) for h in hypotheses] == expected
    assert found == [
        decode([name], beam=beam, nbest=beam, beam_groups=groups, diversity_penalty=penalty)[0] for name in names
    ]


def test_groups_begin_with_different_words_under_a_large_penalty():
    for hypotheses in decode(list(range(3, 30)), beam=3, nbest=3, beam_groups=3, diversity_penalty=100.0):
        words = [h.ids[0] for h in hypotheses if h.ids[0] != EOS]
        assert len(words) == len(set(words))


def test_a_cancelled_sentence_does_not_change_the_others():
    options = DecodeConfig(max_length=LENGTH, beam=4, nbest=4, beam_groups=2)
    engine = new_engine()
    first, second = (engine.submit([name], options, max_new_tokens=LENGTH) for name in (5, 6))
    engine.step()
    engine.cancel(first)
    found = {}
    while engine.n_unfinished:
        found |= {event.request_id: event.hypotheses for event in engine.step() if event.hypotheses}
    assert found == {second: decode([6], beam=4, nbest=4, beam_groups=2)[0]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 4, "beam_groups": 3}, "not a multiple"),
        ({"beam": 4, "beam_groups": 2, "temperature": 1.0}, "cannot be combined"),
    ],
)
def test_options_that_do_not_go_together_are_an_error(options, message):
    with pytest.raises(ConfigError, match=message):
        DecodeConfig.resolve(options, environment={})
