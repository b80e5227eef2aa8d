"""`train --repeat`, as a user repeats a run."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from tests.journeys.conftest import RARE, SMALL, glassformer
from tests.journeys.test_bad_input import refused


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    """A finished run of a few steps, and the files it was trained on."""
    folder = tmp_path_factory.mktemp("repeat")
    for language in ("en", "fr"):
        shutil.copy(corpus / f"train.{language}", folder)
    done = glassformer(
        "train",
        folder / "train.en",
        folder / "train.fr",
        "--out",
        folder / "run",
        "--steps",
        4,
        *SMALL,
        *RARE,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_a_run_that_is_repeated_has_the_same_weights(run):
    done = glassformer("train", "--repeat", run / "run", "--out", run / "again", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "weights are equal, bit for bit" in done.stdout
    assert "differ" not in done.stdout
    assert (run / "again/model.safetensors").read_bytes() == (run / "run/model.safetensors").read_bytes()


@pytest.mark.slow
def test_weights_measurements_and_versions_that_differ_are_named(run):
    before = shutil.copytree(run / "run", run / "before")
    weights = load_file(before / "model.safetensors")
    name = next(iter(weights))
    weights[name].flatten()[3] += 0.5
    save_file(weights, before / "model.safetensors")
    environment = json.loads((before / "env.json").read_text())
    (before / "env.json").write_text(json.dumps(environment | {"torch": "1.0"}))
    records = [json.loads(line) for line in (before / "metrics.jsonl").read_text().splitlines()]
    dev = next(record for record in records if "dev_loss" in record)
    dev["dev_loss"] += 1
    (before / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = glassformer("train", "--repeat", before, "--out", run / "other", "--quiet")
    assert done.returncode == 1, done.stderr
    assert f"1 of {len(weights)} weights differ, by 0.5 at most ({name})" in done.stdout
    assert f"Step {dev['step']}: dev_loss" in done.stdout
    assert "Other environment: torch 1.0 -> " in done.stdout


def test_a_run_that_cannot_be_repeated_is_refused(run, tmp_path):
    repeat = ("train", "--repeat", run / "run", "--out")
    refused(glassformer(*repeat, run / "run"), 2, "is the run itself", "another folder")
    refused(glassformer(*repeat, tmp_path / "x", "--seed", 2), 2, "--repeat: with --seed", "--out FOLDER")
    refused(glassformer(*repeat[:-1]), 2, "with no --out", "--out FOLDER")
    refused(glassformer(*repeat, tmp_path / "x", run / "train.en"), 2, "--repeat: with files", "--out FOLDER")
    refused(glassformer("train", "--repeat", tmp_path, "--out", tmp_path / "x"), 2, "has no run.toml")
    minutes = shutil.copytree(run / "run", tmp_path / "minutes")
    toml = (minutes / "run.toml").read_text()
    (minutes / "run.toml").write_text(toml.replace("steps = 4", "minutes = 1.0"))
    refused(glassformer("train", "--repeat", minutes, "--out", tmp_path / "x"), 2, "for 1 minutes", "--steps")
    (minutes / "manifest.json").unlink()
    refused(glassformer("train", "--repeat", minutes, "--out", tmp_path / "x"), 2, "has not finished", "--config")
    text = (run / "train.fr").read_text()
    (run / "train.fr").write_text(text + "Encore une.\n")
    try:
        refused(glassformer(*repeat, tmp_path / "x"), 2, "train.fr: is not the file of the run", "Restore it")
    finally:
        (run / "train.fr").write_text(text)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_run_that_began_with_another_model_is_refused(run, tmp_path):
    model = shutil.copytree(run / "run", tmp_path / "model")
    out = tmp_path / "tuned"
    tuned = ("train", run / "train.en", run / "train.fr", "--init-from", model, "--steps", 1, *RARE, "--out", out)
    assert glassformer(*tuned).returncode == 0
    shutil.rmtree(model)
    refused(
        glassformer("train", "--repeat", out, "--out", tmp_path / "x"), 2, "is not the model that the run began with"
    )
    shutil.copytree(out, model)
    refused(
        glassformer("train", "--repeat", out, "--out", tmp_path / "x"), 2, "is not the model that the run began with"
    )
    shutil.rmtree(model)
    shutil.copytree(run / "run", model)
    done = glassformer("train", "--repeat", out, "--out", tmp_path / "x", "--quiet")
    assert "weights are equal, bit for bit" in done.stdout
