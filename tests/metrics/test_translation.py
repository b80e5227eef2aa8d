"""metrics.translation: BLEU as a function of sums over sentences."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from glassformer.metrics import Score, bleu, translation_scores
from glassformer.metrics.translation import bleu_from, bleu_statistics

REFERENCES = ["The cat sat on the mat.", "A dog ran over the old bridge .", "It rains, again and again!", "x"]
HYPOTHESES = ["The cat sat on a mat.", "The dog ran across the old bridge.", "It RAINS again, and again", ""]


@pytest.mark.parametrize("options", [{}, {"lowercase": True}, {"tokenize": "none"}])
@pytest.mark.parametrize("n", [2, 4])
def test_bleu_of_the_sums_is_that_of_the_corpus(options, n):
    sums = bleu_statistics(HYPOTHESES[:n], REFERENCES[:n], **options).sum(0)
    theirs = BLEU(force=True, **options).corpus_score(HYPOTHESES[:n], [REFERENCES[:n]]).score
    assert bleu_from(sums) == pytest.approx(theirs)


def test_bleu_of_many_sums_is_smoothed_like_each():
    statistics = bleu_statistics(HYPOTHESES, REFERENCES)
    each = [bleu([hypothesis], [reference]) for hypothesis, reference in zip(HYPOTHESES, REFERENCES, strict=True)]
    np.testing.assert_allclose(bleu_from(statistics), each)


def test_scores_and_signatures_are_those_of_sacrebleu():
    scores = translation_scores(HYPOTHESES, REFERENCES)
    assert [score.name for score in scores] == ["BLEU", "chrF2", "TER"]
    assert scores[0] == Score("BLEU", bleu(HYPOTHESES, REFERENCES), scores[0].signature)
    assert all("version:" in score.signature for score in scores)
