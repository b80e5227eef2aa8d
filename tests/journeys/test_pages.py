"""The commands and snippets of the pages for beginners, with the output that the pages show."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from glassformer.cli import demo
from glassformer.corpora.demo import pairs
from glassformer.documents.tmx import TMX_END, tmx_entry, tmx_start
from tests.journeys.conftest import RARE, SMALL, glassformer, write_lines
from tests.journeys.test_docs import DOCS, python_blocks


def session(name: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it prints."""
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    commands = [entry for block in blocks for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(lines[0], lines[1:]) for lines in (entry.rstrip("\n").split("\n") for entry in commands)]


def execute(command: str) -> str:
    """What a command prints: its standard output, then its standard error."""
    before, pipe, after = command.partition("| glassformer ")
    words, redirection, source = (f"glassformer {after}" if pipe else command).partition(" < ")
    if not words.startswith("glassformer "):
        return subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    stdin = Path(source).read_text(encoding="utf-8") if redirection else execute(before) if pipe else ""
    done = glassformer(*shlex.split(words)[1:], stdin=stdin)
    return done.stdout + done.stderr


def pattern(lines: list[str]) -> re.Pattern[str]:
    """What matches an output: `…` alone on a line is any number of lines, within a line any text."""
    parts = ["(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in lines]
    return re.compile("".join(parts))


@pytest.mark.parametrize("name", ["files.md", "troubleshooting.md"])
def test_commands_print_what_the_page_shows(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "en-fr")
    commands = session(name)
    assert commands
    for command, expected in commands:
        printed = execute(command)
        assert pattern(expected).fullmatch(printed), f"{command}\n{printed}"


@pytest.mark.parametrize("name", ["python.md", "pipelines.md"])
def test_the_snippets_print_what_the_page_shows(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = python_blocks(name)
    assert blocks
    for block in blocks:
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", block, flags=re.MULTILINE)
        assert len(expected) == block.count("print(")
        exec(compile(block, name, "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == expected


def labels(lines: list[str]) -> set[str]:
    """The first word of each line, with # in place of numbers. ECE is left out: few words cannot fit a confidence."""
    return {re.sub(r"\d[\d,.:]*", "#", line.split()[0]) for line in lines if line.split()} - {"…", "ECE"}


def test_the_tutorial_of_a_table_runs_and_prints_the_lines_it_shows(tmp_path, monkeypatch):
    """With a small table and few steps: numbers are others than those of the page."""
    monkeypatch.chdir(tmp_path)
    for name, numbers in (("reviews.csv", range(80)), ("new.csv", range(80, 100))):
        rows = [
            f'{i},"a {"warm" if i % 2 else "dull"} film, number {i}",{("negative", "positive")[i % 2]}' for i in numbers
        ]
        write_lines(Path(name), ["id,review,opinion", *rows])
    commands = session("tutorial-table.md")
    assert len(commands) >= 9
    for command, expected in commands:
        command = " ".join([*command.split(" --minutes")[:1], *map(str, FEW)]) if "train" in command else command
        printed = execute(command)
        if command.startswith("echo"):
            assert printed in ("positive\n", "negative\n")
            continue
        assert labels(expected) <= labels(printed.splitlines()), f"{command}\n{printed}"


FEW = [*SMALL, *RARE, "--steps", "2"]


def test_the_tutorial_of_a_memory_runs_and_prints_the_lines_it_shows(tmp_path, monkeypatch):
    """With a small memory and few steps: numbers are others than those of the page."""
    monkeypatch.chdir(tmp_path)
    pairs_of = {
        name: [(f"a {word} cat, number {i}", f"un gato {word}, número {i}") for i in numbers for word in ("red", "wet")]
        for name, numbers in (("memory", range(60)), ("new", range(60, 70)))
    }
    for name, rows in pairs_of.items():
        entries = (tmx_entry(src, tgt, ("en", "es")) for src, tgt in rows)
        Path(f"{name}.tmx").write_text(f"{tmx_start('en')}{''.join(entries)}{TMX_END}")
    write_lines(
        Path("messages.po"), ['msgid "a red cat, number 1"', 'msgstr ""', "", 'msgid "a blue dog"', 'msgstr ""']
    )
    write_lines(Path("corrected.po"), ['msgid "a blue dog"', 'msgstr "un perro azul"'])
    commands = session("tutorial-memory.md")
    assert len(commands) >= 7
    for command, expected in commands:
        if "train" in command:
            command = " ".join([*command.split(" --minutes")[:1], *map(str, FEW)])
        if "update" in command:
            command += " --steps 2 --threads 1 --max-drop 100"
            expected = [line for line in expected if not line.startswith("  ")]  # corrections
        command = command.replace(" --min-confidence 0.5", "")  # a model of two steps has none
        printed = execute(command)
        assert labels(expected) <= labels(printed.splitlines()), f"{command}\n{printed}"


def test_the_tutorial_runs_in_its_order_and_prints_the_lines_it_shows(tmp_path, monkeypatch):
    """With a small corpus and few steps: numbers and translations are others than those of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "N_DEV", 20)
    monkeypatch.setattr(demo, "N_TEST", 2)
    monkeypatch.setattr(pairs, "SHOWCASE", ())
    monkeypatch.setitem(demo.RECIPE, "threads", 1)
    commands = session("tutorial.md")
    assert [command.split()[1] for command, _ in commands if command.startswith("glassformer ")] == [
        *("demo", "doctor", "train", "evaluate", "train", "compare", "inspect")
    ]
    for command, expected in commands:
        command = command.replace("glassformer demo", "glassformer demo --pairs 3000 --steps 2")
        if "--init-from" in command:
            command = command.partition(" --epochs")[0] + " --steps 2 --threads 1"
        elif "glassformer train" in command:
            command = " ".join([command.partition(" --minutes")[0], *map(str, FEW)])
        printed = execute(command)
        if "glassformer translate" in command:
            assert printed.count("\n") >= len(expected) == 1, command
            continue
        if "glassformer " in command:
            assert labels(expected) <= labels(printed.splitlines()), f"{command}\n{printed}"
