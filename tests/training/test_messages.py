"""Messages of a training: its budget, what it counts, the command it suggests, and folders of failed trainings."""

import json
import shutil

import pytest
import torch

from glassformer.errors import ConfigError, UserError
from glassformer.learning.classification import ClassificationObjective
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.registry import load
from glassformer.train_config import TrainConfig
from glassformer.training import options
from glassformer.training import run as module
from glassformer.training.model_card import usage_example
from glassformer.training.options import stored_options
from glassformer.training.progress import Reporter
from glassformer.training.run import train
from tests.journeys.conftest import glassformer

SMALL = {"preset": "tiny", "threads": 1, "d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 1, "vocab_size": 280}


@pytest.fixture
def labeled(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"number {i} is,{'ab'[i % 3 == 0]}\n" for i in range(40)))
    return path


def log_of(out):
    return (out / "train.log").read_text()


def test_the_budget_in_minutes_is_that_of_the_training(labeled, tmp_path):
    train(TrainConfig(src=(labeled,), out=tmp_path / "out", minutes=0.01, **SMALL), quiet=True)
    assert "0.01 minutes of training (about 0:0" in log_of(tmp_path / "out")


def test_a_fine_tuned_model_is_named_after_its_folder_and_single_texts_have_one_count(labeled, tmp_path):
    train(TrainConfig(src=(labeled,), out=tmp_path / "first", steps=1, **SMALL), quiet=True)
    first = tmp_path / "first"
    train(TrainConfig(src=(labeled,), out=tmp_path / "out", steps=1, init_from=first, threads=1), quiet=True)
    assert f"Model: bert from {first} (0.0 M parameters)" in log_of(tmp_path / "out")
    assert " + 0 tokens" not in log_of(tmp_path / "out")


