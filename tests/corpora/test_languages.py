"""Language codes from file names, JSON keys and options."""

from pathlib import Path

import pytest

from glassformer.corpora.languages import languages_of
from glassformer.errors import ConfigError


@pytest.mark.parametrize(
    ("src", "tgt", "keys", "expected"),
    [
        (["a/train.en"], ["a/train.fr.gz"], (), ("en", "fr")),
        (["train.zh-Hans"], ["train.pt_BR"], (), ("zh-Hans", "pt_BR")),
        (["a.en", "b.en"], ["a.de", "b.de"], (), ("en", "de")),
        (["a.en", "b.fr"], ["a.de", "b.de"], (), ()),
        (["train.src"], ["train.tgt"], (), ()),
        (["en"], ["fr"], (), ("en", "fr")),
        (["corpus.txt"], ["other.txt"], (), ()),
        (["train.en"], ["more.en"], (), ()),
        (["pairs.jsonl"], [], ("src=translation.en", "tgt=translation.fr"), ("en", "fr")),
        (["pairs.tsv"], [], (), ()),
    ],
)
def test_languages(src, tgt, keys, expected):
    assert languages_of([Path(p) for p in src], [Path(p) for p in tgt], keys) == expected


def test_names_of_columns_are_codes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("English,French\nHello,Bonjour\n")
    assert languages_of([path], []) == ("en", "fr")


def test_languages_that_are_given_come_first():
    assert languages_of([Path("a.en")], [Path("a.fr")], (), ("de", "it")) == ("de", "it")
    for wrong in (("en",), ("en", "en"), ("English", "French"), ("en", "fr", "de")):
        with pytest.raises(ConfigError, match="two different codes"):
            languages_of([], [], (), wrong)
