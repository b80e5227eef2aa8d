"""Inspection commands: complete pages, and error messages."""

import json
import re
import shutil
from pathlib import Path

import pytest

from glassformer import checkpoint
from tests.inspection.models import CASES, make, text_for
from tests.inspection.test_page import check
from tests.journeys.conftest import RARE, SMALL, glassformer, write_lines
from tests.journeys.test_readme import run

DOCS = (Path(__file__).parents[2] / "docs" / "inspection.md").read_text(encoding="utf-8")
TEXT = "the black cat sat on the couch ."


def test_a_translation_is_inspected_as_page_lines_and_json(model, tmp_path):
    page = tmp_path / "report.html"
    done = glassformer("inspect", model, TEXT, "--out", page)
    assert (done.returncode, done.stdout) == (0, "")
    assert str(page) in done.stderr
    record, _ = check(page.read_text(encoding="utf-8"))
    assert record["beam"]
    assert record["best_path"]
    again = glassformer("inspect", model, TEXT, "--out", page)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert glassformer("inspect", model, TEXT, "--out", page, "--force", "--target", "le chat").returncode == 0
    record, _ = check(page.read_text(encoding="utf-8"))
    assert record["sides"]["target"]["text"] == "le chat"
    lines = glassformer("inspect", model, TEXT, "--target", "le chat").stdout.splitlines()
    assert len(lines) == len(record["predictions"])
    assert all("loss" in line for line in lines)
    assert json.loads(glassformer("inspect", model, TEXT, "--json").stdout)["sides"]["source"]["text"] == TEXT


