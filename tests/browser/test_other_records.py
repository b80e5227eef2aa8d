"""The inside of models of other tasks in a page is what `inspect` shows, but for the rounding of 8 bits."""

import numpy as np
import pytest

from glassformer.inspection.ablation import disabled_components, find_component
from glassformer.inspection.inspect import inspect
from tests.browser.test_other_tasks import SENTENCES, labeled
from tests.browser.test_record import TOLERANCE, values
from tests.inspection.models import make
from tests.serve.test_page import until

pytestmark = pytest.mark.slow
PAIRS = [{"text1": f"a {x} {i}", "text2": f"the {x}s", "label": x} for x in ("cat", "dog") for i in range(40)]
TAGGED = [{"words": line.split(), "tags": ["X" if x in "AB" else "O" for x, *_ in line.split()]} for line in SENTENCES]
PLAIN = [{"text": line} for line in SENTENCES * 5]
SUMMARIES = [{"text": f"{line} {other}", "summary": line} for line in SENTENCES for other in SENTENCES]

MODELS = {
    "labels": (lambda train: train("labels", labeled(), tokenizer="wordpiece"), "a good film"),
    "pairs": (lambda train: train("pairs", PAIRS, pooling="first", pre_norm=True), "a cat\tthe dogs"),
    "numbers": (
        lambda train: train(
            "numbers", [{"text": f"film {i}", "label": str(i / 10)} for i in range(60)], task="regression"
        ),
        "film 7",
    ),
    "tags": (lambda train: train("tags", TAGGED * 5, steps=20), "Ann lives\u2003in Oslo ."),
    "answers": (lambda train: make("question-answering", "bert", max_len=40), f"Where is Bob?\t{SENTENCES[3]}"),
    "masks": (lambda train: train("masks", PLAIN, task="masked-lm"), "Ann <mask> in Oslo ."),
    "vectors": (lambda train: make("feature-extraction", "bert", max_len=40), SENTENCES[0]),
    "gpt2": (lambda train: train("gpt2", PLAIN, task="causal-lm", family="gpt2", preset="tiny"), SENTENCES[1]),
    "llama": (lambda train: train("llama", PLAIN, task="causal-lm", family="llama"), SENTENCES[2]),
    "summaries": (
        lambda train: train("summaries", SUMMARIES, task="summarization", family="gpt2", max_len=60),
        f"{SENTENCES[0]} {SENTENCES[4]}",
    ),
}
"""Name -> a function that makes the model, and a text."""


@pytest.fixture(scope="module", params=MODELS)
def opened(request, trained, engines):
    """A task, the calls of its page, a text, and its record by the page and by `inspect`."""
    make_task, text = MODELS[request.param]
    task = make_task(trained)
    task.precision = "int8"
    call = engines(task)
    found = call("record", text=text)
    lens = dict(call("lens"))
    assert found["live"]["hasLens"] == bool(lens)
    return task, call, text, found | {"lens": lens}, wanted_for(task, text, found)


def wanted_for(task, text, found):
    """The record of `inspect`, for language models with the continuation that the page has."""
    if found["predicts"] != "next":
        return inspect(task, text)
    first = found["first_predicted"]
    expected = [row[1] for row in found["predictions"]]
    target = "".join(expected[first:] if task.name == "summarization" else expected[-1:])
    return inspect(task, text, target.removesuffix(task.tokenizer.token(task.tokenizer.eos_id)))


def test_tokens_attention_and_residual_stream(opened):
    _, _, _, found, wanted = opened
    side, n = wanted.sides["text"], len(found["sides"]["text"]["ids"])
    assert found["sides"]["text"]["ids"] == side.ids[:n]
    assert n >= len(side.ids) - 2
    assert found["sides"]["text"]["tokens"] == side.tokens[:n]
    offsets = [None if x is None else tuple(x) for x in found["sides"]["text"]["offsets"]]
    assert offsets == side.offsets[:n]
    assert {(x["kind"], x["layer"], x["queries"], x["keys"]) for x in found["attention"]} == {
        (x.kind, x.layer, "text", "text") for x in wanted.attention
    }
    for own, other in zip(found["attention"], wanted.attention, strict=True):
        assert np.abs(values(own["weights"]) - other.weights[:, :n, :n]).max() < TOLERANCE
    assert list(found["stream"]["text"]) == list(wanted.stream["text"])
    for name, norms in wanted.stream["text"].items():
        assert values(found["stream"]["text"][name]) == pytest.approx(norms[:n], rel=0.05)
    for kind, weights in wanted.rollout.items():
        assert np.abs(values(found["rollout"][kind]) - weights[:n, :n]).max() < TOLERANCE


