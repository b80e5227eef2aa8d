"""Standard streams that are closed, full or gone, and input that is hardly text; the number of lines must agree."""

import json
from collections.abc import Iterator
from typing import Any

from tests.hostile.case import Case, command, fails, works

MB = 1 << 20
TEXT_COMMANDS = {
    "translate": "translate {m}/bare/translation --max-length 5",
    "translate-json": "translate {m}/bare/translation --max-length 5 --json",
    "summarize": "summarize {m}/bare/summarization --max-length 5",
    "complete": "complete {m}/bare/causal-lm --max-length 5 --beam 1",
    "generate": "generate {m}/bare/causal-lm --max-length 5 --temperature 1",
    "classify": "classify {m}/bare/classification",
    "classify-json": "classify {m}/bare/classification --json",
    "tag": "tag {m}/bare/tagging",
    "tag-json": "tag {m}/bare/tagging --json",
    "answer": "answer {m}/bare/question-answering",
    "similarity": "similarity {m}/bare/regression",
    "fill-mask": "fill-mask {m}/bare/masked-lm",
    "correct": "correct {m}/bare/translation --max-length 5",
    "run-skip-gram": "run {m}/bare/skip-gram",
    "run-multitask": "run {m}/bare/multitask --max-length 5",
}
WORD = {"answer": "Where?\tAnn lives in Oslo.", "similarity": "a film\tcast", "fill-mask": "the <mask>"}


def word(name: str) -> bytes:
    """A line that the command accepts."""
    return WORD.get(name.removesuffix("-json"), "the film").encode()


