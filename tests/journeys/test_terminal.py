"""Every command on a terminal: standard input, output and error are a pseudo-terminal."""

import json
import os
import pty
import random
import signal
import sys
import termios
import threading

import pytest
import torch

import glassformer as gf
from glassformer import cli
from glassformer.cli import demo
from glassformer.corpora.demo import pairs
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.texts import no_op
from tests.interop.ours import make
from tests.journeys.conftest import RARE, SMALL, glassformer, write_lines

WORDS = ["the", "a", "film", "was", "cast", "great", "lovely", "bad", "dull"]
BIO = {"great": "B-X", "lovely": "I-X"}


def on_terminal(*arguments, typed: str = "") -> tuple[int, str]:
    """Run a command with a pseudo-terminal as its three streams; its exit code and what it wrote."""
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    chunks: list[bytes] = []

    def collect() -> None:
        while True:
            try:
                chunks.append(os.read(master, 65536))
            except OSError:  # the terminal is closed
                return

    reader = threading.Thread(target=collect)
    reader.start()
    os.write(master, typed.encode() + b"\x04")  # control-D ends the input
    before = sys.stdin, sys.stdout, sys.stderr, torch.get_num_threads()
    files = [open(os.dup(slave), mode) for mode in "rww"]
    sys.stdin, sys.stdout, sys.stderr = files
    code = 0
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdin, sys.stdout, sys.stderr, n_threads = before
        torch.set_num_threads(n_threads)
        torch.use_deterministic_algorithms(False)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for file in files:
            file.close()
        os.close(slave)
        reader.join()
        os.close(master)
    return code, b"".join(chunks).decode().replace("\r\n", "\n")


def examples(rng: random.Random, n: int, label) -> list[str]:
    texts = [[rng.choice(WORDS) for _ in range(rng.randrange(2, 7))] for _ in range(n)]
    return [json.dumps(label(words)) for words in texts]


LABELED = {
    "classification": lambda words: {"text": " ".join(words), "label": words[0]},
    "regression": lambda words: {"text": " ".join(words), "text2": words[-1], "score": len(words) + 0.5},
    "tagging": lambda words: {"words": words, "tags": [BIO.get(word, "O") for word in words]},
    "summarization": lambda words: {"src": " ".join(words), "tgt": words[0]},
}


@pytest.fixture(scope="session")
def models(corpus, tmp_path_factory):
    """A model folder of each task, trained for two steps."""
    folder = tmp_path_factory.mktemp("models")
    rng = random.Random(1)
    text = write_lines(folder / "text.txt", [" ".join(rng.choice(WORDS) for _ in range(9)) for _ in range(300)])
    context = {"context": "Ann lives in Oslo.", "qas": [{"id": "1", "question": "Where?", "answers": []}]}
    context["qas"][0]["answers"] = [{"text": "Oslo", "answer_start": 13}]
    other = {"context": "Bob lives in Rome.", "qas": [{"id": "2", "question": "Where?", "answers": []}]}
    other["qas"][0]["answers"] = [{"text": "Rome", "answer_start": 13}]
    squad = write_lines(folder / "squad.json", [json.dumps({"data": [{"title": "", "paragraphs": [context, other]}]})])
    write_lines(folder / "numbers.txt", range(40))  # what an untrained translator leaves as it is
    files = {
        "translation": [corpus / "train.en", corpus / "train.fr"],
        "causal-lm": [text],
        "skip-gram": [text],
        "masked-lm": [text],
        "question-answering": [squad],
        **{task: [write_lines(folder / f"{task}.jsonl", examples(rng, 60, label))] for task, label in LABELED.items()},
    }
    for task, paths in files.items():
        small = ["--preset", "tiny", "--d-model", 32, *SMALL[-6:]] if task == "skip-gram" else SMALL  # it has no layers
        done = glassformer("train", *paths, "--task", task, "--out", folder / task, "--steps", 2, *small, *RARE)
        assert done.returncode == 0, done.stderr
    return folder


def use(folder, *parts: str) -> list[str]:
    return [part.replace("@", f"{folder}/") for part in parts]


