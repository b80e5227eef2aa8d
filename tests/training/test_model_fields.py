"""The table `model` of the options: every field of a family's configuration can be set."""

import re
from pathlib import Path

import pytest

from glassformer.errors import ConfigError
from glassformer.models.families import FAMILIES
from glassformer.train_config import TrainConfig
from glassformer.training.options import DERIVED_FIELDS, select_objective_type, store_options, stored_options
from glassformer.training.repeat import config_of
from glassformer.training.run import train

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
OTHER_VALUES = {
    "activation": "silu", "attention": "additive", "pooler_activation": "relu", "sinusoid_layout": "concat",
    "d_head": 10, "n_kv_heads": 1, "norm_eps": 1e-3, "rope_theta": 77.0, "n_encoder_layers": 3, "n_decoder_layers": 2,
}  # fmt: skip
TASKS = {"bert": "masked-lm", "gpt2": "causal-lm", "llama": "causal-lm", "skipgram": "skip-gram"}


def fields_of(family: str) -> set[str]:
    return FAMILIES[family].config_class.model_fields.keys() - DERIVED_FIELDS - TrainConfig.model_fields.keys()


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.tsv"
    path.write_text("".join(f"red cat {i}\tchat rouge {i}\n" for i in range(200)))
    return path


def options(text, out, family, **more) -> TrainConfig:
    task = TASKS.get(family, "translation")
    return TrainConfig.resolve(
        {"src": [text], "out": out, "family": family, "task": task, "preset": "tiny", "d_model": 24, "n_heads": 2,
         "d_ff": 31, "n_layers": 1, "steps": 1, "device": "cpu", "format": "tsv" if task == "translation" else "lines"}
        | more
    )  # fmt: skip


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.slow if family == "t5" else ())
        for family in FAMILIES
        if fields_of(family)
    ],
)
def test_every_field_reaches_the_model(text, tmp_path, family):
    config_class = FAMILIES[family].config_class
    chosen = {}
    for name in fields_of(family):
        default = config_class.model_fields[name].default
        if name in OTHER_VALUES:
            chosen[name] = OTHER_VALUES[name]
        else:
            chosen[name] = not default if isinstance(default, bool) else default + 1
    assert chosen
    more = {"rotary": False} if family == "transformer" else {}  # it excludes learned positions
    task = train(options(text, tmp_path / "run", family, model=chosen, **more), quiet=True)
    assert {name: getattr(task.config, name) for name in chosen} == chosen


@pytest.mark.parametrize("family", FAMILIES)
def test_the_glossary_lists_every_field(family):
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed = {
        name for names, families in rows if family in families.split(", ") for name in re.findall(r"`(\w+)`", names)
    }
    assert listed == fields_of(family)


def test_unknown_fields_are_refused_with_the_known_ones(text, tmp_path):
    with pytest.raises(ConfigError, match=r"(?s)--model heads, d_model: no such field.*Fields: activation, attention,"):
        train(options(text, tmp_path / "run", "transformer", model={"heads": 3, "d_model": 3}), quiet=True)