GOOD = {
    "empty": (lambda w: b"", 0),
    "one line without an end": (lambda w: w, 1),
    "one blank line": (lambda w: b"\n", 1),
    "blank lines": (lambda w: b"\n \n\n  \n", 4),
    "lines and blank lines": (lambda w: w + b"\n\n" + w + b"\n \n" + w, 5),
    "CR LF": (lambda w: w + b"\r\n\r\n" + w + b"\r\n", 3),
    "a lone CR": (lambda w: w + b" \r " + w.split(b"\t")[0] + b"\n" + w + b"\n", 2),
    "U+2028 and U+0085": (lambda w: w + "\u2028x\u2029y\u0085z\x0b\x0c\x1c\n".encode() + w + b"\n", 2),
    "a BOM": (lambda w: b"\xef\xbb\xbf" + w + b"\n" + w + b"\n", 2),
    "BOM alone": (lambda w: b"\xef\xbb\xbf\n", 1),
    "control characters": (lambda w: w + b"\x01\x02\x1b[31m\x7f\n" + w + b"\n", 2),
    "combining characters": (lambda w: w + ("a" + "\u0301" * 500).encode() + b"\n", 1),
    "emoji and scripts": (lambda w: w + " 👩‍👩‍👧 العربية ไทย 𝔘𝔫\u202e".encode() + b"\n", 1),
    "names of special tokens": (lambda w: w + b" <s> </s> <pad> [CLS] [SEP] <unk> <extra_id_0>\n", 1),
    "300 lines": (lambda w: (w + b"\n") * 300, 300),
    "a long word": (lambda w: w + b"a" * 30_000 + b"\n", 1),
    "many words": (lambda w: w + b" film" * 3000 + b"\n", 1),
    "U+FFFD": (lambda w: w + "\ufffd\ufeff\u200b\u00ad".encode() + b"\n", 1),
}
BAD = {
    "NUL": (lambda w: w + b"\n" + w + b"\0\n", "standard input:2"),
    "not UTF-8": (lambda w: w + b"\n" + w + b"\xff\n", "standard input:2"),
    "Latin-1": (lambda w: w + b"\n\xe9t\xe9\t" + w + b"\n", "standard input:2"),
    "half a character": (lambda w: w + b"\n" + w + b"\xe2\x82", "standard input:2"),
    "a surrogate": (lambda w: w + b"\n" + w + b"\xed\xa0\x80\n", "standard input:2"),
    "overlong": (lambda w: w + b"\n" + w + b"\xc0\xaf\n", "standard input:2"),
    "UTF-16": (lambda w: w.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (lambda w: w.decode().encode("utf-16-le"), "standard input:1"),
    "a megabyte and one byte": (lambda w: w + b"\n" + b"a" * (MB + 1) + b"\n", "standard input:2"),
    "truncated gzip": (lambda w: b"\x1f\x8b\x08\x00" + b"\0" * 20, "gzip"),
}


def texts() -> Iterator[Case]:
    """Each command that reads lines, on input that is hardly text."""
    for name, line in TEXT_COMMANDS.items():
        for what, (make, n_lines) in GOOD.items():
            arguments = [*line.split(" ")]
            yield command(
                f"text/{name}: {what}",
                arguments,
                works(n_lines, check=check_json if name.endswith("json") else None),
                stdin=make(word(name)),
            )
        for what, (make, says) in BAD.items():
            expect = fails(1, says=says, partial=True)
            yield command(f"text/{name}: {what}", line, expect, stdin=make(word(name)))
    words = b" ".join([b"film"] * 240_000) + b"\n"
    assert len(words) > MB
    yield command("text/tag: 240,000 words", TEXT_COMMANDS["tag"], fails(1, says="longer than"), stdin=words)
    words = b" ".join([b"a"] * 240_000) + b"\n"
    yield command("text/tag: 240,000 short words", TEXT_COMMANDS["tag"], works(1), stdin=words)
    yield command("text/classify: 240,000 short words", TEXT_COMMANDS["classify"], works(1), stdin=words)
    for name in ("similarity", "answer"):
        for what, data in {"no tab": b"the film\n", "three tabs": b"a\tb\tc\td\n", "two tabs": b"a\tb\tc\n"}.items():
            if name == "answer" and what != "no tab":
                continue  # a context may have tabs
            expect = fails(1, says="standard input:2" if name == "similarity" else "line 2", partial=True)
            stdin = word(name) + b"\n" + data
            yield command(f"text/{name}: {what}", TEXT_COMMANDS[name], expect, stdin=stdin)
        for what, data in {"a tab alone": b"\t\n", "nothing before the tab": b"\tfilm\n"}.items():
            expect = works(1) if name == "similarity" else works_or_fails()
            yield command(f"text/{name}: {what}", TEXT_COMMANDS[name], expect, stdin=data)
    for data in (b"no mask here\n", b"<mask> <mask>\n", b"<mask>" * 50 + b"\n", b"<mask\n"):
        yield command(f"text/fill-mask: {data[:20]!r}", TEXT_COMMANDS["fill-mask"], works_or_fails(1), stdin=data)


def works_or_fails(n_lines: int = 1) -> Any:
    from tests.hostile.case import either

    return either(1, n_lines=n_lines, partial=True)


def check_json(result: Any) -> str | None:
    """Each line of output is a JSON object."""
    for number, line in enumerate(result.out.decode().split("\n")[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError:
            return f"line {number} of the output is not JSON"
        if not isinstance(record, dict):
            return f"line {number} of the output is not a JSON object"
    return None


OUTPUT_COMMANDS = {
    **TEXT_COMMANDS,
    "info": "info {m}/bare/translation",
    "info-json": "info {m}/bare/translation --json",
    "evaluate": "evaluate {m}/bare/classification {m}/classification-test.jsonl",
    "evaluate-json": "evaluate {m}/bare/translation {m}/test.tsv --json --max-length 5",
    "compare": "compare {m}/bare/classification {m}/bare/classification {m}/classification-test.jsonl",
    "doctor": "doctor {m}/test.tsv",
    "doctor-json": "doctor {m}/test.tsv --json",
    "similar": "similar {m}/bare/skip-gram film",
    "score": "score {m}/bare/translation --src {m}/test.tsv",
    "inspect": "inspect {m}/bare/classification film",
    "inspect-json": "inspect {m}/bare/classification film --json",
    "trace": "trace {m}/bare/classification film",
    "trace-json": "trace {m}/bare/classification film --json",
    "ablate": "ablate {m}/bare/classification {m}/classification-test.jsonl",
    "worked-example": "worked-example",
    "export": "export {m}/masked-lm-bert --out exported",
    "import": "import {m}/theirs --out imported",
    "help": "--help",
    "train-help": "train --help-all",
    "version": "--version",
}


def streams() -> Iterator[Case]:
    """Every command that prints, with each of its streams closed, full or gone."""
    for name, line in OUTPUT_COMMANDS.items():
        reads = name in TEXT_COMMANDS
        stdin: bytes = word(name) + b"\n" if reads else b""
        for stdout in ("closed", "full"):
            expect = fails(1, says="cannot be written")
            yield command(f"streams/{name}, stdout {stdout}", line, expect, stdin=stdin, stdout=stdout)
        quiet = works(codes=frozenset({0, -13}))  # the end by SIGPIPE
        yield command(f"streams/{name}, reader gone", line, quiet, stdin=stdin, stdout="reader gone")
        if reads:
            expect = fails(1, says="standard input")
            yield command(f"streams/{name}, stdin closed", line, expect, stdin="closed")
            yield command(f"streams/{name}, stdin /dev/null", line, works(0), stdin="/dev/null")
        else:
            yield command(f"streams/{name}, stdin closed", line, works(), stdin="closed")
    for name in ("translate", "classify", "tag"):
        expect = fails(1, says="without a line end")
        yield command(f"streams/{name}, stdin /dev/zero", TEXT_COMMANDS[name], expect, stdin="/dev/zero")


def all_streams() -> Iterator[Case]:
    yield from texts()
    yield from streams()
