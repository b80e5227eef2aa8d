"""corpora.tagged: CoNLL, CoNLL-U and JSONL to words with tags, and what each refusal says."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.corpora.tagged import read_tagged
from glassformer.errors import ConfigError, CorpusError

CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=5)
SENTENCES = st.lists(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5), min_size=1, max_size=3)
quick = settings(max_examples=40)

CONLLU = """\
# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\tE\t_\t5\tcase\t_\t_
4\tel\tel\tDET\tR\t_\t5\tdet\t_\t_
4.1\tgran\tgran\tADJ\tA\t_\t_\t_\t5:amod\t_
5\tmar\tmar\tNOUN\tN\t_\t1\tobl\t_\t_

# sent_id = 2
1\tsí\tsí\tINTJ\t_\t_\t0\troot\t_\t_
"""


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sentences(path: Path, column: str | int | None = None) -> list[tuple[str, str, int]]:
    return [(" ".join(e.words), " ".join(e.tags), e.line) for e in read_tagged([path], column)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tagged")


@given(SENTENCES, st.sampled_from(["\t", " "]), st.sampled_from(["", "\t", " \t ", "\r"]))
@quick
def test_reading_restores_the_written_columns(folder, rows, separator, blank):
    rows = [[("-" if word.startswith("-DOC") else word, tag) for word, tag in sentence] for sentence in rows]
    text = f"{blank}\n".join("".join(f"{word}{separator}{tag}\n" for word, tag in sentence) for sentence in rows)
    result = [list(zip(e.words, e.tags, strict=True)) for e in read_tagged([write(folder / "a.conll", text)])]
    assert result == rows


@given(SENTENCES)
@quick
def test_jsonl_reads_what_json_writes(folder, rows):
    records = [dict(zip(("words", "tags"), map(list, zip(*sentence, strict=True)), strict=True)) for sentence in rows]
    path = write(folder / "a.jsonl", "\n".join(map(json.dumps, records)))
    assert [{"words": list(e.words), "tags": list(e.tags)} for e in read_tagged([path])] == records


def test_jsonl_has_the_names_of_hugging_face(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"id": "0", "tokens": ["Ann", "slept"], "ner_tags": ["B-PER", "O"]}\n')
    assert sentences(path) == [("Ann slept", "B-PER O", 1)]


def test_conllu_skips_ranges_empty_nodes_and_comments(tmp_path):
    path = write(tmp_path / "a.conllu", CONLLU)
    assert sentences(path) == [("Vamos nos a el mar", "VERB PRON ADP DET NOUN", 4), ("sí", "INTJ", 13)]


def test_conllu_reads_xpos_on_request(tmp_path):
    path = write(tmp_path / "a.conllu.gz", gzip.compress(CONLLU.split("\n\n")[0].encode()))
    assert sentences(path, "xpos") == [("Vamos nos a el mar", "V P E R N", 4)]


CONLL2003 = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n \nPeter NNP I-NP I-PER\n\n\n"


@pytest.mark.parametrize(("column", "tags"), [(None, ["I-ORG O", "I-PER"]), (2, ["NNP VBZ", "NNP"])])
def test_any_column_can_be_the_tag(tmp_path, column, tags):
    path = write(tmp_path / "eng.testa", CONLL2003)
    assert sentences(path, column) == [("EU rejects", tags[0], 3), ("Peter", tags[1], 6)]


def test_a_number_sign_is_a_word_in_conll(tmp_path):
    assert sentences(write(tmp_path / "a.conll", "#\tO\n# one\tB-x\n")) == [("# # one", "O B-x", 1)]


def test_only_the_space_character_separates_columns(tmp_path):
    assert [e.words for e in read_tagged([write(tmp_path / "a.conll", " 1\u00a0000  NUM \nx NUM\n")])] == [
        ("1\u00a0000", "x")
    ]


def test_spaces_in_tab_separated_words_are_kept(tmp_path):
    path = write(tmp_path / "a.conll", "New York\tB-place\n\u00a0x\tO\n")
    assert [e.words for e in read_tagged([path])] == [("New York", "\u00a0x")]


# name, content -> the line named, what is said
BROKEN = {
    "tag missing": ("a.conll", "one\tO\ntwo\n", 2, "expected 2 columns as in line 1, found 1"),
    "tag empty": ("a.conll", "one\tO\ntwo\t\n", 2, "no tag, in the row of word 'two'"),
    "word empty": ("a.conll", "one\tO\n\tO\n", 2, "no word, in the row of word '' and tag 'O'"),
    "one column": ("a.conll", "\none\n", 2, "at least 2 columns, found 1"),
    "ragged": ("a.conll", "one NN O\ntwo O\n", 2, "expected 3 columns as in line 1, found 2"),
    "conllu short": ("a.conllu", "# x\n1\tone\tNOUN\n", 2, "the 10 tab-separated columns of CoNLL-U, found 3"),
    "conllu no tag": ("a.conllu", CONLLU.replace("INTJ", "_"), 13, "no tag, in the row of word 'sí'"),
    "conllu joined": ("a.conllu", CONLLU.replace("\n\n", "\n"), 12, "expected word 6 of the sentence, found"),
    "conllu no number": ("a.conllu", "x" + CONLLU.split("\n")[-2][1:], 1, "expected word 1 of the sentence"),
    "json counts": ("a.jsonl", '{"words": ["a"], "tags": ["O"]}\n{"words": ["a", "b"], "tags": ["O"]}\n', 2,
                    "2 words and 1 tags"),
    "json none": ("a.jsonl", '{"words": [], "tags": []}\n', 1, "0 words and 0 tags"),
    "json keys": ("a.jsonl", '{"forms": ["a"], "tags": ["O"]}\n', 1, "found {forms: list, tags: list}"),
    "json several": ("a.jsonl", '{"tokens": ["a"], "pos_tags": ["N"], "ner_tags": ["O"]}\n', 1, "Name the keys"),
    "json number": ("a.jsonl", '{"words": ["a", "b"], "tags": ["O", 3]}\n', 1,
                    "tag 2: int instead of a string.\n  Write the names"),
    "json blank": ("a.jsonl", '{"words": [" "], "tags": ["O"]}\n', 1, "word 1: it is blank"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_an_invalid_row_is_reported_with_location_and_advice(tmp_path, fault):
    name, content, line, expected_message = BROKEN[fault]
    path = write(tmp_path / name, content)
    with pytest.raises(CorpusError) as caught:
        sentences(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert expected_message in str(caught.value)
    assert "\n  " in str(caught.value)


def test_a_column_beyond_the_last_is_an_error_in_the_first_row(tmp_path):
    path = write(tmp_path / "a.conll", "one\tO\n")
    with pytest.raises(CorpusError, match=r"a\.conll:1: expected .* at least 3 columns, found 2"):
        sentences(path, 3)


@pytest.mark.parametrize(
    ("name", "column"), [("a.conllu", 3), ("a.conllu", "feats"), ("a.conll", "upos"), ("a.conll", 1), ("a.jsonl", 2)]
)
def test_a_column_that_the_format_does_not_have_is_an_error_before_reading(tmp_path, name, column):
    with pytest.raises(ConfigError, match=rf"--keys tags={column}: .*\n  \w"):
        read_tagged([tmp_path / name], column)


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.po", "a.zip", "a.properties", "a.csv"])
def test_formats_without_tags_are_refused_also_if_their_lines_have_two_columns(tmp_path, name):
    path = write(tmp_path / name, 'msgid "a"\nmsgstr "b"\n')
    with pytest.raises(CorpusError, match=r"cannot be read from this format \("):
        sentences(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "# id 5239 domain=en\nrobert _ _ B-PER\nlives _ _ O\n\n# id 52\tdomain=en\nhere _ _ O\n",
            [("robert lives", "B-PER O", 2), ("here", "O", 6)],
        ),
        ("# text = Robert\nRobert\tB-PER\n", [("Robert", "B-PER", 2)]),
        (
            "# newdoc id = 3\n# text = No 5\nNo DET\n# NUM\n\n# SYM\n5 NUM\n",
            [("No #", "DET NUM", 3), ("# 5", "SYM NUM", 6)],
        ),
        ("# O\nRobert B-PER\n", [("# Robert", "O B-PER", 1)]),
        ("# # O\nfun fun O\n", [("# fun", "O O", 1)]),
    ],
)
def test_comments_before_a_sentence_are_no_words(folder, text, expected):
    assert sentences(write(folder / "a.conll", text)) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.conll", "Ann\tB-first name\n"), ("a.jsonl", '{"words": ["Ann"], "tags": ["B-first name"]}\n')],
)
def test_a_tag_is_one_word(folder, name, text):
    with pytest.raises(CorpusError, match=r"'B-first name' has a space\.\n  Write it as one word: B-first_name"):
        sentences(write(folder / name, text))


@pytest.mark.parametrize("name", ["a.conll", "a.txt"])
@pytest.mark.parametrize("keys", [(), ("tags=4",)])
def test_conllu_by_another_name_is_refused_instead_of_its_numbers_read_as_words(folder, name, keys):
    path = write(folder / name, CONLLU)
    with pytest.raises(CorpusError, match=rf"{name}:3: CoNLL-U: 10 columns.*\n  A CoNLL-U file must be named \.conllu"):
        list(read_tagged([path], keys=keys))


def test_ten_columns_whose_words_are_no_numbers_are_conll(folder):
    assert sentences(write(folder / "a.conll", "Ann\t" + "_\t" * 8 + "B-x\n")) == [("Ann", "B-x", 1)]


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        ("1\tAnn\tN\n2\tslept\tV\n", ("words=2",), ("Ann slept", "N V")),
        ("N Ann\nV slept\n", ("words=2", "tags=1"), ("Ann slept", "N V")),
        ("1\tAnn\tann\tN\t_\t_\t0\troot\t_\t_\n", ("words=2", "tags=8"), ("Ann", "root")),
        ("1\t" + "_\t" * 8 + "B-x\n", ("words=1",), ("1", "B-x")),
    ],
)
def test_the_column_of_the_words_can_be_named(folder, text, keys, expected):
    (found,) = read_tagged([write(folder / "a.conll", text)], keys=keys)
    assert (" ".join(found.words), " ".join(found.tags)) == expected


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("a.conll", ["words=form"], r"--keys words=form: .*a\.conll is CoNLL, its columns have numbers"),
        ("a.conll", ["words=0"], r"--keys words=0: .*\n  Give the number of the column of the words, 1 or more"),
        ("a.conll", ["words=2", "tags=2"], r"--keys tags=2: the column of the words"),
        ("a.conll", ["words=2"], r"--keys words=2: the last column of .*\n  Name both: --keys words=2 tags=COLUMN"),
        ("a.conll", ["text=1"], r"--keys text=1: .*a\.conll has words and tags only"),
        ("a.conllu", ["words=2"], r"--keys words=2: .*a\.conllu is CoNLL-U, its words are in column 2"),
    ],
)
def test_a_column_of_words_that_cannot_be_used_is_refused(folder, name, keys, message):
    path = write(folder / name, "Ann\tB-x\n")
    with pytest.raises(ConfigError, match=message):
        list(read_tagged([path], keys=keys))