@pytest.mark.parametrize(
    ("family", "given", "owner"),
    [
        ("rnn", {"n_heads": 4}, "family rnn"),
        ("rnn", {"d_ff": 64}, "family rnn"),
        ("skipgram", {"n_layers": 3}, "family skipgram"),
        ("gpt2", {"pre_norm": True}, "family gpt2"),
        ("gpt2", {"pre_norm": False}, "family gpt2"),
        ("t5", {"pre_norm": True}, "family t5"),
        ("transformer", {"pooling": "mean"}, "family transformer"),
        ("gpt2", {"pooling": "mean"}, "family gpt2"),
        ("transformer", {"mixing_limit": 1000}, "task translation"),
        ("transformer", {"mixing_temperature": 2}, "task translation"),
        ("skipgram", {"label_smoothing": 0.1}, "task skip-gram"),
        ("skipgram", {"dropout": 0.1}, "family skipgram"),
        ("bert", {"label_smoothing": 0.1, "task": "regression"}, "task regression"),
        ("bert", {"label_smoothing": 0.1, "task": "question-answering"}, "task question-answering"),
        *(
            (family, {"label_smoothing": 0.1, "n_layers": 1} if family != "skipgram" else {}, None)
            for family in FAMILIES
        ),
        ("transformer", {"mixing_limit": 9, "mixing_temperature": 2, "task": "multitask"}, None),
        ("bert", {"pooling": "mean", "pre_norm": False, "task": "classification"}, None),
    ],
)
def test_options_that_the_family_or_the_task_does_not_have_are_refused(text, tmp_path, family, given, owner):
    sizes = dict.fromkeys(("n_heads", "d_ff", "n_layers"))
    config = options(text, tmp_path / "run", family, **{"preset": "auto", **sizes, "format": None, **given})
    if owner is None:
        assert select_objective_type(config, None).task_type.name == config.task
        return
    option = next(iter(given)).replace("_", "-")
    with pytest.raises(ConfigError, match=f"--{option}: the {owner} has no such option.\n  Leave it out."):
        select_objective_type(config, None)


@pytest.mark.parametrize("family", ["rnn", pytest.param("t5", marks=pytest.mark.slow)])
def test_a_run_of_a_preset_with_options_that_its_family_lacks_is_given_again_and_repeated(text, tmp_path, family):
    given = {"n_heads": None, "d_ff": None} if family == "rnn" else {}
    train(options(text, tmp_path / "run", family, **given), quiet=True)
    again = TrainConfig.resolve({"out": tmp_path / "again"}, tmp_path / "run" / "run.toml")
    assert (again.pre_norm is not None) == (family == "t5")
    select_objective_type(again, None)
    select_objective_type(config_of(tmp_path / "run", tmp_path / "repeated"), None)


def test_a_run_of_an_earlier_version_with_an_option_that_its_family_lacks_is_resumed_and_repeated(text, tmp_path):
    run = tmp_path / "run"
    train(options(text, run, "rnn", n_heads=None, d_ff=None), quiet=True)
    stored = TrainConfig.resolve({}, run / "run.toml").model_copy(update={"n_heads": 2, "label_smoothing": 0.2})
    store_options(stored)
    select_objective_type(stored, None)
    repeated = config_of(run, tmp_path / "repeated")
    assert (repeated.n_heads, repeated.label_smoothing) == (None, 0.2)
    select_objective_type(repeated, None)
    with pytest.raises(ConfigError, match="--n-heads: the family rnn has no such option"):
        select_objective_type(stored.model_copy(update={"out": tmp_path / "new"}), None)


def test_a_run_of_an_earlier_version_without_later_options_is_resumed_and_repeated_without_them(text, tmp_path):
    run = tmp_path / "run"
    train(options(text, run, "transformer"), quiet=True)
    stored = stored_options(options(text, run, "transformer"))
    assert (stored.rotary, stored.augment) == (True, 0.1)
    store_options(stored.model_copy(update={"rotary": None, "augment": None}))
    for config in (stored_options(stored), config_of(run, tmp_path / "repeated")):
        assert (config.rotary, config.augment) == (False, 0.0)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["attention=additive", "n_encoder_layers=2"], {"attention": "additive", "n_encoder_layers": 2}),
        ("norm_eps=1e-5 scale_embedding=false", {"norm_eps": 1e-5, "scale_embedding": False}),
    ],
)
def test_assignments_are_parsed(texts, expected):
    assert TrainConfig.resolve({"src": ("a",), "out": "b", "model": texts}).model == expected


@pytest.mark.parametrize("texts", [["attention"], ["=3"], ["attention="]])
def test_other_texts_are_refused(texts):
    with pytest.raises(ConfigError, match="expected NAME=VALUE"):
        TrainConfig.resolve({"src": ("a",), "out": "b", "model": texts})
