"""The examples of docs/extending.md and docs/inspection.md, as they are printed there."""

import re
from pathlib import Path

import pytest

from glassformer.corpora.pair_formats import PAIR_FORMATS
from glassformer.decode_config import DecodeConfig
from glassformer.generate.request import Sources
from glassformer.metrics.registry import METRICS
from glassformer.model_config import FAMILIES
from glassformer.tasks.registry import load
from glassformer.train_config import TrainConfig
from glassformer.training.optimizer import OPTIMIZERS
from tests.journeys.conftest import glassformer

DOCS = Path(__file__).parents[2] / "docs"


def python_blocks(name: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def registries():
    """Restore the registries that the examples add rows to."""
    before = [(registry, dict(registry)) for registry in (FAMILIES, OPTIMIZERS, PAIR_FORMATS)]
    metrics = list(METRICS)
    yield
    METRICS[:] = metrics
    for registry, rows in before:
        registry.clear()
        registry.update(rows)


def test_every_example_of_extending_runs(capsys, registries):
    namespace: dict[str, object] = {}
    blocks = python_blocks("extending.md")
    assert len(blocks) == 8
    for block in blocks:
        exec(compile(block, "extending.md", "exec"), namespace)
    printed = capsys.readouterr().out.split("\n")
    assert "('a cat', 'un chat')" in printed
    assert printed[-2] == f"{namespace['tokenizer'].vocab_size} 8"


def test_the_examples_of_export_give_the_output_of_the_original(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    task, options = load(model, device="cpu"), DecodeConfig(beam=1)
    source = [*task.tokenizer.encode("The cat sleeps."), task.tokenizer.eos_id]
    expected = task.tokenizer.decode(task.engine(options).decode(Sources([source], options))[0][0].ids)
    for to, example in zip(("ctranslate2", "onnx"), python_blocks("export.md"), strict=True):
        assert glassformer("export", model, "--out", f"en-fr-{to}", "--to", to).returncode == 0
        exec(compile(example.replace("beam_size=4", "beam_size=1"), "export.md", "exec"), {})
        assert capsys.readouterr().out == expected + "\n"


@pytest.mark.parametrize("name", [path.name for path in DOCS.glob("*.md")])
def test_every_link_to_a_file_of_the_repository_leads_somewhere(name):
    links = re.findall(r"\]\((?!http)([^)#]+)", (DOCS / name).read_text(encoding="utf-8"))
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_every_option_that_other_toolkits_are_compared_with_exists():
    table = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in table.split("\n") if row.startswith("| ")]
    options = set(re.findall(r"--([a-z-]+)", " ".join(row[-2] for row in rows)))
    known = {name.replace("_", "-") for config in (TrainConfig, DecodeConfig) for name in config.model_fields}
    assert len(options) > 25
    assert options - known == {"ensemble"}  # an option of `translate` only


def test_every_option_and_variable_of_the_glossary_exists():
    table = (DOCS / "glossary.md").read_text(encoding="utf-8")
    options = set(re.findall(r"^\| `--([a-z-]+)`", table, flags=re.MULTILINE))
    known = {name.replace("_", "-") for config in (TrainConfig, DecodeConfig) for name in config.model_fields}
    assert options
    assert options <= known
