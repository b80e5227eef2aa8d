"""The demo reaches what the README says of it. A file of its own, as it takes minutes and files run in parallel."""

import re

import pytest

import glassformer as gf
from glassformer.cli import demo
from glassformer.corpora.demo import pairs
from tests.journeys.test_readme import run


def bleu_of(out: str) -> float:
    """BLEU that the demo printed."""
    (score,) = re.findall(r"BLEU on 500 held-out sentences: ([\d.]+)", out)
    return float(score)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_half_of_the_demo_reaches_85_bleu(tmp_path):
    done = run("glassformer demo --steps 350", tmp_path, timeout=590)
    assert done.returncode == 0, done.stderr
    assert bleu_of(done.stdout) >= 85


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_reaches_95_bleu_and_translates_the_reference_sentence(tmp_path):
    done = run("glassformer demo", tmp_path, timeout=590)
    assert done.returncode == 0, done.stderr
    assert bleu_of(done.stdout) >= 95
    sentence = "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis."
    assert re.search(rf"^\s*{re.escape(sentence)}$", done.stdout, re.MULTILINE)  # not as "(expected: ...)"


def test_the_folder_of_the_demo_has_what_a_server_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "N_DEV", 60)
    monkeypatch.setattr(demo, "N_TEST", 2)
    monkeypatch.setattr(pairs, "SHOWCASE", ())
    monkeypatch.setitem(demo.RECIPE, "threads", 1)
    demo.demo(out=tmp_path / "demo", steps=5, pairs=300, quiet=True)
    task = gf.load(tmp_path / "demo")
    assert task.languages == ("en", "fr")
    assert task.detection.detect("Le chat noir dort sur le tapis.")[0][0] == "fr"
    assert task.scripts == ("LATIN",)
