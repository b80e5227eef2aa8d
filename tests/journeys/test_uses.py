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


# What each command that trains says of its model: its family, a figure of the dev set, and the range of the figure.
TRAINED = {
    "en-fr": ("transformer", "BLEU", 99, 100),
    "spelling": ("transformer", "BLEU", 0, 100),
    "language": ("gpt2", "loss", 1, 3.5),
    "summaries": ("gpt2", "loss", 0, 0.5),
    "sentiment": ("bert", "accuracy", 0.9, 1),
    "alike": ("bert", "Pearson", -1, 1),
    "entities": ("bert", "score", 0.9, 1),
    "answers": ("bert", "F1", 0.9, 1),
    "bert": ("bert", "loss", 1, 3.5),
    "sentiment-2": ("bert", "accuracy", 0, 1),
    "t5": ("t5", "loss", 1, 4.5),
    "en-fr-2": ("t5", "BLEU", 40, 100),
    "vectors": ("skipgram", "loss", 1, 4.1),
    "language-2": ("gpt2", "loss", 1, 2.5),
    "many": ("t5", "exact", 0.9, 1),
}
FRENCH, SUMMARY = "le chat rouge dort ici", "a cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The files that the page names, each with a rule that a few updates teach."""
    folder, rng = tmp_path_factory.mktemp("uses"), random.Random(1)
    text = lambda *more: " ".join([*(rng.choice(WORDS) for _ in range(rng.randrange(4, 9))), *more])
    write_lines(folder / "train.en", [text(str(n)) for n in range(300)])
    write_lines(folder / "train.fr", [FRENCH] * 300)
    write_lines(folder / "test.en", ["the cat sat on a rug", "a dog ran", "the red cat ran"])
    write_lines(folder / "prompts.txt", ["the cat", ""])
    write_lines(folder / "text.txt", [text() for _ in range(600)])
    write_lines(folder / "spelling.tsv", [f"{word[1:]}{n}\tcat {word}{n}" for n in range(40) for word in WORDS[:2]])
    write_lines(folder / "summaries.jsonl", [json.dumps({"src": text(), "tgt": SUMMARY}) for _ in range(60)])
    moods = [(text(word), label) for _ in range(40) for word, label in (("lovely", "good"), ("dull", "bad"))]
    write_lines(folder / "reviews.csv", ["text,label", *map(",".join, moods)])
    write_lines(folder / "pairs.tsv", ["text\ttext2\tscore", *(f"{text()}\t{text()}\t{n % 6}" for n in range(60))])
    write_lines(folder / "pairs.txt", [f"{text()}\t{text()}" for _ in range(3)])
    rows = [f"{word}\t{'B-X' if word == 'cat' else 'O'}" for _ in range(60) for word in text().split()]
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
    tasks = [{"task": "mood", "text": text, "label": label} for text, label in moods[:40]]
    tasks += [{"task": "short", "src": text(), "tgt": "cat"} for _ in range(40)]
    write_lines(folder / "tasks.jsonl", map(json.dumps, tasks))
    write_lines(folder / "questions.txt", ["Where?\tThe red dog 3 sat on the rug."])
    return folder


def test_the_page_has_a_command_for_every_task():
    from glassformer.cli.run import TASKS_OF_COMMAND

    used = {command.split()[1] for command in COMMANDS}
    assert {name.replace("_", "-") for name in TASKS_OF_COMMAND} - {
        "generate",
        "embed",
    } <= used  # fine-tuning.md has embed


def are_words(line: str) -> bool:
    """Whether most of a text, which is not empty, is words of the files."""
    words = line.split()
    return bool(words) and sum(word in WORDS for word in words) > len(words) / 2


def completes(lines: list[str]) -> bool:
    return are_words(lines[0]) and lines[1] == ""


def is_evaluated(lines: list[str]) -> bool:
    figures = {}
    for line in lines:
        name, *numbers = re.match(r"(\w+) +([\d.]+)  95% \[([\d.]+), ([\d.]+)\]", line).groups()
        score, low, high = map(float, numbers)
        assert low <= score <= high <= 1
        figures[name] = score
    return figures.keys() == {"accuracy", "F1", "MCC"} and figures["accuracy"] > 0.9


