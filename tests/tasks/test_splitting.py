"""Splitting of texts that are longer than the maximum length of a model."""

import pytest

from glassformer.tasks.splitting import sentences, split
from glassformer.tokens.tokenizer import Tokenizer

TEXT = 'He owns e.g. black cats. She met Dr. Smith with No. 5 of approx. 7 dogs. And then? "Yes." It is so.'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TEXT,
            [
                "He owns e.g. black cats.",
                "She met Dr. Smith with No. 5 of approx. 7 dogs.",
                "And then?",
                '"Yes."',
                "It is so.",
            ],
        ),
        (
            "Am Tag, z. B. am 5. Januar, Prof. Maier. Ein Hund.",
            ["Am Tag, z. B. am 5. Januar, Prof. Maier.", "Ein Hund."],
        ),
        ("你好吗。我很好。", ["你好吗。", "我很好。"]),
    ],
)
def test_abbreviations_end_no_sentence(text, expected):
    found = list(sentences(text, lambda sentence: True))
    assert [sentence for _, sentence in found] == expected
    assert "".join(space + sentence for space, sentence in found) == text


def test_a_sentence_that_does_not_fit_ends_after_them_too():
    found = list(sentences("one. two. three. Four.", lambda sentence: len(sentence) < 12))
    assert found == [("", "one."), (" ", "two."), (" ", "three."), (" ", "Four.")]


def test_sentences_without_space_between_them_get_none():
    text = "你好吗。我很好。你呢？"
    tokenizer = Tokenizer.train([text] * 20, vocab_size=300)
    n = len(tokenizer.encode(text))
    parts = split(text * 6, tokenizer, 3 * n + 1, lambda message: None)
    assert len(parts) > 1
    assert "".join(tokenizer.decode(ids) for _, ids in parts) == text * 6
