"""Inference of the task from corpus files."""

import gzip
import json
from pathlib import Path

import pytest

from glassformer.corpora.detect import TASK_FORMATS, find_task
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import ColumnsError, ConfigError, CorpusError

PROSE = "Once upon a time\n\nthere was a cat , O\nand a dog .\n"
PAIRS = "".join(f"the {i}\tle {i}\n" for i in range(23))
TAGS = "Ann\tB-per\nslept\tO\n\t\nGo\tO\n"
SQUAD = json.dumps({"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": []}]}]})
UPOS = "1\tone\tone\tNUM\tCD\t_\t0\troot\t_\t_\n"


def labeled(header: str, labels) -> str:
    return "text\t" + header + "\n" + "".join(f"text {i}\t{label}\n" for i, label in enumerate(labels))


def objects(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return [folder / name for name in files]


WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(90)]
SPELLING = [f"{word}{end}\t{word}\n" for word in WORDS for end in ("e", "ei")]
GROUPS = "\n".join(SPELLING[i] + SPELLING[i + 1] for i in range(0, len(SPELLING), 2))
POS = [f"{word}\t{('NOUN', 'VERB', 'DET', 'NOUN', 'ADJ')[i % 5]}\n" for i, word in enumerate(WORDS)]


TOLD = {
    "one plain text": ({"a.txt": PROSE}, "causal-lm"),
    "a packed text": ({"a.gz": PROSE}, "causal-lm"),
    "two plain texts": ({"a.en": PROSE, "a.fr": PROSE}, "translation"),
    "tsv of pairs": ({"a.tsv.gz": PAIRS}, "translation"),
    "three lines of pairs": ({"a.tsv": "a\tb\nc\tb\nd\te\n"}, "translation"),
    "two tsv of pairs": ({"a.tsv": PAIRS, "b.tsv": PAIRS}, "translation"),
    "jsonl of pairs": ({"a.jsonl": objects({"src": "a", "tgt": "b"})}, "translation"),
    "jsonl of translations": ({"a.jsonl": objects({"translation": {"en": "a", "fr": "b"}})}, "translation"),
    "names of classes": ({"a.tsv": labeled("label", ["x", "y"])}, "classification"),
    "few numbers": ({"a.tsv": labeled("label", [i % 20 for i in range(83)])}, "classification"),
    "many numbers": ({"a.tsv": labeled("label", range(21))}, "regression"),
    "many names": ({"a.tsv": labeled("label", [f"class {i}" for i in range(53)])}, "classification"),
    "many numbers and a name": ({"a.tsv": labeled("label", [*range(53), "x"])}, "classification"),
    "not a number": ({"a.tsv": labeled("score", ["1", "nan"])}, "classification"),
    "a score": ({"a.tsv": labeled("score", [1, 2, 2])}, "regression"),
    "a score of pairs": ({"a.csv": 'sentence1,sentence2,score\n"a, b",c,1\n'}, "regression"),
    "a text file with a header": ({"a.txt": labeled("class", ["x"])}, "classification"),
    "jsonl of classes": ({"a.jsonl": objects({"text": "a", "label": True})}, "classification"),
    "jsonl of scores": ({"a.jsonl": objects({"id": 1, "text1": "a", "text2": "b", "score": 0.5})}, "regression"),
    "jsonl of words": ({"a.jsonl": objects({"words": ["a"], "tags": ["O"]})}, "tagging"),
    "jsonl of tasks": ({"a.jsonl": objects({"task": "x", "src": "a", "tgt": "b"})}, "multitask"),
    "jsonl of tokens": ({"a.jsonl": objects({"id": "0", "tokens": ["a"], "ner_tags": ["O"]})}, "tagging"),
    "conllu": ({"a.conllu": UPOS}, "tagging"),
    "conll by name": ({"a.conll.gz": "one two three\n"}, "tagging"),
    "bio by name": ({"a.bio": TAGS}, "tagging"),
    "tags with tabs": ({"a.txt": TAGS}, "tagging"),
    "tags in a tsv": ({"a.tsv": TAGS}, "tagging"),
    "tags with spaces": ({"eng.train": "-DOCSTART-\n\nEU NNP I-ORG\nsaid VBD O\n"}, "tagging"),
    "conllu by another name": ({"a.txt": "# text = One two\n" + UPOS + "\n"}, "tagging"),
    "pairs in a text file": ({"a.txt.gz": PAIRS}, "translation"),
    "jsonl of texts": ({"a.jsonl": objects({"text": "a"})}, "causal-lm"),
    "jsonl of summaries": ({"a.jsonl": objects({"dialogue": "a b", "summary": "a", "id": 1})}, "summarization"),
    "jsonl of articles": ({"a.jsonl": objects({"article": "a b", "highlights": "a"})}, "summarization"),
    "tsv of pairs with a blank line": ({"a.tsv": "good day\tbonjour\n\nthank you\tmerci\n"}, "translation"),
    "misspelled words with a blank line": ({"a.tsv": "".join([*SPELLING[::2], "\n"])}, "translation"),
    "misspellings of one word in groups": ({"a.txt": GROUPS}, "translation"),
    "few words with a blank line": ({"a.tsv": "hte\tthe\n\nteh\tthe\nadn\tand\n"}, "translation"),
    "parts of speech": ({"a.tsv": "".join([*POS[:7], "\n", *POS[7:]])}, "tagging"),
    "two files of tags": ({"a.txt": TAGS, "b.txt": TAGS}, "tagging"),
    "squad on one line": ({"a.json": SQUAD}, "question-answering"),
    "squad on many lines": ({"a.json.gz": json.dumps(json.loads(SQUAD), indent=1)}, "question-answering"),
    "json lines by another name": ({"a.json": objects({"text": "a", "label": 1})}, "classification"),
}  # fmt: skip


