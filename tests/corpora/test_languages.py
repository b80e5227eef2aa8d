"""Language codes from file names, JSON keys and options."""

from pathlib import Path

import pytest

from glassformer.corpora.languages import has_columns_of, languages_of
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


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "id,fr,en\n1,Bonjour,Hello\n", True), ("a.tsv", "fr\ten\nBonjour\tHello\n", True),
        ("a.jsonl", '{"translation": {"fr": "Bonjour", "en": "Hello"}}\n', True),
        ("a.csv", "source,target\nBonjour,Hello\n", False), ("a.csv", "fr,de\nBonjour,Hallo\n", False),
        ("a.jsonl", '{"src": "Bonjour", "tgt": "Hello"}\n', False), ("a.jsonl", "nothing\n", False),
        ("a.txt", "fr,en\n", False),
    ],
)  # fmt: skip
def test_which_files_have_columns_named_by_languages(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert has_columns_of(tmp_path / name, None, ("en", "fr")) == expected
    assert not has_columns_of(tmp_path / name, None, ())


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ('{"de": "Katze", "en": "cat"}', ("de", "en")),
        ('{"id": 1, "translation": {"French": "chat", "English": "cat"}}', ("fr", "en")),
        ('{"src": "Katze", "tgt": "cat"}', ()),
        ('{"translation": {"en": 1}}', ()),
        ("[1]", ()),
    ],
)
def test_keys_of_json_are_codes(tmp_path, text, languages):
    path = tmp_path / "a.jsonl"
    path.write_text(text + "\n")
    assert languages_of([path], []) == languages


def test_languages_that_are_given_come_first():
    assert languages_of([Path("a.en")], [Path("a.fr")], (), ("de", "it")) == ("de", "it")
    for wrong in (("en",), ("en", "en"), ("English", "French"), ("en", "fr", "de")):
        with pytest.raises(ConfigError, match="two different codes"):
            languages_of([], [], (), wrong)
