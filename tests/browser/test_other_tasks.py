"""Classifiers and regressors in a page give the probabilities and numbers of the command line in int8."""

import json

import pytest

import glassformer as gf
from glassformer.browser.page import page
from glassformer.errors import ConfigError
from tests.browser.test_engine import TEXTS
from tests.serve.test_page import until

pytestmark = pytest.mark.slow
OWN = ("file:", "data:", "blob:")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that trains a model on some rows for two steps."""

    def train(name, rows, **options):
        folder = tmp_path_factory.mktemp(name)
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        options = {"steps": 2, "vocab_size": 280, "threads": 1, "quiet": True, "max_len": 40, **options}
        task = gf.train(folder / "data.jsonl", out=folder / "out", **options)
        task.precision = "int8"
        return task

    return train


def labeled(n=40):
    return [{"text": f"{word} film {i}", "label": word} for word in ("good", "bad", "so so") for i in range(n)]


def test_probabilities_of_a_classifier(trained, engines):
    task = trained("labels", labeled())
    call = engines(task)
    for text in [text for text in TEXTS if text.strip()]:
        found = call("predict", text=text)
        wanted = task(text, return_all=True)
        assert {row["label"]: row["score"] for row in found["labels"]} == pytest.approx(
            {row["label"]: row["probability"] for row in wanted}, abs=1e-6
        )
        assert found["labels"] == sorted(found["labels"], key=lambda row: -row["score"])
        warnings = []
        task.logits([text], lambda i, message, seen=warnings: seen.append(message))
        assert (found["limit"] is not None) == bool(warnings)


def test_pairs_and_wordpiece(trained, engines):
    rows = [
        {"text1": f"a {word} {i}", "text2": f"the {word}s", "label": word} for word in ("cat", "dog") for i in range(40)
    ]
    task = trained("pairs", rows, tokenizer="wordpiece", pooling="first")
    call = engines(task)
    for text, pair in (
        ("a cat", "the dogs"),
        ("x " * 60, "y"),
        ("y", "x " * 60),
        ("x " * 50, "z " * 50),
        ("alone", ""),
    ):
        found = call("predict", text=text, pair=pair)
        wanted = task((text, pair), return_all=True)
        assert {row["label"]: row["score"] for row in found["labels"]} == pytest.approx(
            {row["label"]: row["probability"] for row in wanted}, abs=1e-6
        )


def test_numbers_of_a_regressor(trained, engines):
    rows = [{"text": f"film {i}", "label": str(i / 10)} for i in range(60)]
    task = trained("numbers", rows, task="regression")
    call = engines(task)
    for text in ("film 7", "another", "THE FILM " * 30):
        (row,) = call("predict", text=text)["labels"]
        assert row["score"] == pytest.approx(task(text), abs=1e-5)


def test_the_form(trained, tabs, tmp_path):
    task = trained("form", labeled())
    (tmp_path / "films.html").write_text(page(task, "films"), encoding="utf-8")
    tab = tabs((tmp_path / "films.html").as_uri(), OWN)
    tab.locator("textarea").fill("a good film")
    tab.get_by_role("button", name="Run").click()
    first = tab.locator(".bars th").first
    first.wait_for()
    assert first.text_content() == task("a good film")
    assert tab.locator("h2").first.text_content().startswith("films")
    tab.locator("textarea").fill("long " * 100)
    tab.get_by_role("button", name="Run").click()
    tab.get_by_text("its end was cut off").wait_for()
    tab.locator("textarea").fill(" ")
    tab.get_by_role("button", name="Run").click()
    tab.get_by_text("Enter a text.").wait_for()
    assert not tab.get_by_role("button", name="Code", exact=True).count()


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def language_model(request, trained):
    rows = [{"text": f"some plain text ü to continue {i}"} for i in range(40)]
    options = {"family": request.param, "preset": "tiny"} if request.param == "gpt2" else {"family": "llama"}
    return trained(request.param, rows, task="causal-lm", **options)


def test_the_most_probable_continuation_of_a_language_model(language_model, engines):
    call = engines(language_model)
    for text in ("some plain", "", "ü", "x " * 60):
        parts = call("complete", text=text, options={"maxTokens": 12, "temperature": 0})
        wanted = language_model(text, beam=1, max_length=12, precision="int8")
        assert "".join(part.get("text", "") for part in parts) == wanted
        assert any("limit" in part for part in parts) == (len(text) > 100)


def test_samples_of_a_language_model_follow_its_probabilities(language_model, engines):
    """With a small temperature, they are the most probable continuation; with a large one, they differ."""
    call = engines(language_model)
    texts = {
        temperature: {
            "".join(x.get("text", "") for x in call("complete", text="some", options=options)) for _ in range(6)
        }
        for temperature in (0, 1e-4, 5.0)
        for options in [{"maxTokens": 10, "temperature": temperature}]
    }
    assert len(texts[0]) == 1
    assert texts[1e-4] == texts[0]
    assert len(texts[5.0]) > 3


def test_a_continuation_appears_while_it_is_made(language_model, tabs, tmp_path):
    (tmp_path / "story.html").write_text(page(language_model, "story"), encoding="utf-8")
    tab = tabs((tmp_path / "story.html").as_uri(), OWN)
    tab.locator("textarea").fill("some plain text")
    tab.locator("input[type=number]").first.fill("60")
    tab.locator("input[type=number]").last.fill("0")  # temperature: one sample in 20 is empty
    tab.get_by_role("button", name="Run").click()
    until(tab, "document.querySelector('.generated')?.textContent.length > 0")


def test_other_tasks_are_refused(trained):
    task = trained("masked", [{"text": "some plain text"}] * 30, task="masked-lm")
    with pytest.raises(ConfigError, match="a page can have models for"):
        page(task, "x")


def test_a_model_without_kernels_is_refused(tmp_path):
    for name, line in (("a.en", "a dog"), ("a.de", "ein hund")):
        (tmp_path / name).write_text("".join(f"{line} {i}\n" for i in range(40)))
    files = tmp_path / "a.en", tmp_path / "a.de"
    task = gf.train(*files, out=tmp_path / "out", family="rnn", steps=1, vocab_size=280, threads=1, quiet=True)
    with pytest.raises(ConfigError, match="rnn: a page can have models whose operations have kernels"):
        page(task, "x")