@pytest.mark.parametrize("case", TOLD)
def test_the_task_is_inferred_from_the_data(tmp_path, case):
    files, task = TOLD[case]
    assert find_task(write(tmp_path, files)) == task


@pytest.mark.parametrize(
    ("keys", "task"),
    [("text=3 label=1", "classification"), ("text=1 label=3", "classification"), ("text=3 label=2", "regression"),
     ("src=1 tgt=3", "translation"), ("text=1 summary=3", "summarization")],
)  # fmt: skip
def test_numbers_of_columns_replace_a_header_row(tmp_path, keys, task):
    files = write(tmp_path, {"a.tsv": "0\t1.5\tx\n2\t2\ty\n"})
    assert find_task(files, ReadOptions(keys=tuple(keys.split()))) == task


@pytest.mark.parametrize("key", ["words=2", "tags=2"])
def test_keys_of_tagged_words_make_the_task(tmp_path, key):
    assert find_task(write(tmp_path, {"a.txt": "1 Ann N\n"}), ReadOptions(keys=(key,))) == "tagging"


AMBIGUOUS = {
    "other keys": ({"a.jsonl": objects({"a": "a", "b": "b"})}, "line is {a: str, b: str}.*--keys src=a tgt=b"),
    "array": ({"a.json": "[\n1]\n"}, "expected one JSON object per line"),
    "three plain texts": ({"a.txt": PROSE, "b.txt": PROSE, "c.txt": PROSE}, "3 files: cannot infer"),
    "different kinds": ({"a.txt": PROSE, "b.conll": TAGS}, "b.conll: tagging"),
}  # fmt: skip


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_ambiguous_data_is_reported_with_all_formats(tmp_path, case):
    files, seen = AMBIGUOUS[case]
    with pytest.raises(ConfigError, match=f"(?s){seen}") as caught:
        find_task(write(tmp_path, files))
    assert "--task" in str(caught.value)
    assert all(task in str(caught.value) for task in TASK_FORMATS)


UNKNOWN = {
    "four columns": ("a.tsv", "gj04\t1\t\tThey slept.\n", "no column looks like the label"),
    "csv without header": ("a.csv", "one,two\n", "no column looks like the label; no column looks like the text"),
    "one label": ("a.tsv", "".join(f"pos\ttext {i}\n" for i in range(7)), "no column looks like the label"),
    "numbers": ("a.tsv", "".join(f"{i}\t{i % 2}\n" for i in range(7)), "no column looks like the text"),
    "two tabs in a text": ("a.txt", "a\tb\tc\nd\te\tf\n", "no column looks like the label"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_columns_in_doubt_are_an_error_with_two_rows(tmp_path, case):
    name, content, problem = UNKNOWN[case]
    with pytest.raises(ColumnsError, match=problem) as caught:
        find_task(write(tmp_path, {name: content}))
    shown = [line for line in str(caught.value).split("\n") if line.startswith("  Row: ")]
    assert len(shown) == min(2, content.count("\n"))
    assert "--keys text=COLUMN label=COLUMN" in str(caught.value)


def test_the_label_of_a_file_that_is_sorted_by_class_is_suggested(tmp_path):
    content = "".join(f"pos\ta film of number {i}\n" for i in range(300)) + "neg\tno film at all\n"
    with pytest.raises(ColumnsError, match="no column looks like the label") as caught:
        find_task(write(tmp_path, {"a.tsv": content}))
    assert caught.value.keys == "--keys text=2 label=1"


def test_standard_input_is_not_read():
    with pytest.raises(ConfigError, match="standard input: cannot infer the task: it can be read only once"):
        find_task([Path("-")])


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no file given"):
        find_task([])


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match=r"a\.txt: no such file"):
        find_task([tmp_path / "a.txt"])


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl"])
def test_only_the_beginning_is_read(tmp_path, name):
    good = {"a.txt": PROSE, "a.tsv": PAIRS, "a.csv": "text,label\na,b\n", "a.jsonl": objects({"text": "a", "label": 1})}
    path = tmp_path / name
    path.write_bytes(good[name].encode() * 200 + b"\xff\n")
    assert find_task([path])


@pytest.mark.parametrize(
    ("record", "suggested"),
    [
        ({"file": "a.po", "en": "About these documents", "fr": "À propos de ces documents"}, "--keys src=en tgt=fr"),
        ({"id": 7, "review": "what a lovely film", "stars": 5}, "--keys text=review label="),
        ({"pair": {"en": "a", "fr": "b", "de": "c"}}, "--keys src=pair.en tgt=pair.fr"),
        ({"source": ["One is here.", "Two."], "target": ["It is one."]}, "--keys src=source tgt=target"),
        ({"forms": ["One", "is"], "upos": ["NUM", "AUX"]}, "--keys words=forms tags=upos"),
    ],
)
def test_the_error_names_keys_that_fit_the_data(tmp_path, record, suggested):
    with pytest.raises(ConfigError) as caught:
        find_task(write(tmp_path, {"a.jsonl": objects(record)}))
    assert suggested in str(caught.value)


def test_unknown_formats_are_refused_with_the_list_of_known_ones():
    known = "lines, tsv, csv, jsonl, tmx, xliff, po, archive, catalogue"
    with pytest.raises(ConfigError, match=rf"--format xml: unknown\.\n  Use one of: {known}\."):
        ReadOptions(format="xml")
