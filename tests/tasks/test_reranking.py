"""Minimum Bayes risk: chrF as sacrebleu computes it, and the translation with the highest expected one."""

import math
import random

import pytest
from pydantic import ValidationError
from sacrebleu.metrics.chrf import CHRF

from glassformer.decode_config import DecodeConfig
from glassformer.generate.search import Hypothesis
from glassformer.model_config import TransformerConfig
from glassformer.tasks.reranking import TEMPERATURE, by_risk, chrf_of_pairs
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer


def texts(seed: int, n: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choice("aab é.") for _ in range(rng.randrange(0, 30))) for _ in range(n)]


@pytest.mark.parametrize("seed", range(5))
def test_chrf_is_that_of_sacrebleu(seed):
    given = [*texts(seed, 6), "", "a", "a b", "the same", "the same"]
    found = chrf_of_pairs(given)
    metric = CHRF()
    for i, hypothesis in enumerate(given):
        for j, reference in enumerate(given):
            assert 100 * found[i, j] == pytest.approx(metric.sentence_score(hypothesis, [reference]).score, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_is_the_one_with_the_highest_expected_chrf(seed):
    rng = random.Random(seed)
    given = texts(seed, 7)
    hypotheses = [Hypothesis([i], [-rng.random(), -3 * rng.random()], 0.0) for i in range(len(given))]
    metric = CHRF()

    def expected(i):
        weights = [math.exp(sum(other.log_probs) / TEMPERATURE) for other in hypotheses]
        scores = [metric.sentence_score(given[i], [text]).score for text in given]
        return sum(map(float.__mul__, weights, scores)) / sum(weights)

    best_first = sorted(range(len(given)), key=lambda i: -expected(i))
    found = [hypothesis.ids[0] for hypothesis in by_risk(given, hypotheses)]
    assert [expected(i) for i in found] == pytest.approx([expected(i) for i in best_first])


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train(["the old man reads a book", "a man sees the old house"] * 9, vocab_size=300)
    sizes = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1,
        dropout=0, max_len=32,
    )  # fmt: skip
    return Translator.build(sizes, tokenizer)


def test_reranked_translations_are_those_of_the_beam_in_order_of_risk(translator):
    sources = ["the old man", "a house"]
    options = {"beam": 5, "max_length": 9, "no_repeat_ngram_size": 0}
    whole = translator.translate(sources, nbest=5, **options)
    assert any(len({t.text for t in nbest}) > 2 for nbest in whole)
    for nbest in (1, 3, 5):
        found = translator.translate(sources, nbest=nbest, rerank="mbr", **options)
        for beam, reranked in zip(whole, found, strict=True):
            hypotheses = [Hypothesis(list(t.ids), t.log_probs, t.score) for t in beam]
            expected = by_risk([t.text for t in beam], hypotheses)[:nbest]
            assert [t.ids for t in reranked] == [tuple(h.ids) for h in expected]


@pytest.mark.parametrize("options", [{"beam": 1}, {"temperature": 0.7}])
def test_reranking_needs_a_beam(options):
    with pytest.raises(ValidationError, match="rerank: needs the translations of a beam"):
        DecodeConfig(rerank="mbr", **options)
