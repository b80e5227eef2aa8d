"""The table `model` of the options: every field of a family's configuration can be set."""

import re
from pathlib import Path

import pytest

from glassformer.errors import ConfigError
from glassformer.models.families import FAMILIES
from glassformer.train_config import TrainConfig
from glassformer.training.options import DERIVED_FIELDS
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
    task = train(options(text, tmp_path / "run", family, model=chosen), quiet=True)
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