def test_another_family_than_that_of_the_model_to_begin_with_is_refused(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the mat.\n" * 200)
    train(TrainConfig(src=(text,), out=tmp_path / "first", steps=1, task="causal-lm", **SMALL), quiet=True)
    options = {"src": (text,), "out": tmp_path / "out", "steps": 1, "init_from": tmp_path / "first"}
    with pytest.raises(ConfigError, match=r"--family llama: --init-from \S+ keeps its family gpt2"):
        train(TrainConfig(**options, family="llama"), quiet=True)
    train(TrainConfig(**options, family="gpt2"), quiet=True)


def test_a_run_may_go_on_with_another_number_of_threads(labeled, tmp_path):
    options = {"src": (labeled,), "out": tmp_path / "out", **SMALL}
    train(TrainConfig(**options, steps=1), quiet=True)
    train(TrainConfig(**options | {"threads": 2}, steps=2), quiet=True)
    assert json.loads((tmp_path / "out" / "env.json").read_text())["threads"] == 2
    assert "Resuming from step 1" in log_of(tmp_path / "out")


def test_a_trained_model_without_checkpoints_is_not_replaced(labeled, tmp_path):
    options = {"src": (labeled,), "out": tmp_path / "out", **SMALL}
    train(TrainConfig(**options, steps=1), quiet=True)
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    for changed in ({"steps": 2}, {"steps": 1, "lr": 0.5}):
        with pytest.raises(ConfigError, match="contains a trained model, and no intact checkpoint"):
            train(TrainConfig(**options | changed), quiet=True)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights


def test_the_speed_of_a_classification_is_in_examples(tmp_path):
    with Reporter(tmp_path, step=0, quiet=True) as reporter:
        reporter.targets_name, reporter.last_plain_s = "examples", -1e9
        reporter.step(0.5, {"step": 3, "loss": 1.0, "tokens_per_s": 1234.0}, 7)
    assert "1,234 examples/s" in (tmp_path / "train.log").read_text()


def test_the_suggested_command_for_questions_has_both_parts():
    from types import SimpleNamespace

    task = SimpleNamespace(command="answer", example_input=QuestionAnswerer.example_input)
    assert usage_example(task, "m") == r"printf 'Where does Ann live?\tAnn lives in Oslo.\n' | glassformer answer m"


def test_a_training_that_failed_before_its_first_checkpoint_does_not_block_its_folder(labeled, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def fail(*_: object) -> None:
        raise UserError("no")

    with monkeypatch.context() as patch:
        patch.setattr(module, "Trainer", fail)
        with pytest.raises(UserError, match="no"):
            train(TrainConfig(src=(labeled,), out=out, steps=1, lr=0.5, **SMALL), quiet=True)
    assert (out / "run.toml").exists()
    other = tmp_path / "b.csv"
    other.write_text(labeled.read_text() + "more,a\n")
    train(TrainConfig(src=(other,), out=out, steps=1, lr=0.1, **SMALL), quiet=True)
    assert json.loads((out / "data" / "corpus.json").read_text())["files"][0]["path"] == str(other)
    with pytest.raises(ConfigError, match="contains a run with other options"):
        train(TrainConfig(src=(other,), out=out, steps=1, lr=0.2, **SMALL), quiet=True)


@pytest.mark.parametrize("command", ["translate", "classify", "fill-mask"])
def test_a_text_or_a_file_after_the_model_is_told_to_standard_input(tmp_path, command):
    done = glassformer(command, "m", "a text")
    assert (done.returncode, f"Use: echo 'a text' | glassformer {command} m" in done.stderr) == (2, True), done.stderr
    path = tmp_path / "a.txt"
    path.touch()
    assert f"glassformer {command} m < {path}" in glassformer(command, "m", path).stderr


def test_info_prints_the_labels_and_their_counts(labeled, tmp_path):
    train(TrainConfig(src=(labeled,), out=tmp_path / "out", steps=1, **SMALL), quiet=True)
    lines = glassformer("info", tmp_path / "out").stdout.split("\n")
    assert "labels               a b" in lines
    counts = next(line for line in lines if line.startswith("  labels "))
    assert [text.split()[0] for text in counts.split(maxsplit=1)[1].split(", ")] == ["a", "b"]


def test_the_preset_is_chosen_with_the_threads_of_the_training(tmp_path, monkeypatch):
    pairs = tmp_path / "a.tsv"
    pairs.write_text("".join(f"a {i}\tb {i}\n" for i in range(40)))
    found = []
    monkeypatch.setattr(options, "available_flop", lambda *_: found.append(torch.get_num_threads()))
    config = {name: value for name, value in SMALL.items() if name not in ("preset", "threads")}
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(TrainConfig(src=(pairs,), out=tmp_path / "out", minutes=0.001, threads=1, **config), quiet=True)
    finally:
        torch.set_num_threads(before)
    assert found == [1]


@pytest.mark.parametrize(
    ("more", "fraction"),
    [({}, 0.1), ({"augment": 0.0}, 0.0), ({"tokenizer": "word", "vocab_size": 80}, None), ({"family": "rnn"}, None)],
)
def test_a_tenth_of_the_pairs_is_changed_by_default_and_this_is_said(tmp_path, more, fraction):
    pairs, out = tmp_path / "a.tsv", tmp_path / "out"
    pairs.write_text("".join(f"a {i}\tb {i}\n" for i in range(40)))
    options = {name: value for name, value in SMALL.items() if name in ("d_model", "n_layers", "vocab_size")} | more
    train(TrainConfig(src=(pairs,), out=out, steps=1, threads=1, preset="tiny", **options), quiet=True)
    assert stored_options(TrainConfig(src=(pairs,), out=out)).augment == (fraction or 0)
    assert ("38 pairs, 10% of them changed at each use (--augment)." in log_of(out)) == bool(fraction)


def test_fine_tuning_changes_no_pairs_by_default(tmp_path):
    pairs, first, out = tmp_path / "a.tsv", tmp_path / "first", tmp_path / "out"
    pairs.write_text("".join(f"a {i}\tb {i}\n" for i in range(40)))
    train(TrainConfig(src=(pairs,), out=first, steps=1, **SMALL), quiet=True)
    train(TrainConfig(src=(pairs,), out=out, steps=1, init_from=first, threads=1), quiet=True)
    assert stored_options(TrainConfig(src=(pairs,), out=out)).augment == 0
    assert "changed at each use" not in log_of(out)


@pytest.mark.parametrize(("names", "is_kept"), [("ab", True), ("xy", False)])
def test_the_head_is_that_of_the_first_model_only_for_the_same_labels(labeled, tmp_path, names, is_kept, monkeypatch):
    train(TrainConfig(src=(labeled,), out=tmp_path / "first", steps=1, **SMALL), quiet=True)
    other = tmp_path / "b.csv"
    other.write_text("text,label\n" + "".join(f"number {i} is,{names[i % 2]}\n" for i in range(40)))
    found = []
    build = module.build
    monkeypatch.setattr(module, "build", lambda *given, **more: found.append(build(*given, **more)) or found[0])
    begun = []
    fit = ClassificationObjective.fit_statistics
    copied = lambda objective, data: begun.append(objective.model.classifier.weight.clone()) or fit(objective, data)
    monkeypatch.setattr(ClassificationObjective, "fit_statistics", copied)
    config = TrainConfig(src=(other,), out=tmp_path / "out", steps=1, init_from=tmp_path / "first", threads=1)
    train(config, quiet=True)
    first = load(tmp_path / "first").model.classifier.weight
    assert torch.equal(begun[0], first) == is_kept


def test_texts_that_are_left_out_are_described_by_the_limit_that_they_exceed(tmp_path):
    table = tmp_path / "a.csv"
    long = " ".join(["word"] * 60)
    table.write_text("text,label\n" + f"{long},a\n" + "".join(f"number {i},{'ab'[i % 2]}\n" for i in range(60)))
    config = {"max_len": 24, **SMALL}
    train(TrainConfig(src=(table,), dev_src=(table,), out=tmp_path / "out", steps=1, **config), quiet=True)
    assert "1 examples longer than 22 tokens, or pairs longer than 21, were left out" in log_of(tmp_path / "out")


def test_a_vocabulary_size_without_effect_is_named(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the mat.\n" * 200)
    config = {**SMALL, "task": "causal-lm", "tokenizer": "char", "steps": 1}
    train(TrainConfig(src=(text,), out=tmp_path / "out", **config), quiet=True)
    assert "--vocab-size 280 has no effect: the tokenizer has an entry for each char" in log_of(tmp_path / "out")


def test_how_many_embeddings_are_taken_over_is_logged(tmp_path):
    text, other = tmp_path / "text.txt", tmp_path / "other.txt"
    text.write_text("The cat sat on the mat.\n" * 200)
    other.write_text("Мир труд май.\n" * 200)
    sizes = {name: value for name, value in SMALL.items() if name in ("threads", "d_model")}
    for path in (text, other):
        config = {**sizes, "task": "skip-gram", "steps": 1, "preset": "tiny", "tokenizer": "word"}
        train(TrainConfig(src=(path,), out=path.with_suffix(""), **config), quiet=True)
    config = {**SMALL, "task": "causal-lm", "tokenizer": "word", "steps": 1}
    for path, expected in ((text, "Embeddings: "), (other, "Embeddings: warning: only ")):
        out = tmp_path / f"with-{path.stem}"
        train(TrainConfig(src=(text,), out=out, embeddings=path.with_suffix(""), **config), quiet=True)
        (line,) = (line for line in log_of(out).splitlines() if "Embeddings: " in line)
        assert expected in line
        assert "warning" in expected or "warning" not in line