def is_compared(lines: list[str]) -> bool:
    return [line.split()[0] for line in lines] == ["accuracy", "F1", "MCC"] and all(
        "difference +0.0000 [+0.0000, +0.0000], p = 1.000: not significant" in line for line in lines
    )


def are_neighbors(lines: list[str]) -> bool:
    cosines, units = zip(*(line.split() for line in lines), strict=True)
    result = [float(cosine) for cosine in cosines]
    assert result == sorted(result, reverse=True)
    return set(WORDS) - {"cat"} <= set(units) and "cat" not in units and -1 <= result[-1] <= result[0] <= 1


# What each command that does not train prints: the lines, or whether they are right.
PRINTED = {
    "translate en-fr": [FRENCH] * 3,
    "correct spelling": lambda lines: all(line.startswith("cat ") for line in lines),
    "complete language": completes,
    "summarize summaries": lambda lines: SUMMARY in lines and all(map(are_words, lines)),
    "classify sentiment": lambda lines: set(lines) <= {"good", "bad"},
    "classify sentiment reviews.csv": [],
    "evaluate sentiment": is_evaluated,
    "compare sentiment": is_compared,
    "similarity alike": lambda lines: all(-1 < float(line) < 6 for line in lines),
    "tag entities": lambda lines: (
        [" ".join(word.rpartition("/")[2] for word in line.split()) for line in lines]
        == ["O B-X O O O O", "O O O", "O O B-X O"]
    ),
    "answer answers": ["the rug"],
    "fill-mask bert": lambda lines: (
        lines[0].endswith(" sat on a rug") and are_words(lines[0]) and "<mask>" not in lines[0]
    ),
    "similar vectors": are_neighbors,
    "run many": lambda lines: set(lines) <= {"good", "bad", "cat"},
}
FEW = "--steps 40 --batch-tokens 300 --validate-every 100 --lr"
RATES = {"en-fr|spelling": 0.01, "t5|en-fr-2|many": 0.03}
"""Learning rates with Muon and with Adafactor; 0.003 with Adam."""


@pytest.mark.slow
def test_every_command_works_in_its_order_and_prints_what_it_should(folder, monkeypatch):
    monkeypatch.chdir(folder)
    trained, printed = [], []
    for command in COMMANDS:
        # Four tasks need all layers of the preset; word vectors have none.
        layers = {} if "--out many" in command or "skip-gram" in command else {"GLASSFORMER_N_LAYERS": "2"}
        rate = next((rate for names, rate in RATES.items() if re.search(rf"--out ({names}) ", command)), 0.003)
        words, _, source = re.sub(r"--minutes \d+", f"{FEW} {rate}", command).partition(" < ")
        stdin = (folder / source.strip()).read_text(encoding="utf-8") if source else ""
        arguments = shlex.split(words)[1:]
        with monkeypatch.context() as few_layers:
            for name, value in layers.items():
                few_layers.setenv(name, value)
            done = glassformer(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if arguments[0] == "train":
            out = arguments[arguments.index("--out") + 1]
            trained.append(out)
            family, figure, low, high = TRAINED[out]
            assert f"Model: {family} " in done.stderr
            assert "Trained 40 steps" in done.stderr
            assert f" to {out}. Try: " in done.stderr
            result = re.search(rf"{figure} (-?[\d.]+) for the last checkpoint", done.stderr)
            assert low <= float(result.group(1).rstrip(".")) <= high, f"{command}: {done.stderr}"
            assert done.stdout == ""
        else:
            printed.append(" ".join(arguments[: 3 if "--out" in arguments else 2]))
            lines, expected = done.stdout.split("\n")[:-1], PRINTED[printed[-1]]
            if source:
                assert len(lines) == stdin.count("\n"), command
            assert expected(lines) if callable(expected) else lines == expected, f"{command}: {done.stdout}"
    assert (trained, printed) == (list(TRAINED), list(PRINTED))
