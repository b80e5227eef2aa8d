"""What every case starts from: tiny models of each task, a run folder and small corpora, in one folder."""

import json
import os
import random
import shutil
from pathlib import Path

WORDS = ["the", "a", "film", "was", "cast", "great", "lovely", "bad", "dull"]
BIO = {"great": "B-X", "lovely": "I-X"}
SMALL = [
    *("--preset", "tiny", "--d-model", "32", "--n-heads", "2", "--d-ff", "32", "--n-layers", "1"),
    *("--vocab-size", "300", "--batch-tokens", "500", "--threads", "1", "--validate-every", "1000"),
]
LABELED = {
    "classification": lambda words: {"text": " ".join(words), "label": words[0]},
    "regression": lambda words: {"text": " ".join(words), "text2": words[-1], "score": len(words) + 0.5},
    "tagging": lambda words: {"words": words, "tags": [BIO.get(word, "O") for word in words]},
    "summarization": lambda words: {"src": " ".join(words), "tgt": words[0]},
    "multitask": lambda words: {"task": "short", "src": " ".join(words), "tgt": words[0]},
}
TASKS = ("translation", "causal-lm", "skip-gram", "masked-lm", "question-answering", *LABELED)
TEST_FILES = {
    "translation": "test.tsv",
    "causal-lm": "text.txt",
    "skip-gram": "text.txt",
    "masked-lm": "text.txt",
    "question-answering": "squad.json",
    **{task: f"{task}-test.jsonl" for task in LABELED},
}
"""Task -> a file to evaluate a model on."""


def write_lines(path: Path, lines) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sentence(rng: random.Random) -> list[str]:
    return [rng.choice(WORDS) for _ in range(rng.randrange(2, 7))]


def squad(*names: tuple[str, str]) -> str:
    paragraphs = [
        {
            "context": f"{who} lives in {where}.",
            "qas": [
                {"id": who, "question": "Where?", "answers": [{"text": where, "answer_start": len(who) + 10}]},
            ],
        }
        for who, where in names
    ]
    return json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})


def write_corpora(shared: Path) -> None:
    """Write a small valid file of each format."""
    from glassformer.corpora.demo.pairs import split_pairs

    rng = random.Random(1)
    train, held_out = split_pairs(200, 20, seed=3)
    for name, pairs in (("train", train), ("test", held_out[:6])):
        write_lines(shared / f"{name}.en", [english for english, _ in pairs])
        write_lines(shared / f"{name}.fr", [french for _, french in pairs])
        write_lines(shared / f"{name}.tsv", ["\t".join(pair) for pair in pairs])
    write_lines(shared / "text.txt", [" ".join(rng.choice(WORDS) for _ in range(9)) for _ in range(150)])
    write_lines(shared / "squad.json", [squad(("Ann", "Oslo"), ("Bob", "Rome"))])
    for task, example in LABELED.items():
        rows = [json.dumps(example(sentence(rng))) for _ in range(60)]
        write_lines(shared / f"{task}.jsonl", rows)
        write_lines(shared / f"{task}-test.jsonl", rows[:6])


def training_files(task: str, shared: Path) -> list[str]:
    if task == "translation":
        return [f"{shared}/train.en", f"{shared}/train.fr"]
    if task == "question-answering":
        return [f"{shared}/squad.json"]
    return [f"{shared}/{task}.jsonl"] if task in LABELED else [f"{shared}/text.txt"]


def train_command(task: str, shared: Path, out: Path | str, *more: str) -> list[str]:
    small = [*SMALL[:4], *SMALL[10:]] if task == "skip-gram" else SMALL  # it has no layers
    return ["train", *training_files(task, shared), "--task", task, "--out", str(out), *small, *more]


def prepare(shared: Path, progress=lambda text: None) -> None:
    """Write the corpora and train the models of `TASKS`, each in a process of its own.

    `{shared}/TASK` is a run folder, `{shared}/bare/TASK` holds the model files alone. `{shared}/run` has several
    checkpoints.
    """
    from glassformer import cli

    def train(arguments: list[str]) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            quiet = os.open(shared / "prepare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                cli.main(arguments)
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status != 0:
            raise RuntimeError(f"could not prepare: glassformer {' '.join(arguments)}")

    write_corpora(shared)
    for task in TASKS:
        progress(f"training a model: {task}")
        train(train_command(task, shared, shared / task, "--steps", "2"))
        files = json.loads((shared / task / "manifest.json").read_text(encoding="utf-8"))["files"]
        (shared / "bare" / task).mkdir(parents=True)
        for name in (*files, "manifest.json"):
            shutil.copy(shared / task / name, shared / "bare" / task / name)
    train([*train_command("translation", shared, shared / "run", "--steps", "4"), "--save-every", "2"])
    wordpiece = ["--tokenizer", "wordpiece", "--steps", "2"]
    train(train_command("masked-lm", shared, shared / "masked-lm-bert", *wordpiece))
    train(["export", str(shared / "masked-lm-bert"), "--out", str(shared / "theirs")])