def test_predictions_of_the_model_and_of_each_layer(opened):
    _, _, _, found, wanted = opened
    assert found["predicts"] == wanted.predicts
    assert found["lens"].keys() == wanted.lens.keys()
    assert bool(found["saliency"]) == bool(wanted.saliency)
    if found["saliency"]:
        assert np.abs(values(found["saliency"]["roll-out"]) - wanted.saliency["roll-out"]).max() < TOLERANCE
    rows = [(found["predictions"], wanted.predictions), *((found["lens"][x], row) for x, row in wanted.lens.items())]
    for own, others in rows:
        assert len(own) >= len(others) - 2
        for (position, expected, log_prob, _, best), other in zip(own, others, strict=False):
            assert (position, expected) == (other.position, other.expected)
            if expected is not None:
                assert log_prob == pytest.approx(other.log_prob, abs=0.2)
            known = {x.text: x.probability for x in other.best}
            if found["predicts"] == "number":
                assert float(best[0][0]) == pytest.approx(float(other.best[0].text), abs=0.05)
                continue
            assert all(p == pytest.approx(known[text], abs=0.03) for text, p in best if text in known)
            assert best[0][0] in known
    if found["predicts"] == "span":
        assert found["answer"] == (wanted.answer or "–")


def test_heads_can_be_switched_off_and_on_again(opened):
    task, call, text, whole, _ = opened
    kind = whole["attention"][0]["kind"]
    off = [
        [kind, layer, head] for layer, x in enumerate(whole["attention"]) for head in range(x["weights"]["shape"][0])
    ]
    found = call("record", text=text, options={"off": off})
    names = [f"{'encoder' if kind == 'encoder' else 'decoder'}.{i}.self_attention head {j + 1}" for _, i, j in off]
    with disabled_components(task.model, [find_component(task.model, name) for name in names]):
        wanted = wanted_for(task, text, found)
    for name, norms in wanted.stream["text"].items():
        n = len(found["sides"]["text"]["ids"])
        assert values(found["stream"]["text"][name]) == pytest.approx(norms[:n], rel=0.05)
    last = list(wanted.stream["text"])[-2]
    assert values(found["stream"]["text"][last]) != pytest.approx(values(whole["stream"]["text"][last]), rel=0.01)
    assert found["live"]["unchanged"] == whole["live"]["output"]
    assert call("record", text=text) | {"lens": dict(call("lens"))} == whole


@pytest.mark.parametrize("opened", ["gpt2", "llama", "summaries"], indirect=True)
def test_the_distribution_of_the_next_token(opened):
    _, call, text, found, _ = opened
    call("record", text=text)
    for position, row in enumerate(found["predictions"]):
        distribution = call("distribution", position=position)
        assert distribution["texts"][:8] == [token for token, _ in row[4]]
        assert np.exp(distribution["logProbs"]).sum() == pytest.approx(1)


def test_texts_that_are_too_long(opened):
    task, call, text, _, _ = opened
    context = "\t" if "\t" in text else ""
    found = call("record", text=text + context + " Ann lives in Oslo ." * 60)
    assert len(found["notes"]) == 1
    assert len(found["sides"]["text"]["ids"]) <= task.config.max_len


def test_the_view_of_a_form(trained, open_page):
    task = trained("view", labeled())
    tab = open_page(task, "films")
    tab.locator("textarea").fill("a good film")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    inside.locator("blockquote", has_text="a good film").wait_for()
    titles = ["Tokens", "The whole way", "Predictions", "Token attribution", "Attention", "One head, step by step"]
    titles += ["Layer by layer", "Residual stream", "Vectors"]
    assert inside.locator("h2").all_text_contents() == titles
    tab.locator("textarea").fill("a bad film")
    inside.locator("blockquote", has_text="a bad film").wait_for()
    inside.get_by_role("button", name="Switch the heads of this layer off").evaluate("(node) => node.click()")
    inside.get_by_text("Switched off: encoder layer").first.wait_for()
    assert inside.locator(".overview .thumbnail.off").count() == task.config.n_heads
    inside.get_by_role("button", name=f"Switch all {task.config.n_heads} on").evaluate("(node) => node.click()")
    inside.locator(".note").first.wait_for(state="detached")
    until(tab, "document.querySelector('iframe').clientHeight > 500")


def test_the_steps_of_a_head(opened):
    _, call, text, found, _ = opened
    call("record", text=text)
    x = found["attention"][-1]
    matrices = call("head", kind=x["kind"], layer=x["layer"], head=1)["matrices"]
    assert values(matrices["weights"]) == pytest.approx(values(x["weights"])[1], abs=1e-5)
    assert values(matrices["output"]) == pytest.approx(values(matrices["weights"]) @ values(matrices["V"]), abs=1e-4)
    for name, norm in (("Q", "queries"), ("K", "keys"), ("V", "values")):
        norms = values(x["norms"][norm])
        assert np.linalg.norm(values(matrices[name]), axis=1) == pytest.approx(
            norms[1 if len(norms) > 1 else 0], rel=1e-4
        )
