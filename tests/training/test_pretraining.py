"""Options of a training that begins with a model that was trained on text without labels."""

import pytest

from glassformer.presets import FINE_TUNING, preset
from glassformer.train_config import TrainConfig
from glassformer.training.options import stored_options
from glassformer.training.run import train

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "vocab_size": 300}


@pytest.fixture
def files(tmp_path):
    words = ["red", "blue", "old", "new", "house", "tree"]
    lines = [f"the {words[i % 6]} {words[i // 6 % 6]} is {i}" for i in range(80)]
    for name, text in (
        ("text.txt", "".join(f"{line}\n" for line in lines)),
        ("labels.csv", "text,label\n" + "".join(f"{line},{'ab'[i % 3 == 0]}\n" for i, line in enumerate(lines))),
        ("pairs.tsv", "".join(f"{line}\t{line.upper()}\n" for line in lines)),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def options_of(files, name, out, **options):
    config = TrainConfig(src=(files / name,), out=files / out, steps=1, threads=1, **options)
    train(config, quiet=True)
    return stored_options(config)


def log_of(files, out):
    return (files / out / "train.log").read_text()


def test_a_translator_from_a_denoiser_has_the_options_of_its_preset(files):
    first = {"task": "span-corruption", "family": "transformer", "preset": "tiny", **SIZES}
    options_of(files, "text.txt", "first", **first)
    tuned = options_of(files, "pairs.tsv", "out", init_from=files / "first")
    expected = preset("tiny")
    for name in ("optimizer", "lr", "dropout", "augment", "warmup_ratio", "decay_ratio"):
        assert getattr(tuned, name) == expected[name] != FINE_TUNING.get(name)
    assert (tuned.d_model, tuned.n_layers, tuned.preset) == (16, 1, "tiny")
    assert f"Options that are not given: those of the preset tiny, as in the training of {files / 'first'}." in log_of(
        files, "out"
    )


def test_a_classifier_from_a_masked_language_model_has_the_options_of_its_preset(files):
    options_of(files, "text.txt", "first", task="masked-lm", preset="tiny", **SIZES)
    tuned = options_of(files, "labels.csv", "out", init_from=files / "first")
    assert (tuned.lr, tuned.decay_ratio) == (preset("tiny", "bert")["lr"], preset("tiny", "bert")["decay_ratio"])
    assert options_of(files, "labels.csv", "given", init_from=files / "first", lr=2e-5).lr == 2e-5


def test_other_models_have_the_options_of_fine_tuning(files):
    options_of(files, "text.txt", "first", task="masked-lm", preset="tiny", **SIZES)
    again = options_of(files, "text.txt", "again", task="masked-lm", init_from=files / "first")
    third = options_of(files, "labels.csv", "third", init_from=files / "again")
    (files / "first" / "run.toml").unlink()  # as an imported model
    imported = options_of(files, "labels.csv", "imported", init_from=files / "first")
    labels = options_of(files, "labels.csv", "labels", init_from=files / "third")
    for options, out in ((again, "again"), (third, "third"), (imported, "imported"), (labels, "labels")):
        assert (options.lr, options.decay_ratio) == (FINE_TUNING["lr"], FINE_TUNING["decay_ratio"])
        assert "Options that are not given" not in log_of(files, out)


def test_a_damaged_file_of_options_is_said(files):
    options_of(files, "text.txt", "first", task="masked-lm", preset="tiny", **SIZES)
    with (files / "first" / "run.toml").open("a") as file:
        file.write("lr = 1\n")
    assert options_of(files, "labels.csv", "out", init_from=files / "first").lr == FINE_TUNING["lr"]
    assert "run.toml: damaged or changed since the run wrote it. The options are those of fine-tuning." in log_of(
        files, "out"
    )