COMMANDS = {
    "train": (["train", "@text.txt", "--out", "@trained", "--steps", "2", *SMALL, *RARE], ""),
    "distill": (["distill", "@translation", "--src", "@numbers.txt", "--out", "@student", "--steps", "2", *SMALL], ""),
    "update": (["update", "@translation", "@pairs.tsv", "--out", "@updated", "--steps", "2", "--max-drop", "100"], ""),
    "run": (["run", "@skip-gram"], "film\n\nfilm cast\n"),
    "translate": (["translate", "@translation", "--max-length", "5"], "The cat.\n\nThe dog.\n"),
    "evaluate": (["evaluate", "@classification", "@classification.jsonl"], ""),
    "shortlist": (["shortlist", "@translation", "--src", "@calibrate.en", "--ref", "@calibrate.fr"], ""),
    "calibrate": (["calibrate", "@translation", "--src", "@calibrate.en", "--ref", "@calibrate.fr"], ""),
    "compare": (["compare", "@classification", "@classification", "@classification.jsonl"], ""),
    "similar": (["similar", "@skip-gram", "film", "--n", "2"], ""),
    "score": (["score", "@translation", "--src", "@pairs.tsv"], ""),
    "info": (["info", "@translation"], ""),
    "inspect": (["inspect", "@classification", "the film was great"], ""),
    "trace": (["trace", "@classification", "the film was great"], ""),
    "ablate": (["ablate", "@classification", "@classification.jsonl", "--examples", "3"], ""),
    "report": (["report", "@classification", "--out", "@report.html"], ""),
    "worked-example": (["worked-example"], ""),
    "doctor": (["doctor", "@clean.tsv"], ""),
    "export": (["export", "@masked-lm-bert", "--out", "@exported"], ""),
    "import": (["import", "@theirs", "--out", "@imported"], ""),
    "summarize": (["summarize", "@summarization", "--temperature", "1", "--max-length", "5"], "the film was\n\n"),
    "generate": (["generate", "@causal-lm", "--max-length", "5"], "the film\n\n"),
    "complete": (["complete", "@causal-lm", "--beam", "1", "--max-length", "5"], "the film\n\n"),
    "classify": (["classify", "@classification"], "the film\n\n"),
    "tag": (["tag", "@tagging"], "the film\n\n"),
    "answer": (["answer", "@question-answering"], "Where?\tAnn lives in Oslo.\n\n"),
    "similarity": (["similarity", "@regression"], "the film\tcast\n\n"),
    "embed": (["embed", "@embedder"], "the film\n\n"),
    "fill-mask": (["fill-mask", "@masked-lm"], "the <mask>\n\n"),
    "correct": (["correct", "@translation", "--max-length", "5"], "The cat.\n\n"),
    "serve": (["serve", "--limits"], ""),
    "demo": (["demo", "--out", "@demo", "--steps", "2", "--pairs", "200"], ""),
}


def test_every_command_has_a_case():
    assert {*COMMANDS} == {name for name in cli.app if not name.startswith("-")}


@pytest.fixture(scope="session")
def folder(models):
    write_lines(models / "pairs.tsv", ["The cat.\tLe chat.", "The dog.\tLe chien."])
    write_lines(models / "clean.tsv", ["The cat sleeps.\tLe chat dort.", "The dog eats.\tLe chien mange."])
    sources = ["The cat.", "The dog."]
    outputs = gf.load(models / "translation", device="cpu").run(sources, warn=no_op)
    # After two steps an output may be empty: a source whose words are right in half of the lines.
    output, source = max(zip(outputs, sources, strict=True), key=lambda pair: len(pair[0]))
    write_lines(models / "calibrate.en", [source] * 400)
    write_lines(models / "calibrate.fr", [output, output, "none of it", "none of it"] * 100)
    options = ["--tokenizer", "wordpiece", "--task", "masked-lm", "--steps", 2, *SMALL, *RARE]
    done = glassformer("train", models / "text.txt", "--out", models / "masked-lm-bert", *options)
    assert done.returncode == 0, done.stderr
    make("feature-extraction").save(models / "embedder")
    done = glassformer("export", models / "masked-lm-bert", "--out", models / "theirs")
    assert done.returncode == 0, done.stderr
    return models


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.slow if name == "demo" else ()) for name in COMMANDS]
)
def test_a_command_runs_on_a_terminal(folder, command, monkeypatch):
    monkeypatch.setattr(demo, "N_DEV", 2)
    monkeypatch.setattr(demo, "N_TEST", 2)
    monkeypatch.setitem(demo.RECIPE, "threads", 1)
    monkeypatch.setattr(pairs, "SHOWCASE", ())
    arguments, typed = COMMANDS[command]
    code, output = on_terminal(*use(folder, *arguments), typed=typed)
    assert "Traceback" not in output, output
    assert code == 0, output
    assert typed.count("\n") <= output.count("\n")


def test_streamed_text_names_what_was_not_read(folder):
    typed = "the film\n\nfilm\n" + "a " * 400 + "\n"
    code, output = on_terminal("run", folder / "causal-lm", "--max-length", 5, typed=typed)
    assert code == 0, output
    assert "line 4: longer than the" in output


def test_streamed_text_ends_at_its_first_newline(folder, monkeypatch):
    monkeypatch.setattr(LanguageModel, "stream", lambda *_, **options: iter(["the ", "film\nwas", " cast"]))
    assert on_terminal("run", folder / "causal-lm", typed="a\n\nb\n") == (0, "the film\n\nthe film\n")
