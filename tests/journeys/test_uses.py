"""Every command of docs/uses.md, with fewer minutes."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from tests.journeys.conftest import glassformer, write_lines

TEXT = (Path(__file__).parents[2] / "docs" / "uses.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(glassformer .*)$", TEXT, flags=re.MULTILINE)
WORDS = ["the", "cat", "a", "dog", "red", "sat", "ran", "on", "rug"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, corpus) -> Path:
    """The files that the page names."""
    folder, rng = tmp_path_factory.mktemp("uses"), random.Random(1)
    text = lambda: " ".join(rng.choice(WORDS) for _ in range(rng.randrange(4, 9)))
    for name in ("train.en", "train.fr"):
        (folder / name).write_text((corpus / name).read_text(encoding="utf-8"), encoding="utf-8")
    write_lines(folder / "test.en", [text() for _ in range(3)])
    write_lines(folder / "prompts.txt", ["the cat", ""])
    write_lines(folder / "text.txt", [text() for _ in range(600)])
    write_lines(folder / "spelling.tsv", [f"{word[1:]}{n}\t{word}{n}" for n in range(40) for word in WORDS[:2]])
    write_lines(folder / "summaries.jsonl", [json.dumps({"src": text(), "tgt": text()[:5]}) for _ in range(60)])
    write_lines(folder / "reviews.csv", ["text,label", *(f"{text()},{rng.choice(['good', 'bad'])}" for _ in range(60))])
    write_lines(folder / "pairs.tsv", ["text\ttext2\tscore", *(f"{text()}\t{text()}\t{n % 6}" for n in range(60))])
    write_lines(folder / "pairs.txt", [f"{text()}\t{text()}" for _ in range(3)])
    rows = [f"{word}\t{'B-X' if word == 'cat' else 'O'}" for _ in range(60) for word in [*text().split(), None] if word]
    write_lines(
        folder / "entities.conll", [line for n, row in enumerate(rows) for line in ([row, ""] if n % 5 == 4 else [row])]
    )
    context = lambda n: f"The red dog {n} sat on the rug."
    answer = lambda n: {
        "id": str(n),
        "question": "Where?",
        "answers": [{"text": "the rug", "answer_start": len(str(n)) + 20}],
    }
    squad = {"data": [{"paragraphs": [{"context": context(n), "qas": [answer(n)]} for n in range(40)]}]}
    write_lines(folder / "squad.json", [json.dumps(squad)])
    write_lines(folder / "masked.txt", ["the <mask> sat on a rug"])
    tasks = [{"task": "mood", "text": text(), "label": rng.choice(["good", "bad"])} for _ in range(40)]
    tasks += [{"task": "short", "src": text(), "tgt": text()[:4]} for _ in range(40)]
    write_lines(folder / "tasks.jsonl", map(json.dumps, tasks))
    write_lines(folder / "questions.txt", ["Where?\tThe red dog 3 sat on the rug."])
    return folder


def test_the_page_has_a_command_for_every_task():
    from glassformer.cli.run import FORMS

    used = {command.split()[1] for command in COMMANDS}
    assert set(FORMS) - {"generate"} <= used


def test_every_command_works_in_its_order(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in COMMANDS:
        words, _, source = re.sub(r"--minutes \d+", "--steps 2 --validate-every 100", command).partition(" < ")
        stdin = (folder / source.strip()).read_text(encoding="utf-8") if source else ""
        done = glassformer(*shlex.split(words)[1:], stdin=stdin)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if source:
            assert done.stdout.count("\n") == stdin.count("\n"), command
