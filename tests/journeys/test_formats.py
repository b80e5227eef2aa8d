"""Folders that released versions wrote are read for ever, and give the same results (docs/stability.md).

`python -m tests.journeys.test_formats` writes tests/formats/VERSION of this version, before its release. Folders of an
earlier version are never written anew: if a test of one fails, the version that reads it has the defect.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from glassformer.version import __version__
from tests.interop.ours import make
from tests.interop.theirs import LINES
from tests.journeys.conftest import glassformer

FOLDER = Path(__file__).parents[1] / "formats"
TEXTS = ["the cat", "a dog sat on the mat", "Where is the old man?"]
TRAINING = "training"
"""A folder with two text files and a training on them, which was stopped after half of its steps."""
TRAIN = (
    *("train", "train.en", "train.fr", "--out", "run", "--steps", 8, "--save-every", 4, "--validate-every", 8),
    *("--d-model", 16, "--n-heads", 2, "--d-ff", 16, "--n-layers", 1, "--vocab-size", 300, "--threads", 1),
)
SIZES = dict(d_model=16, n_heads=4, d_ff=16, n_layers=1, n_encoder_layers=1, n_decoder_layers=1, max_len=32)
MODELS = {
    "translator": ("translation", "transformer", "bpe"),
    "recurrent": ("translation", "rnn", "word"),
    "prefixes": ("multitask", "t5", "unigram"),
    "language-model": ("causal-lm", "gpt2", "bpe"),
    "llama": ("causal-lm", "llama", "bpe"),
    "classifier": ("classification", "bert", "bpe"),
    "tagger": ("tagging", "bert", "wordpiece"),
    "questions": ("question-answering", "bert", "bpe"),
    "embedder": ("feature-extraction", "bert", "char"),
}
"""Small models with random weights: each family, task with a format of its own, and type of tokenizer."""


def results(folder):
    """What a user gets of a model for each text."""
    texts, options = TEXTS, ()
    if folder.name == "questions":
        texts = [json.dumps({"question": text, "context": f"It is not {text} It is here."}) for text in TEXTS]
    if MODELS[folder.name][0] == "causal-lm":
        options = ("--top-k", "1", "--max-length", "8")
    done = glassformer("run", folder, "--json", *options, stdin="".join(f"{text}\n" for text in texts))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if folder.name == "embedder":
        return [json.loads(record["output"]) for record in found]
    return found


def is_same(result, expected):
    """Whether a result has all that is expected. Numbers may differ by rounding, fields may be new."""
    if isinstance(expected, dict):
        return all(key in result and is_same(result[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(result) == len(expected) and all(map(is_same, result, expected))
    return result == (pytest.approx(expected, abs=1e-4) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("version", sorted(path.name for path in FOLDER.glob("*")))
def test_a_model_of_a_released_version_gives_the_same_results(version, name):
    expected = json.loads((FOLDER / version / f"{name}.json").read_text(encoding="utf-8"))
    assert is_same(results(FOLDER / version / name), expected)


@pytest.mark.parametrize("version", sorted(path.name for path in FOLDER.glob("*")))
def test_a_training_of_a_released_version_is_continued(version, tmp_path, monkeypatch):
    shutil.copytree(FOLDER / version / TRAINING, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    done = glassformer(*TRAIN)
    assert done.returncode == 0, done.stderr
    assert "Resuming from step 4" in done.stderr
    assert "augment = 0.0\n" in (tmp_path / "run" / "run.toml").read_text()  # what is a default now changes no old run
    assert (tmp_path / "run" / "model.safetensors").exists()


def write(folder):
    """Write the folders of this version, in place of those of an earlier state of it."""
    shutil.rmtree(folder, ignore_errors=True)
    training = folder / TRAINING
    training.mkdir(parents=True)
    for name, (task, family, tokenizer) in MODELS.items():
        make(task, family, tokenizer, **SIZES).save(folder / name)
        text = json.dumps(results(folder / name), ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    for language in ("en", "fr"):
        lines = [f"{line}\n" for line in LINES[:80]]
        (training / f"train.{language}").write_text("".join(lines), encoding="utf-8")
    os.chdir(training)
    done = glassformer(*TRAIN)
    assert done.returncode == 0, done.stderr
    for path in Path("run").iterdir():  # as they were before the last steps
        if path.is_file() and path.name not in ("run.toml", "env.json", "metrics.jsonl", "train.log"):
            path.unlink()
    for name in ("checkpoints/step-8", "best"):
        shutil.rmtree(f"run/{name}")


if __name__ == "__main__":
    write(FOLDER / __version__)
