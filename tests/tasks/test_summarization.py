"""Lengths of summarization: what is trained, what is cut, and the default maximum length."""

import json
import random

import pytest

from glassformer.decode_config import DecodeConfig
from glassformer.tasks.summarization import Summarizer
from glassformer.train_config import TrainConfig
from glassformer.training.run import train

WORDS = "the cat sat on a mat while some dog slept under old trees near big rivers".split()  # noqa: SIM905
SMALL = {
    "preset": "tiny",
    "threads": 1,
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 16,
    "n_layers": 1,
    "vocab_size": 300,
    "tokenizer": "word",
}


def write(path, lengths):
    """A file of texts of these numbers of words, each with a summary of three words."""
    rng = random.Random(5)
    lines = [
        json.dumps({"text": " ".join(rng.choices(WORDS, k=n)), "summary": " ".join(rng.choices(WORDS, k=3))})
        for n in lengths
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_pairs_with_a_blank_side_are_counted(tmp_path):
    path, messages = tmp_path / "a.jsonl", []
    path.write_text('{"text": "a b", "summary": "a"}\n{"text": " ", "summary": "b"}\n{"text": "c", "summary": ""}\n')
    assert [pair.src for pair in Summarizer.read([path], [], log=messages.append)] == ["a b"]
    assert messages == [f"warning: 2 lines that are blank on one side or both were left out (first: {path}:2)"]


def trained(tmp_path, lengths, **options):
    path = write(tmp_path / "a.jsonl", lengths)
    task = train(TrainConfig(src=(path,), out=tmp_path / "out", steps=1, **SMALL, **options), quiet=True)
    return task, (tmp_path / "out" / "train.log").read_text()


@pytest.mark.parametrize("n_words", [100, 110])
def test_a_text_that_was_trained_as_a_whole_is_not_cut(tmp_path, n_words):
    task, log = trained(tmp_path, [n_words] * 40, max_len=128)
    assert "cut off" not in log
    text = json.loads((tmp_path / "a.jsonl").read_text().split("\n")[0])["text"]
    assert len(task.prompt(text)) > 64 + 1
    warnings = []
    task.run([text, text + " " + text], warn=lambda i, what: warnings.append((i, what)))
    assert warnings == [(1, "longer than the maximum source length of 63 tokens: its end was cut off")]


def test_texts_that_are_cut_in_training_are_counted(tmp_path):
    _, log = trained(tmp_path, [30] * 30 + [300] * 30, max_len=128)
    assert "pairs, the end of the text was cut off, since the model has 128 positions (--max-len)" in log


@pytest.mark.parametrize(("n_words", "max_len"), [(20, 128), (300, 320), (2000, 1024)])
def test_the_default_length_follows_the_data(tmp_path, n_words, max_len):
    task, _ = trained(tmp_path, [n_words] * 40)
    assert task.config.max_len == max_len


def write_pairs(path, pairs):
    """A file of texts and summaries of these numbers of words."""
    rng = random.Random(5)
    lines = [json.dumps({"text": words(rng, n), "summary": words(rng, m)}) for n, m in pairs]
    path.write_text("\n".join(lines) + "\n")
    return path


def words(rng, n):
    return " ".join(rng.choices(WORDS, k=n))


def test_long_summaries_are_trained_and_may_be_as_long_in_use(tmp_path):
    path = write_pairs(tmp_path / "a.jsonl", [(300, 150)] * 40)
    task = train(TrainConfig(src=(path,), out=tmp_path / "out", steps=1, **SMALL), quiet=True)
    assert "left out" not in (tmp_path / "out" / "train.log").read_text()
    assert task.max_new_tokens(DecodeConfig()) == task.longest_trained_output == 151


def test_a_text_that_leaves_too_few_positions_for_a_summary_is_reported(tmp_path):
    path = write_pairs(tmp_path / "a.jsonl", [(120, 3), (40, 20)] * 20)
    task = train(TrainConfig(src=(path,), out=tmp_path / "out", steps=1, max_len=128, **SMALL), quiet=True)
    warnings = []
    rng = random.Random(6)
    task.run([words(rng, n) for n in (100, 115)], warn=lambda i, what: warnings.append((i, what)))
    assert warnings == [(1, "the output has at most 12 tokens: the model has 128 positions")]
    warnings.clear()
    task.run([words(rng, 20)], DecodeConfig(max_length=80), warn=lambda i, what: warnings.append((i, what)))
    assert warnings == [(0, "the output has at most 64 tokens: the model has 128 positions")]
