"""The Python API with wrong arguments, and pairs of calls whose results must agree or differ."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Expect, either, fails, works
from tests.hostile.prepare import SMALL, TASKS
from tests.hostile.streams import TEXT_COMMANDS, word

Call = Callable[[Path, Path], Any]


def call(id: str, expect: Expect, function: Call) -> Case:
    """A case of a Python call; a text that it returns says what is wrong with the result."""

    def run(place: Path, shared: Path) -> str | None:
        found = function(place, shared)
        return found if isinstance(found, Wrong) else None

    return Case(id, (), expect, call=run)


class Wrong(str):
    """What is wrong with a result."""


def consumed(results: Any) -> Any:
    """Results, computed now: a pipeline answers an iterable one by one."""
    return results if isinstance(results, list | dict) else list(results)


class Name(str):
    """A str of another class, which is as good as a str."""


WRONG_TYPES: dict[str, Any] = {
    "None": None,
    "a number": 7,
    "a fraction": 2.5,
    "bytes": b"a",
    "a list": [7],
    "a dict": {"a": 1},
    "object": object(),
    "a set": {"a"},
    "a type": int,
    "a function": len,
    "True": True,
}
NO_MODEL: dict[str, Any] = {
    **WRONG_TYPES,
    "an empty name": "",
    "nowhere": "nowhere",
    "a file": "file",
    "NUL": "a\0b",
    "a long name": "a" * 5000,
    "a list of names": ["a"],
    "/dev/null": "/dev/null",
    "a surrogate": "\ud800",
}


def loading() -> Iterator[Case]:
    import glassformer as gf

    for name, value in NO_MODEL.items():
        yield call(f"Python/load {name}", fails(1), lambda place, shared, v=value: gf.load(v))
        yield call(
            f"Python/pipeline model {name}",
            fails(1),
            lambda place, shared, v=value: gf.pipeline("translation", model=v),
        )
    devices = {**WRONG_TYPES, "cuda": "cuda", "tpu": "tpu", "empty": "", "cuda:9": "cuda:9", "meta": "meta"}
    for name, value in devices.items():
        expect = fails(1)
        yield call(
            f"Python/load, device {name}",
            expect,
            lambda place, shared, v=value: gf.load(shared / "bare" / "classification", device=v),
        )
        yield call(
            f"Python/pipeline, device {name}",
            expect if value not in (None,) else works(),
            lambda place, shared, v=value: gf.pipeline(model=str(shared / "bare" / "classification"), device=v),
        )


def calling() -> Iterator[Case]:
    """Each task called with values that are no texts, and with texts at the border of what it can read."""
    import glassformer as gf

    values: dict[str, Any] = {
        **WRONG_TYPES,
        "a list with None": ["a", None],
        "a list with a number": ["a", 7],
        "a nested list": [["a"]],
        "a tuple of three": ("a", "b", "c"),
        "a tuple with a number": ("a", 7),
        "a generator": (x for x in "ab"),
    }
    for task in TASKS:
        for name, value in values.items():
            if task == "tagging" and name in ("a nested list",):
                continue  # the words of a sentence
            yield call(
                f"Python/{task} called with {name}",
                fails(1),
                lambda place, shared, t=task, v=value: gf.load(shared / "bare" / t)(v),
            )
        for name, value in {
            "an empty text": "",
            "an empty list": [],
            "a blank text": "  ",
            "a list of blanks": ["", " ", "a"],
            "NUL": "a\0b",
            "a surrogate": "a\ud800b",
            "newlines": "a\nb\r\nc",
            "a long text": "the film " * 3000,
            "another class of str": Name("the film"),
        }.items():

            def run(place: Path, shared: Path, task=task, value=value) -> Any:
                found = gf.load(shared / "bare" / task)(value)
                if isinstance(value, list) and len(found) != len(value):
                    return Wrong(f"{len(found)} results for {len(value)} texts")
                return None

            yield call(f"Python/{task} called with {name}", either(1), run)
        yield call(
            f"Python/{task} called with two texts",
            fails(1) if task != "question-answering" else either(1),
            lambda place, shared, t=task: gf.load(shared / "bare" / t)("a", "b", "c"),
        )
        yield call(
            f"Python/{task} called with an unknown option",
            fails(1, says="colour"),
            lambda place, shared, t=task: gf.load(shared / "bare" / t)("a", colour=7),
        )
        yield call(
            f"Python/{task} saved to a file",
            fails(1),
            lambda place, shared, t=task: gf.load(shared / "bare" / t).save(shared / "text.txt"),
        )
        yield call(
            f"Python/{task} moved to no device",
            fails(1),
            lambda place, shared, t=task: gf.load(shared / "bare" / t).to("nowhere"),
        )
    for option in (
        "beam",
        "temperature",
        "max_length",
        "nbest",
        "top_k",
        "top_p",
        "seed",
        "length_penalty",
        "precision",
    ):
        for name, value in {"text": "x", "None in a list": [None], "negative": -1, "nan": float("nan")}.items():
            for task in ("translation", "causal-lm", "summarization"):
                if task != "translation" and option == "nbest":
                    continue
                yield call(
                    f"Python/{task} called with {option} {name}",
                    fails(1),
                    lambda place, shared, t=task, o=option, v=value: gf.load(shared / "bare" / t)("a", **{o: v}),
                )


def training() -> Iterator[Case]:
    import glassformer as gf

    small = {SMALL[i][2:].replace("-", "_"): SMALL[i + 1] for i in range(0, len(SMALL), 2)}
    for name, value in NO_MODEL.items():
        yield call(
            f"Python/train on {name}",
            fails(1),
            lambda place, shared, v=value: gf.train(v, out="out", steps=1, quiet=True, **small),
        )
        if name in ("a long name", "NUL", "a surrogate", "/dev/null") or not isinstance(value, str):
            yield call(
                f"Python/train, out {name}",
                fails(1),
                lambda place, shared, v=value: gf.train(shared / "train.tsv", out=v, steps=1, quiet=True, **small),
            )
    for option in ("steps", "lr", "family", "d_model", "dropout", "task", "keys", "tokenizer", "init_from"):
        for name, value in WRONG_TYPES.items():
            legal = (
                value is None
                or (option, name) == ("keys", "a set")
                or (name in ("True",) and option in ("steps", "lr"))
                or (option, name) in OTHER_LEGAL
            )
            if legal or (option == "steps" and name == "a number"):
                continue
            yield call(
                f"Python/train, {option} {name}",
                fails(1, says=option) if option != "task" or not isinstance(value, str) else fails(1),
                lambda place, shared, o=option, v=value: gf.train(
                    shared / "train.tsv", out="out", quiet=True, **{**small, "steps": 1, o: v}
                ),
            )
    yield call("Python/train without arguments", fails(1, says="src"), lambda place, shared: gf.train())
    yield call(
        "Python/train without out", fails(1, says="out"), lambda place, shared: gf.train(str(shared / "train.tsv"))
    )
    yield call(
        "Python/train, unknown option",
        fails(1, says="colour"),
        lambda place, shared: gf.train(shared / "train.tsv", out="out", colour=7),
    )


OTHER_LEGAL = {
    ("lr", "a number"),
    ("lr", "a fraction"),
    ("d_model", "a number"),
    ("d_model", "True"),
    ("init_from", "bytes"),
}


def pipelines() -> Iterator[Case]:
    import glassformer as gf

    tasks = {
        "translation": "translation",
        "summarization": "summarization",
        "text-generation": "causal-lm",
        "fill-mask": "masked-lm",
        "question-answering": "question-answering",
        "text-classification": "classification",
        "token-classification": "tagging",
        "text2text-generation": "multitask",
    }
    for pipeline, task in tasks.items():
        for name, value in {**WRONG_TYPES, "a list with None": [None], "a list with a number": ["a", 7]}.items():
            yield call(
                f"Python/pipeline {pipeline} on {name}",
                fails(1) if name != "a set" else either(1),  # an iterable of texts
                lambda place, shared, p=pipeline, t=task, v=value: consumed(
                    gf.pipeline(p, model=str(shared / "bare" / t))(v)
                ),
            )
        for other in tasks:
            if other != pipeline:
                legal = {
                    ("text2text-generation", "translation"),
                    ("text2text-generation", "summarization"),
                    ("translation", "text2text-generation"),
                    ("summarization", "text2text-generation"),
                    ("text-generation", "summarization"),
                    ("summarization", "text-generation"),
                }
                yield call(
                    f"Python/pipeline {other} of a {task} model",
                    either(1) if (other, pipeline) in legal else fails(1),
                    lambda place, shared, o=other, t=task: gf.pipeline(o, model=str(shared / "bare" / t)),
                )
        yield call(
            f"Python/pipeline {pipeline}, unknown option",
            fails(1, says="colour"),
            lambda place, shared, p=pipeline, t=task: gf.pipeline(p, model=str(shared / "bare" / t), colour=7),
        )
    for name, value in {**WRONG_TYPES, "nowhere": "nowhere", "empty": ""}.items():
        yield call(
            f"Python/pipeline, task {name}",
            works() if value is None else fails(1),
            lambda place, shared, v=value: gf.pipeline(v, model=str(shared / "bare" / "translation")),
        )
    for option, value in (("framework", "tf"), ("trust_remote_code", True), ("tokenizer", "x"), ("dtype", "nowhere")):
        yield call(
            f"Python/pipeline, {option} {value}",
            fails(1, says=option.removeprefix("torch_")),
            lambda place, shared, o=option, v=value: gf.pipeline(
                "translation", model=str(shared / "bare" / "translation"), **{o: v}
            ),
        )


# Pairs that must agree or differ


def run_lines(arguments: list[str], data: bytes) -> tuple[int, list[str], str]:
    """A command in a process of its own below this one: exit code, lines of output, messages."""
    read, write = os.pipe()
    out, err = Path("pair.out"), Path("pair.err")
    child = os.fork()
    if child == 0:
        import sys

        os.close(write)
        os.dup2(read, 0)
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin, sys.stdout, sys.stderr = (open(i, m, encoding="utf-8", closefd=False) for i, m in enumerate("rww"))
        code = 99
        try:
            from glassformer.cli import main

            main(arguments)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(read)
    with os.fdopen(write, "wb") as file:
        file.write(data)
    _, status = os.waitpid(child, 0)
    lines = out.read_text(encoding="utf-8").split("\n")[:-1]
    return os.waitstatus_to_exitcode(status), lines, err.read_text(encoding="utf-8")


def filled(line: str, shared: Path) -> list[str]:
    return [part.replace("{m}", str(shared)) for part in line.split(" ")]


def pairs() -> Iterator[Case]:
    for name, line in TEXT_COMMANDS.items():
        if name in ("generate", "run-skip-gram"):
            continue
        w = word(name).decode()
        others = [w, "the " + w, w + " great", w + "s"]

        def alone_and_together(place: Path, shared: Path, line=line, others=others) -> Any:
            arguments = filled(line, shared)
            _, together, _ = run_lines(arguments, "".join(f"{text}\n" for text in others).encode())
            for i, text in enumerate(others):
                _, alone, _ = run_lines(arguments, f"{text}\n".encode())
                if rounded(alone) != rounded(together[i : i + 1]):
                    return Wrong(f"line {i + 1}: alone {alone}, in a batch {together[i : i + 1]}")
            return None

        def blanks_between(place: Path, shared: Path, line=line, others=others) -> Any:
            arguments = filled(line, shared)
            _, plain, _ = run_lines(arguments, "".join(f"{text}\n" for text in others).encode())
            _, spaced, _ = run_lines(arguments, "".join(f"\n{text}\n \n" for text in others).encode())
            if rounded(spaced[1::3]) != rounded(plain):
                return Wrong("blank lines change the answers to other lines")
            # Translations keep the white space around a text, so that " " stays as it is.
            blank = [answer for answer in spaced[0::3] + spaced[2::3] if answer.strip()]
            if not line.endswith("--json") and blank:
                return Wrong(f"a blank line has an answer: {blank[:4]}")
            return None

        def line_ends(place: Path, shared: Path, line=line, others=others) -> Any:
            arguments = filled(line, shared)
            found = [
                run_lines(arguments, data.encode())[:2]
                for data in (
                    "\n".join(others) + "\n",
                    "\n".join(others),
                    "\r\n".join(others) + "\r\n",
                    "\ufeff" + "\n".join(others) + "\n",
                )
            ]
            return None if all(f == found[0] for f in found) else Wrong("line ends or a BOM change the answers")

        def environment_and_option(place: Path, shared: Path, line=line, others=others) -> Any:
            arguments = filled(line, shared)
            if "--max-length" not in arguments:
                return None
            at = arguments.index("--max-length")
            without = arguments[:at] + arguments[at + 2 :]
            data = "".join(f"{text}\n" for text in others).encode()
            first = run_lines(arguments, data)[:2]
            os.environ["GLASSFORMER_MAX_LENGTH"] = "5"
            return None if run_lines(without, data)[:2] == first else Wrong("the environment is not obeyed")

        def warned(place: Path, shared: Path, line=line, w=w) -> Any:
            arguments = filled(line, shared)
            code, lines, said = run_lines(arguments, f"{w}\n\n{w}{' film' * 3000}\n".encode())
            if code == 0 and len(lines) != 3:
                return Wrong(f"{len(lines)} lines of output for 3 lines of input")
            is_windowed = line.startswith(("tag ", "answer "))  # reads a long text in overlapping windows
            if code == 0 and "line 3" not in said and not is_windowed:
                return Wrong("a truncated line is not named")
            return None

        for what, function in (
            ("a line alone and in a batch", alone_and_together),
            ("blank lines between", blanks_between),
            ("line ends and BOM", line_ends),
            ("environment and option", environment_and_option),
            ("a truncated line is named", warned),
        ):
            yield call(f"agreement/{name}: {what}", works(), function)
    yield from doctor_pairs()
    yield from json_pairs()


def rounded(lines: list[str]) -> list[Any]:
    """Lines with the numbers of JSON rounded to 4 digits: a batch may change the last ones."""

    def shorten(value: Any) -> Any:
        if isinstance(value, float):
            return round(value, 4)
        if isinstance(value, list):
            return [shorten(each) for each in value]
        return {key: shorten(each) for key, each in value.items()} if isinstance(value, dict) else value

    return [shorten(json.loads(line)) if line.startswith("{") else line for line in lines]


def doctor_pairs() -> Iterator[Case]:
    def piped(place: Path, shared: Path) -> Any:
        if run_lines(["doctor", str(shared / "test.tsv")], b"")[0] not in (0, 1):
            return Wrong("doctor fails on a good file")
        for name in ("doctor", "train"):
            read, write = os.pipe()
            os.write(write, (shared / "test.tsv").read_bytes())
            os.close(write)
            more = ["--format", "tsv"] if name == "doctor" else ["--out", "out", "--task", "translation"]
            code, lines, said = run_lines([name, f"/dev/fd/{read}", *more], b"")
            os.close(read)
            if code == 0 or "only once" not in " ".join(said.split()):
                return Wrong(f"{name} on a pipe: exit code {code}, {lines[:1]} {said[:80]!r}")
        return None

    yield call("agreement/doctor and train refuse a pipe", works(), piped)

    def same(place: Path, shared: Path, what: str) -> Any:
        data = (shared / "train.tsv").read_bytes()
        variants = {
            "CR LF": data.replace(b"\n", b"\r\n"),
            "a BOM": b"\xef\xbb\xbf" + data,
            "no last newline": data[:-1],
        }
        for name, content in (("a.tsv", data), ("b.tsv", variants[what])):
            (place / name).write_bytes(content)
        first, second = (json.loads("\n".join(run_lines(["doctor", n, "--json"], b"")[1])) for n in ("a.tsv", "b.tsv"))
        return None if first["counts"] == second["counts"] else Wrong(f"{first['counts']} and {second['counts']}")

    for what in ("no last newline",):
        yield call(f"agreement/doctor: {what}", works(), lambda p, s, w=what: same(p, s, w))

    def formats(place: Path, shared: Path) -> Any:
        rows = [line.split("\t") for line in (shared / "test.tsv").read_text().split("\n")[:-1]]
        (place / "a.jsonl").write_text("".join(json.dumps({"src": a, "tgt": b}) + "\n" for a, b in rows))
        subprocess.run(["gzip", "-k", "a.jsonl"], check=True)
        model = str(shared / "bare" / "translation")
        found = [
            run_lines(["score", model, "--src", *files], b"")[1]
            for files in (
                [str(shared / "test.tsv")],
                ["a.jsonl"],
                ["a.jsonl.gz"],
                [str(shared / "test.en"), "--tgt", str(shared / "test.fr")],
            )
        ]
        same = all(f == found[0] for f in found) and len(found[0]) == len(rows)
        return None if same else Wrong(f"scores differ by format: {[len(f) for f in found]}")

    yield call("agreement/score of TSV, JSONL, gzip and two files", works(), formats)


def json_pairs() -> Iterator[Case]:
    for name, line in TEXT_COMMANDS.items():
        if name.endswith("-json") or name == "generate":
            continue

        def plain_and_json(place: Path, shared: Path, name=name, line=line) -> Any:
            w = word(name)
            data = w + b"\n\n" + w + b"\n \n"
            code, plain, _ = run_lines(filled(line, shared), data)
            json_code, records, _ = run_lines(filled(line + " --json", shared), data)
            if (code, len(plain)) != (json_code, len(records)):
                return Wrong(f"{len(plain)} lines and {len(records)} records")
            for record in map(json.loads, records):
                if not isinstance(record, dict):
                    return Wrong("a record is no object")
            return None

        yield call(f"agreement/{name}: as many JSON records as lines", works(), plain_and_json)


def all_calls() -> Iterator[Case]:
    yield from loading()
    yield from calling()
    yield from training()
    yield from pipelines()
    yield from pairs()
