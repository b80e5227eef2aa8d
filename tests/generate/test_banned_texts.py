"""Texts that must not occur in the output."""

import random

import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.generate import engine
from glassformer.generate.rules import BannedTexts
from glassformer.generate.search import BeamSearch
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.terms import terms_of
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer

TEXTS = ["The cat slept on the mat.", "Über naïve 中文 dogs: the dog ran, the dogs ran!"] * 10


@pytest.mark.parametrize("seed", range(20))
def test_a_token_is_excluded_if_the_text_would_contain_a_banned_one(seed):
    rng = random.Random(seed)
    word = lambda n: bytes(rng.choice(b"ab") for _ in range(n))
    token_bytes = [b"", *(word(rng.randrange(1, 4)) for _ in range(30))]
    banned = [word(rng.randrange(1, 6)).decode() for _ in range(3)]
    rule = BannedTexts(tuple(banned), token_bytes).excluded
    for _ in range(50):
        before: list[int] = []
        while len(before) < 8:
            text = b"".join(token_bytes[i] for i in before)
            expected = {i for i, x in enumerate(token_bytes) if any(b.encode() in text + x for b in banned)}
            assert set(rule(before)) == expected
            before.append(rng.choice([i for i in range(len(token_bytes)) if i not in expected]))


@pytest.fixture(scope="module", params=["bpe", "wordpiece", "char", "byte"])
def translator(request) -> Translator:
    tokenizer = Tokenizer.train(TEXTS, kind=request.param, vocab_size=400)
    sizes = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1, max_len=100)
    torch.manual_seed(1)
    return Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)


@pytest.mark.parametrize(
    "options",
    [{"beam": 1}, {"beam": 4, "nbest": 4}, {"temperature": 1.0}, {"beam": 4, "precision": "int8"}, {"prefix": "the"}],
    ids=str,
)
def test_banned_texts_do_not_occur(translator, options):
    sources = ["The dog ran.", "the cat", "Über dogs"]
    fixed = {"max_length": 12, "no_repeat_ngram_size": 0, **options}
    free = [t.text for nbest in translator.translate(sources, DecodeConfig(**fixed)) for t in nbest]
    begin = len(options.get("prefix", ""))
    parts = {text[begin + i : begin + i + n] for text in free for i, n in ((0, 1), (2, 3), (5, 2))}
    banned = ("o", "at", *(part for part in parts if part.isalnum()))
    found = translator.translate(sources, DecodeConfig(**fixed, ban=banned))
    for text in (t.text for nbest in found for t in nbest):
        assert not any(ban in text[begin:] for ban in banned)
        assert text.startswith(options.get("prefix", ""))


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4, "nbest": 4}, {"beam": 2, "prefix": "the"}], ids=str)
def test_many_banned_tokens_give_the_same_outputs_by_all_logits(translator, options, monkeypatch):
    sources = ["The dog ran.", "the cat", "Über dogs", "the mat"]
    config = DecodeConfig(max_length=12, no_repeat_ngram_size=0, ban=("o", "at"), **options)

    def outputs():
        return [[(t.text, t.ids) for t in nbest] for nbest in translator.translate(sources, config)]

    expected = outputs()
    monkeypatch.setattr(engine, "MAX_EXCLUDED", 0)
    monkeypatch.setattr(BeamSearch, "n_most_probable", None)  # it is not called
    assert outputs() == expected


def test_an_empty_text_cannot_be_banned():
    with pytest.raises(ConfigError, match="empty text"):
        DecodeConfig.resolve({"ban": [""]}, environment={})


def test_of_a_term_the_forms_that_are_not_banned_are_left(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("cat\tKatze|Kater\ndog\tHund\n", encoding="utf-8")
    terms = terms_of(DecodeConfig(glossary=path, ban=("tze",)))
    assert [term.targets for term in terms.glossary.terms] == [("Kater",), ("Hund",)]
    with pytest.raises(ConfigError, match="'Hund' of 'dog' in the glossary is banned"):
        terms_of(DecodeConfig(glossary=path, ban=("und",)))
