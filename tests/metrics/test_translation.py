"""metrics.translation: BLEU as a function of sums over sentences."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from glassformer.metrics import Score, bleu, tokenizer_for, translation_scores
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


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (REFERENCES, "13a"), (["猫", "狗狗"], "zh"), (["猫坐在垫子上。", "一只狗跑过了旧桥。", "A4纸"], "zh"),
        (["猫がマットの上に座った。"], "char"),
        (["แมวนั่งบนเสื่อ"], "char"), (["猫 が マット の 上 に 座っ た 。"], "13a"), (["고양이가 매트에 앉았다."], "13a"),
        (["The word 猫 means cat."], "13a"), ([], "13a"), (["12 34"], "13a"),
    ],
)  # fmt: skip
def test_the_tokenizer_fits_the_script(texts, expected):
    assert tokenizer_for(texts) == expected


def test_text_without_spaces_has_the_bleu_of_its_characters():
    references = ["猫がマットの上に座った。", "犬は古い橋を渡って走った。"]
    hypotheses = ["猫がマットの上に立った。", "犬は古い橋を渡った。"]
    assert bleu(references, references) == pytest.approx(100)
    theirs = BLEU(force=True, tokenize="char").corpus_score(hypotheses, [references]).score
    assert bleu(hypotheses, references) == pytest.approx(theirs)
    assert translation_scores(hypotheses, references)[0].value == pytest.approx(theirs)
    assert bleu_from(bleu_statistics(hypotheses, references).sum(0)) == pytest.approx(theirs)
    assert "tok:13a" in translation_scores(hypotheses, references, tokenize="13a")[0].signature