@pytest.mark.parametrize(("name", "family"), CASES)
def test_every_family_has_a_page(name, family, tmp_path):
    from glassformer import checkpoint

    checkpoint.save_folder(tmp_path / "model", make(name, family).contents())
    done = glassformer("inspect", tmp_path / "model", text_for(name), "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    record, _ = check((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert record["attention"]
    done = glassformer("trace", tmp_path / "model", text_for(name))
    assert done.returncode == 0, done.stderr


def test_a_trace_has_a_line_for_every_tensor(model):
    lines = glassformer("trace", model, TEXT).stdout.splitlines()
    rows = [json.loads(line) for line in glassformer("trace", model, TEXT, "--json").stdout.splitlines()]
    assert len(lines) == len(rows) + 1
    assert {"embedding[0]", "encoder.0.self_attention.weights", "decoder.0.cross_attention.weights", "logits"} <= {
        row["name"] for row in rows
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Briefly trained runs of the tasks whose reports differ."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [f"a {word} film {n}\t{label}" for n in range(30) for word, label in (("lovely", "good"), ("dull", "bad"))]
    labeled = write_lines(folder / "labeled.tsv", ["text\tlabel", *rows])
    tagged = write_lines(
        folder / "tagged.conll", [line for n in range(30) for line in ("the D", f"cat{n} N", "sat V", "")]
    )
    plain = write_lines(folder / "plain.txt", [f"the cat sat on rug {n} ." for n in range(200)])
    for name, path in (("classes", labeled), ("tags", tagged), ("language", plain)):
        sizes = [*SMALL, *RARE, "--max-len", 64]
        done = glassformer("train", path, "--out", folder / name, "--steps", 12, "--save-every", 5, *sizes)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", ["classes", "tags", "language"])
def test_a_report_describes_the_run(runs, name, tmp_path):
    page = tmp_path / "report.html"
    done = glassformer("report", runs / name, "--out", page, "--examples", 20)
    assert done.returncode == 0, done.stderr
    record, _ = check(page.read_text(encoding="utf-8"))
    assert record["curves"]["loss"]
    assert record["curves"][f"dev_{record['metric']}"]
    assert record["data"]["examples"]
    assert "finished" in record["samples"]["outputs"]
    assert any(name.startswith("checkpoints/step-") for name in record["samples"]["outputs"])
    assert record["machine"]["torch"]
    assert record["command"].startswith("glassformer train --src ")
    assert ("confusion" in record) == (name != "language")
    assert [row[3] for row in record["worst"]] == sorted(row[3] for row in record["worst"])
    assert record["worst"][0][3] <= record["best"][0][3]
    if name == "classes":
        assert sum(map(sum, record["confusion"]["counts"])) == min(
            20, len(text_lines(runs / name / "data" / "dev.jsonl"))
        )


def test_parts_are_disabled_and_heads_pruned(runs, tmp_path):
    model, test = runs / "classes", [runs / "labeled.tsv", "--examples", 12]
    page, out = tmp_path / "map.html", tmp_path / "pruned"
    done = glassformer("ablate", model, *test, "--html", page, "--prune", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("full model")
    assert len(lines) == 1 + 2
    record, _ = check(page.read_text(encoding="utf-8"))
    assert [loss["name"] for loss in record["losses"]] == [line.split(" head")[0] for line in lines[1:]]
    least = lines[-1].partition("   ")[0]
    assert f"without {least}:" in done.stderr
    assert "parameters" in done.stderr
    assert json.loads((out / "config.json").read_text())["pruned_heads"] == {least.partition(" head")[0]: 1}
    assert glassformer("classify", out, stdin="a film\n").stdout.strip() in ("good", "bad")
    for parts, n in (("sublayers", 2), ("layers", 1)):
        rows = glassformer("ablate", model, *test, "--parts", parts, "--json").stdout.splitlines()
        assert len(rows) == n
        assert {"part", "accuracy", "loss", "change"} <= json.loads(rows[0]).keys()


@pytest.mark.slow
def test_layers_of_a_translator_are_ablated(model, corpus, tmp_path):
    test = ["--src", corpus / "test.en", "--ref", corpus / "test.fr", "--examples", 2]
    rows = glassformer("ablate", model, *test, "--parts", "layers", "--json").stdout.splitlines()
    assert len(rows) == 2
    assert {"part", "bleu", "loss", "change"} <= json.loads(rows[0]).keys()
    done = glassformer("ablate", model, *test, "--prune", 1, "--out", tmp_path / "pruned")
    assert done.returncode == 0, done.stderr
    assert glassformer("translate", tmp_path / "pruned", stdin=TEXT + "\n").stdout.count("\n") == 1


def text_lines(path):
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


@pytest.mark.slow
def test_the_command_of_a_report_repeats_the_run(model, corpus, tmp_path):
    page = tmp_path / "report.html"
    assert glassformer("report", model, "--out", page).returncode == 0
    record, _ = check(page.read_text(encoding="utf-8"))
    assert {name for name, _ in record["errors"]} >= {"empty", "copy of the source"}
    words = record["command"].split()[1:]
    words[words.index("--out") + 1] = str(tmp_path / "again")
    done = glassformer(*words)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


def test_the_worked_example_is_printed_and_written_as_page(tmp_path):
    page = tmp_path / "worked.html"
    done = glassformer("worked-example", "--html", page)
    assert done.returncode == 0, done.stderr
    for digits in (
        "0.06337894 0.12675788 0.19013681",
        "6.03366485e-06 9.82007865e-01 1.79861014e-02",
        "0.7225201",
        "0.8600013",
    ):
        assert digits in done.stdout
    record, _ = check(page.read_text(encoding="utf-8"))
    assert len(record["steps"]) == 10
    folder = tmp_path / "model"
    checkpoint.save_folder(folder, make("translation", "transformer").contents())
    done = glassformer(
        "worked-example", "--model", folder, "--text", TEXT, "--layer", "decoder.0.cross_attention", "--head", 2,
        "--html", page, "--force",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"cosine of the words -?\d", done.stdout)


BAD = {
    "an empty text": (["inspect", "MODEL", "  "], "the text is empty"),
    "a missing window": (["inspect", "MODEL", "a", "--window", "2"], "this text has 1 windows"),
    "a missing layer": (
        ["worked-example", "--model", "MODEL", "--text", "a", "--layer", "decoder.9.cross_attention"],
        "available: encoder.0.self_attention, decoder.0.self_attention, decoder.0.cross_attention",
    ),
    "a missing head": (["worked-example", "--model", "MODEL", "--text", "a", "--head", "3"], "heads 1 to 2"),
    "a text without a model": (["worked-example", "--text", "a"], "give both"),
    "a folder that is no run": (["report", "EMPTY"], "not a run folder"),
    "no examples to evaluate": (["ablate", "MODEL"], "no evaluation examples given"),
    "pruning without an output folder": (["ablate", "MODEL", "--prune", "1", "--src", "x"], "give both"),
    "a page that cannot be written": (["worked-example", "--html", "EMPTY/no/page.html"], "there is no folder"),
    "a negative number of heads": (["ablate", "MODEL", "--prune", "-1", "--out", "EMPTY/x", "--src", "x"], "at least"),
    "no examples": (["ablate", "MODEL", "--examples", "0", "--src", "x"], "at least 1"),
    "a page in a missing folder": (["inspect", "MODEL", "a", "--out", "EMPTY/no/x.html"], "there is no folder"),
    "a layer without a model": (["worked-example", "--layer", "encoder.0.self_attention"], "need --model and --text"),
    "no model": (["trace", "EMPTY/no", "a"], "no such folder"),
}


@pytest.mark.parametrize("what", BAD)
def test_invalid_calls_are_errors_without_traceback(what, model, tmp_path):
    words, message = BAD[what]
    (tmp_path / "empty").mkdir()
    words = [word.replace("MODEL", str(model)).replace("EMPTY", str(tmp_path / "empty")) for word in words]
    done = glassformer(*words)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_without_metrics_is_an_error(model, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.toml").write_text((model / "run.toml").read_text())
    done = glassformer("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert done.returncode == 1
    assert "no metrics.jsonl" in done.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_the_commands_and_the_python_of_the_page_work(model, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "en-fr")
    for name in ("test.en", "test.fr"):
        shutil.copy(corpus / name, name)
    commands = re.findall(r"^glassformer (.*)$", DOCS, flags=re.MULTILINE)
    assert len(commands) == 8
    for command in commands:
        done = run(f"glassformer {command}", tmp_path)  # in a separate process, without shape checks
        assert done.returncode == 0, f"{command}: {done.stderr}"
    for page in ("cat", "forced", "map", "run", "worked", "head"):
        check((tmp_path / f"{page}.html").read_text(encoding="utf-8"))
    exec(re.search(r"```python\n(.*?)```", DOCS, flags=re.DOTALL).group(1), {})


def test_the_page_names_every_key_of_the_record():
    from glassformer.inspection.inspect import inspect

    record = inspect(make("translation", "transformer"), "The black cat").to_dict()
    named = re.findall(r"`(\w+)`", DOCS.split("| key | content |")[1])
    assert record.keys() <= set(named)


def test_labels_absent_from_training_are_named(runs, tmp_path):
    rows = write_lines(tmp_path / "new.tsv", ["text\tlabel", "a film\tgood", "a film too\todd"])
    done = glassformer("ablate", runs / "classes", rows)
    assert done.returncode == 2
    assert "are not among the model's labels: odd" in done.stderr


def test_an_unfinished_run_can_be_reported(runs, tmp_path):
    shutil.copytree(runs / "classes", tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "los')
    done = glassformer("report", tmp_path / "run", "--out", tmp_path / "page.html", "--examples", 0)
    assert done.returncode == 0, done.stderr
