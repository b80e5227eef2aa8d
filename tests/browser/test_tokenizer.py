"""The tokenizers of a page encode and decode as those of the library."""

import random

import pytest

from glassformer.browser.page import PACKAGES
from glassformer.browser.tokenizer_record import tokenizer_record
from glassformer.inspection.bundle import bundle
from glassformer.tokens.tokenizer import Tokenizer
from tests.browser.test_engine import TEXTS
from tests.browser.translators import TRAINED

KINDS = {
    "bpe": {}, "unigram": {}, "char": {}, "byte": {}, "word": {}, "word lower": {"lowercase": True}, "wordpiece": {},
    "wordpiece lower": {"lowercase": True}, "bpe without a space": {"add_prefix_space": False},
}  # fmt: skip


def random_texts(n):
    """Texts of words of the training and of any characters."""
    rng = random.Random(5)
    words = " ".join(TRAINED).split()
    signs = [chr(c) for c in (*range(9, 1500), *range(0x2000, 0x2100), *range(0x3000, 0x30FF), *range(0x4E00, 0x4E40),
                              *range(0x1F600, 0x1F640), 0xFEFF, 0xFFFD, 0x1D400, 0xAC00, 0x0E01, 0x0939)]  # fmt: skip
    for _ in range(n):
        pieces = ((rng.choice(words), rng.choice(signs), " ", rng.choice(signs).upper()) for _ in range(12))
        yield "".join(map(rng.choice, pieces))


@pytest.fixture(scope="module")
def run(browser):
    """A function that calls a method of a tokenizer for each of some arguments."""
    tab = browser.new_page()
    tab.evaluate(f"() => {{ {bundle('tokenizer', PACKAGES)} window.tokenizerOf = $tokenizer.tokenizerOf; }}")

    def call(tokenizer, method, values):
        script = (
            "([record, method, values]) => { const t = tokenizerOf(record); return values.map((x) => t[method](x)); }"
        )
        return tab.evaluate(script, [tokenizer_record(tokenizer), method, values])

    yield call
    tab.close()


@pytest.mark.parametrize("name", KINDS)
def test_texts_are_encoded_and_decoded_alike(run, name):
    kind, options = name.split(" ")[0], KINDS[name]
    tokenizer = Tokenizer.train(TRAINED * 5, kind=kind, vocab_size=400, **options)
    texts = [*TEXTS, *random_texts(400)]
    encoded = tokenizer.encode_batch(texts)
    assert run(tokenizer, "encode", texts) == encoded
    assert run(tokenizer, "decode", encoded) == [tokenizer.decode(ids) for ids in encoded]
    rng = random.Random(1)
    any_ids = [[rng.randrange(tokenizer.vocab_size) for _ in range(20)] for _ in range(200)]
    assert run(tokenizer, "decode", any_ids) == [tokenizer.decode(ids) for ids in any_ids]


@pytest.mark.parametrize("name", KINDS)
def test_tokens_are_at_the_same_characters(run, name):
    kind, options = name.split(" ")[0], KINDS[name]
    tokenizer = Tokenizer.train(TRAINED * 5, kind=kind, vocab_size=400, **options)
    texts = [text for text in [*TEXTS, *random_texts(100)] if max(map(ord, text), default=0) < 0xD800]  # as in UTF-16
    found = run(tokenizer, "offsets", texts)
    for text, offsets in zip(texts, found, strict=True):
        ids, spans = tokenizer.offsets(text)
        assert offsets["ids"] == ids
        assert [tuple(span) for span in offsets["spans"]] == spans
