"""Corpora of every format with every kind of damage, read by every command that reads corpora."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Expect, command, either, fails
from tests.hostile.prepare import SMALL, squad

MB = 1 << 20
GIANT = "9" * 5000
TSV = "The cat sleeps.\tLe chat dort.\nThe dog eats.\tLe chien mange.\n" * 3
JSONL = '{"text": "the film", "label": "good"}\n{"text": "a cast", "label": "bad"}\n' * 3
CONLL = "the\tO\nfilm\tB-X\n\nwas\tO\ngreat\tI-X\n\n"
CONLLU = "1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n2\tfilm\tfilm\tNOUN\t_\t_\t_\t_\t_\t_\n\n"
SQUAD = squad(("Ann", "Oslo"), ("Bob", "Rome"))

ANY = {
    "empty": b"",
    "a BOM alone": b"\xef\xbb\xbf",
    "one newline": b"\n",
    "blank lines": b"\n \n\t\n\n",
    "NUL": b"the film\tgood\0\n",
    "not UTF-8": b"the film\t\xff\n",
    "UTF-16": "the film\tgood\n".encode("utf-16"),
    "binary": bytes(range(256)) * 40,
    "a megabyte line": b"a" * (MB + 1) + b"\tb\n",
    "truncated gzip": gzip.compress(TSV.encode() * 90)[:-20],
    "corrupt gzip": gzip.compress(TSV.encode() * 90)[:40] + b"\0\xff" * 40,
    "a gzip bomb": gzip.compress(b"\0" * (64 * MB), 9),
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "HTML": b"<!DOCTYPE html>\n<html><body>\n<p>text\n",
    "one word": b"film",
}
"""Name -> contents that no reader accepts as they are."""

BROKEN: dict[str, dict[str, bytes]] = {
    ".tsv": {
        "one column": b"the film\nthe cast\n",
        "three columns": b"a\tb\tc\n" * 9,
        "a column more in line 4": TSV.encode().replace(b"\tLe chien", b"\tx\tLe chien", 1),
        "a column less in line 2": TSV.encode().replace(b"eats.\t", b"eats. ", 1),
        "many tabs": b"\t" * 500 + b"\n",
        "header alone": b"text\tlabel\n",
        "header twice": b"text\tlabel\ntext\tlabel\n",
        "header names a column twice": b"text\ttext\tlabel\na\tb\tc\n",
        "header with blanks": b" text \t\ta\na\tb\tc\n",
        "one example": b"The cat.\tLe chat.\n",
        "the same example": b"The cat.\tLe chat.\n" * 20,
        "labels blank": b"text\tlabel\na\t\nb\t \n",
    },
    ".csv": {
        "no header": b"a,b\nc,d\n",
        "an open quote": b'text,label\n"a,good\nb,bad\n',
        "a quote inside": b'text,label\na"b"c,good\n"a" b,bad\n',
        "a column more": b"text,label\na,good,x\nb,bad\n",
        "a column less": b"text,label\na\nb,bad\n",
        "header alone": b"text,label\n",
        "semicolons": b"text;label\na;good\n",
        "one label": b"text,label\n" + b"".join(b"w%d,good\n" % i for i in range(9)),
        "an empty row": b"text,label\na,good\n\nb,bad\n",
    },
    ".jsonl": {
        "half an object": b'{"text": "a", "label"\n',
        "a list": b'["a", "b"]\n',
        "a number": b"7\n",
        "null": b"null\n",
        "an object in an array": b'[{"text": "a", "label": "b"}]\n',
        "single quotes": b"{'text': 'a', 'label': 'b'}\n",
        "a trailing comma": b'{"text": "a", "label": "b",}\n',
        "NaN": b'{"text": "a", "score": NaN}\n' * 9,
        "infinite": b'{"text": "a", "score": 1e999}\n' * 9,
        "a giant integer": f'{{"text": "a", "label": {GIANT}}}\n'.encode(),
        "deeply nested": b"[" * 100_000 + b"\n",
        "deeply nested objects": b'{"a":' * 50_000 + b"\n",
        "a number for the text": b'{"text": 7, "label": "b"}\n' * 9,
        "null for the text": b'{"text": null, "label": "b"}\n' * 9,
        "a list for the label": b'{"text": "a", "label": ["b"]}\n' * 9,
        "a lone surrogate": b'{"text": "a\\ud800", "label": "b"}\n' * 9,
        "an escaped NUL": b'{"text": "a\\u0000", "label": "b"}\n' * 9,
        "empty text": b'{"text": "", "label": "b"}\n' * 9,
        "empty object": b"{}\n" * 9,
        "unknown keys": b'{"one": "a", "two": "b", "three": "c"}\n' * 9,
        "keys that change": b'{"text": "a", "label": "b"}\n{"sentence": "a", "class": "b"}\n',
        "keys twice": b'{"text": "a", "sentence": "c", "label": "b"}\n' * 9,
        "no label in line 3": JSONL.encode() + b'{"text": "a"}\n',
        "one example": b'{"text": "a", "label": "b"}\n',
        "a blank line between": b'{"text": "a", "label": "b"}\n\n{"text": "c", "label": "d"}\n',
        "src a number": b'{"src": 7, "tgt": "b"}\n' * 9,
        "translation a list": b'{"translation": ["a", "b"]}\n' * 9,
        "translation of three": b'{"translation": {"en": "a", "fr": "b", "de": "c"}}\n' * 9,
        "a task unknown": b'{"task": 7, "src": "a", "tgt": "b"}\n' * 9,
        "a summary null": b'{"text": "a", "summary": null}\n' * 9,
        "words without tags": b'{"words": ["a"], "tags": []}\n' * 9,
        "words of numbers": b'{"words": [1], "tags": ["O"]}\n' * 9,
        "words a string": b'{"words": "a b", "tags": "O O"}\n' * 9,
        "blank words": b'{"words": [" "], "tags": ["O"]}\n' * 9,
    },
    ".conll": {
        "one column": b"the\nfilm\n\nwas\n",
        "a column less": CONLL.encode().replace(b"film\tB-X", b"film"),
        "a column more": CONLL.encode().replace(b"film\tB-X", b"film\tx\tB-X"),
        "a blank tag": CONLL.encode().replace(b"B-X", b" "),
        "a blank word": CONLL.encode().replace(b"film", b" "),
        "no sentence": b"-DOCSTART- O\n\n",
        "one sentence": b"the\tO\nfilm\tB-X\n",
    },
    ".conllu": {
        "nine columns": CONLLU.encode().replace(b"\t_\n", b"\n"),
        "wrong number": CONLLU.encode().replace(b"2\tfilm", b"3\tfilm"),
        "no tag": CONLLU.encode().replace(b"NOUN", b"_"),
        "a word for a number": CONLLU.encode().replace(b"2\tfilm", b"two\tfilm"),
        "comments alone": b"# text = nothing\n\n",
        "CoNLL": CONLL.encode(),
    },
    ".json": {
        "half": SQUAD[: len(SQUAD) // 2].encode(),
        "a list": b"[]",
        "a number": b"7",
        "no data": b'{"version": "2.0"}',
        "data a number": b'{"data": 7}',
        "no article": b'{"data": []}',
        "paragraphs null": b'{"data": [{"title": "", "paragraphs": null}]}',
        "context a number": SQUAD.replace('"Ann lives in Oslo."', "7").encode(),
        "qas a string": b'{"data": [{"paragraphs": [{"context": "a", "qas": "b"}]}]}',
        "start a string": SQUAD.replace('"answer_start": 13', '"answer_start": "x"').encode(),
        "start negative": SQUAD.replace('"answer_start": 13', '"answer_start": -4').encode(),
        "start giant": SQUAD.replace('"answer_start": 13', f'"answer_start": {10**30}').encode(),
        "start wrong": SQUAD.replace('"text": "Oslo"', '"text": "nowhere"').encode(),
        "answers null": SQUAD.replace('"answers": [', '"answers": null, "x": [').encode(),
        "id null": SQUAD.replace('"id": "Ann"', '"id": null').encode(),
        "a giant integer": f'{{"data": {GIANT}, "paragraphs": 1}}'.encode(),
        "deeply nested": b'{"paragraphs": ' + b"[" * 100_000,
        "one question": squad(("Ann", "Oslo")).encode(),
    },
}
"""Suffix -> name of the damage -> contents."""

TASK_OF = {
    ".tsv": "translation",
    ".csv": "classification",
    ".jsonl": "classification",
    ".conll": "tagging",
    ".conllu": "tagging",
    ".json": "question-answering",
}
GOOD_FOR_TRAINING: dict[str, set[str]] = {
    ".tsv": {"the same example"},
    ".csv": {"an empty row", "semicolons"},
}
MAY_BE_READ = {
    *((".tsv", "the same example"), (".tsv", "one example"), (".tsv", "header alone"), (".tsv", "header twice")),
    *(
        (".csv", "one label"),
        (".csv", "semicolons"),
        (".csv", "an empty row"),
        (".csv", "header alone"),
        (".csv", "a quote inside"),
        (".jsonl", "one example"),
    ),
    *((".jsonl", "NaN"), (".jsonl", "a task unknown"), (".conll", "one sentence"), (".conllu", "CoNLL")),
    *((".csv", "semicolons"), (".csv", "an empty row")),
    *((".json", "start negative"), (".json", "start giant")),
    *((".json", "one question"), (".tsv", "labels blank"), (".jsonl", "infinite")),
    *((".json", "answers null"), (".jsonl", "keys twice"), (".tsv", "HTML"), (".conll", "one word")),
}
"""Of these, some command reads the contents as legal: a single example, names, or another format."""


def setup_file(name: str, data: bytes) -> Any:
    return lambda place, shared: (place / name).write_bytes(data)


def damaged_corpora() -> Iterator[Case]:
    """Each format with each damage: train, evaluate, and doctor for pairs."""
    for suffix, broken in BROKEN.items():
        task = TASK_OF[suffix]
        for what, data in {**ANY, **broken}.items():
            name = f"data{suffix}"
            lenient = (suffix, what) in MAY_BE_READ
            expect: Expect = either(1, 2, says=()) if lenient else fails(1, 2, says=name)
            train = ["train", name, "--out", "out", *SMALL, "--steps", "1"]
            yield command(f"corpora/train {suffix}: {what}", train, expect, setup_file(name, data))
            line = ["train", name, "--out", "out", *SMALL, "--steps", "1", "--task", task]
            if task != "translation" and what not in ANY:
                yield command(f"corpora/train {task} {suffix}: {what}", line, expect, setup_file(name, data))
            more = ["--max-length", "5"] if task == "translation" else []
            line = ["evaluate", f"{{m}}/bare/{task}", name, *more]
            yield command(f"corpora/evaluate {suffix}: {what}", line, expect, setup_file(name, data))
            if suffix in (".tsv", ".jsonl", ".csv"):
                doctor = Expect(frozenset({0, 1, 2}), findings=True, check=doctor_says_something)
                yield command(f"corpora/doctor {suffix}: {what}", ["doctor", name], doctor, setup_file(name, data))
    for what in ("half an object", "a list", "deeply nested", "a giant integer", "src a number", "translation a list"):
        data = BROKEN[".jsonl"][what]
        for line in (
            "score {m}/bare/translation --src data.jsonl",
            "compare {m}/bare/translation {m}/bare/translation data.jsonl",
            "ablate {m}/bare/translation data.jsonl",
        ):
            id = f"corpora/{line.split()[0]} .jsonl: {what}"
            yield command(id, line, fails(1, 2, says="data.jsonl"), setup_file("data.jsonl", data))


def doctor_says_something(result: Any) -> str | None:
    """Doctor has found an error and names it, or says that the file cannot be read."""
    said = result.out.decode() + result.err
    if result.code == 0 and (" 0 pairs" in f" {said}" or " 0 examples" in f" {said}"):
        return "exit code 0 for a corpus of no pairs"
    if "error: " not in said and " pairs: " not in said and " examples: " not in said:
        return f"neither findings nor an error: {said[:100]!r}"
    return None


def special_files() -> Iterator[Case]:
    """Paths that are no regular text files, for each command that reads a corpus."""

    def setup(place: Path, shared: Path) -> None:
        os.mkfifo(place / "fifo.tsv")
        (place / "folder.tsv").mkdir()
        (place / "loop.tsv").symlink_to("loop.tsv")
        (place / "gone.tsv").symlink_to("nowhere")
        for suffix in (".pot", ".tmx", ".xliff", ".properties", ".docx", ".pdf", ".zip", ".parquet", ".xlsx"):
            (place / f"text{suffix}").write_text('msgid "a"\nmsgstr "b"\n')
        (place / "a\nb.tsv").write_text("a\tb\tc\n")
        (place / "-x.tsv").write_text("a\tb\tc\n")

    paths = (
        *("fifo.tsv", "folder.tsv", "loop.tsv", "gone.tsv", "nowhere.tsv", "/dev/zero", "/dev/random", "/dev/null"),
        *("text.pot", "text.tmx", "text.xliff", "text.properties", "text.docx", "text.pdf", "text.zip", "text.parquet"),
        *(
            "text.xlsx",
            "a\nb.tsv",
            "./-x.tsv",
            "",
            "a" * 300 + ".tsv",
            "a\udcffb.tsv",
            "/proc/self/mem",
            "/proc/kmsg/x",
        ),
    )
    lines = {
        "train": ["train", "@", "--out", "out", *SMALL, "--steps", "1"],
        "train-task": ["train", "@", "--out", "out", *SMALL, "--steps", "1", "--task", "causal-lm"],
        "train-dev": ["train", "{m}/train.tsv", "--dev", "@", "--out", "out", *SMALL, "--steps", "1"],
        "train-more-tgt": [*MORE, "--more-tgt", "@", "--reverse-model", "{m}/bare/translation"],
        "train-more-src": [*MORE, "--more-src", "@", "--forward-model", "{m}/bare/translation"],
        "distill": ["distill", "{m}/bare/translation", "--src", "@", "--out", "out", *SMALL, "--steps", "1"],
        "update": ["update", "{m}/bare/translation", "@", "--out", "out", "--steps", "1"],
        "evaluate": ["evaluate", "{m}/bare/translation", "@"],
        "evaluate-tags": ["evaluate", "{m}/bare/tagging", "@"],
        "doctor": ["doctor", "@"],
        "doctor-dev": ["doctor", "{m}/test.tsv", "--dev", "@"],
        "score": ["score", "{m}/bare/translation", "--src", "@", "--tgt", "{m}/test.fr"],
        "compare": ["compare", "{m}/bare/translation", "{m}/bare/translation", "@"],
        "ablate": ["ablate", "{m}/bare/translation", "@"],
    }
    for name, line in lines.items():
        for path in paths:
            arguments = [path if part == "@" else part for part in line]
            expect: Expect = fails(1, 2)
            if path in ("a\nb.tsv", "./-x.tsv") and name == "evaluate-tags":
                expect = either(1, 2)  # three columns of CoNLL
            id = f"special files/{name}: {path[:30]!r}"
            yield command(id, arguments, expect, setup)


MORE = ("train", "{m}/train.tsv", "--out", "out", *SMALL, "--steps", "1")

KEYS = (
    *("x", "=", "src=", "=a", "src=a src=b", "nowhere=a", "src=a,tgt", "src=a", "src=a.b.c.d tgt=e", "src=0 tgt=1"),
    *(
        "src=translation tgt=translation",
        "src=translation.en tgt=translation.xx",
        "src=日本語 tgt=x",
        "text=src label=",
    ),
    *("src=translation.en. tgt=translation.fr", "src=n tgt=n"),
)


def keys() -> Iterator[Case]:
    """--keys that are wrong for the file."""
    data = b"".join(
        json.dumps({"translation": {"en": f"the cat {i}", "fr": f"le chat {i}"}, "n": i}).encode() + b"\n"
        for i in range(30)
    )
    for value in KEYS:
        for base in (
            ["train", "data.jsonl", "--out", "out", *SMALL, "--steps", "1"],
            ["evaluate", "{m}/bare/translation", "data.jsonl"],
            ["doctor", "data.jsonl"],
            ["score", "{m}/bare/translation", "--src", "data.jsonl"],
        ):
            arguments = [*base, "--keys", *value.split(" ")]
            expect: Expect = fails(1, 2)
            if base[0] == "doctor":
                expect = Expect(frozenset({1, 2}), findings=True, check=doctor_says_something)
            yield command(f"keys/{base[0]} {value}", arguments, expect, setup_file("data.jsonl", data))


def all_corpora() -> Iterator[Case]:
    yield from damaged_corpora()
    yield from special_files()
    yield from keys()
