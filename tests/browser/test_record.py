"""What the page shows of the inside of a model is what `inspect` shows, but for the rounding of 8 bits."""

import numpy as np
import pytest

from glassformer.inspection.ablation import disabled_components, find_component
from glassformer.inspection.inspect import inspect
from glassformer.inspection.worked_example import worked_example_of_model
from tests.browser.translators import TRAINED, random_translator

pytestmark = pytest.mark.slow
TOLERANCE = 0.03


@pytest.fixture(scope="module", params=["transformer", "pre-norm", "rotary", "t5"])
def records(request, engines, tmp_path_factory):
    """Of each text with a target, the record of the page and that of `inspect`."""
    task = random_translator(request.param, tmp_path_factory.mktemp(request.param), "fp32")
    call = engines(task)
    texts = zip(TRAINED, TRAINED[::-1], ("", "law", "", "law"), strict=True)
    return [
        (
            call("record", text=src, target=tgt, options={"tag": tag}) | {"lens": call("lens")},
            inspect(task, src, tgt, tag=tag),
        )
        for src, tgt, tag in texts
    ]


def values(packed):
    return np.array(packed["values"]).reshape(packed["shape"])


def test_sources_and_heads_are_those_of_inspect(records):
    for found, wanted in records:
        source = wanted.sides["source"]
        assert (found["sides"]["source"]["ids"], found["sides"]["source"]["tokens"]) == (source.ids, source.tokens)
        offsets = [None if x is None else tuple(x) for x in found["sides"]["source"]["offsets"]]
        assert offsets == source.offsets
        kinds = [(x["kind"], x["layer"], x["queries"], x["keys"]) for x in found["attention"]]
        assert sorted(kinds) == sorted((x.kind, x.layer, x.queries, x.keys) for x in wanted.attention)


def test_attention_weights_are_those_of_inspect(records):
    n = 0
    for found, wanted in records:
        assert found["sides"]["target"]["ids"] == wanted.sides["target"].ids
        maps = {(x["kind"], x["layer"]): x for x in found["attention"]}
        for other in wanted.attention:
            own = maps[other.kind, other.layer]
            weights = values(own["weights"])
            assert weights.sum(-1) == pytest.approx(np.ones(weights.shape[:-1]), abs=1e-5)
            assert np.abs(weights - other.weights).max() < TOLERANCE
            for name, norms in other.norms.items():
                assert values(own["norms"][name]) == pytest.approx(norms, rel=0.1, abs=0.05)
            n += weights.size
        for kind, weights in wanted.rollout.items():
            assert np.abs(values(found["rollout"][kind]) - weights).max() < TOLERANCE
        assert np.abs(values(found["alignment"]) - wanted.alignment).max() < TOLERANCE
        for own, other in zip(found["predictions"], wanted.predictions, strict=True):
            assert own[1] == other.expected
            assert own[2] == pytest.approx(other.log_prob, abs=0.2)
    assert n > 1000


def test_the_predictions_of_each_layer_are_those_of_inspect(records):
    n = 0
    for found, wanted in records:
        assert found["live"]["hasLens"]
        assert found["lens"].keys() == wanted.lens.keys()
        for name, predictions in wanted.lens.items():
            for own, other in zip(found["lens"][name], predictions, strict=True):
                assert own[:2] == [other.position, other.expected]
                assert own[2] == pytest.approx(other.log_prob, abs=0.2)
                assert [p for _, p in own[4]] == sorted((p for _, p in own[4]), reverse=True)
                n += 1
    assert n > 20


def test_the_residual_stream_is_that_of_inspect(records):
    for found, wanted in records:
        assert {side: list(norms) for side, norms in found["stream"].items()} == {
            side: list(norms) for side, norms in wanted.stream.items()
        }
        for side, norms in wanted.stream.items():
            for name, row in norms.items():
                assert values(found["stream"][side][name]) == pytest.approx(row, rel=0.05)


OFF = [["encoder", 1, 2], ["cross", 0, 7], ["decoder", 0, 0], ["decoder", 0, 3]]
NAMES = ["encoder.1.self_attention head 3", "decoder.0.cross_attention head 8", "decoder.0.self_attention head 1"]
NAMES += ["decoder.0.self_attention head 4"]


@pytest.mark.parametrize("family", ["transformer", "t5"])
def test_heads_can_be_switched_off(family, engines, tmp_path):
    task = random_translator(family, tmp_path, "fp32")
    call = engines(task)
    src, tgt = TRAINED[0], TRAINED[2]
    log_probs = lambda found: np.array([row[2] for row in found["predictions"]])
    whole = call("record", text=src, target=tgt)
    with disabled_components(task.model, [find_component(task.model, name) for name in NAMES]):
        wanted = np.array([p.log_prob for p in inspect(task, src, tgt).predictions])
    found = call("record", text=src, target=tgt, options={"off": OFF})
    assert np.abs(log_probs(found) - wanted).max() < 0.1
    assert np.abs(log_probs(whole) - wanted).max() > 0.2
    assert found["live"]["off"] == OFF
    assert call("record", text=src, target=tgt) == whole  # they are on again


def test_the_search_without_heads_is_shown_beside_that_with_all(engines, tmp_path):
    call = engines(random_translator("transformer", tmp_path))
    every = [["cross", layer, head] for layer in range(2) for head in range(8)]
    for text in TRAINED:
        translation = call("translate", text=text)
        whole = call("record", text=text)["sides"]["target"]["text"]
        found = call("record", text=text, options={"off": every})
        assert (found["live"]["unchanged"], found["sides"]["target"]["text"] == whole) == (whole, False)
        assert call("translate", text=text) == translation


def test_beam_and_length_penalty(engines, tmp_path):
    call = engines(random_translator("transformer", tmp_path))
    for beam in (1, 5):
        found = call("record", text=TRAINED[0], options={"search": {"beam": beam, "alpha": 2.0}})
        assert found["live"]["search"] == {"beam": beam, "alpha": 2.0}
        assert {node[5] for node in found["beam"] if node[1] == 0} == ({"kept", "pruned"})
        assert sum(node[1] == 0 and node[5] == "kept" for node in found["beam"]) == beam


def test_records_do_not_depend_on_what_was_translated_before(engines, tmp_path):
    call = engines(random_translator("transformer", tmp_path))
    options = [{}, {"search": {"beam": 2}}, {"search": {"alpha": 2.0}}, {"off": OFF}]
    for text in TRAINED[:2]:
        wanted = []
        for some in options:
            for other in TRAINED[:3]:  # more searches than are kept
                call.run("record", text=other + " !")
            wanted.append(call("record", text=text, options=some))
        translation = call("translate", text=text)
        assert [call("record", text=text, options=some) for some in options] == wanted
        assert call("translate", text=text) == translation


def test_the_distribution_of_a_position(engines, tmp_path):
    call = engines(random_translator("transformer", tmp_path))
    for off in ([], OFF):
        found = call("record", text=TRAINED[0], target=TRAINED[1], options={"off": off})
        for position, (_, _, _, _, best) in enumerate(found["predictions"]):
            call("translate", text=TRAINED[2])  # what the page does in between does not matter
            distribution = call("distribution", position=position)
            log_probs = np.array(distribution["logProbs"])
            assert distribution["texts"][: len(best)] == [text for text, _ in best]
            assert np.exp(log_probs[: len(best)]) == pytest.approx([p for _, p in best], rel=1e-4)
            assert np.exp(log_probs).sum() == pytest.approx(1)
            assert (np.diff(log_probs) <= 0).all()


def test_the_search_leads_to_the_translation(engines, tmp_path):
    call = engines(random_translator("transformer", tmp_path))
    for text in TRAINED:
        found = call("record", text=text)
        nodes, best = found["beam"], found["best_path"]
        assert [nodes[i][2] for i in best] == [x[1] for x in found["predictions"]]
        assert [nodes[i][0] for i in best] == [-1, *best[:-1]]
        assert nodes[best[-1]][7] == found["sides"]["target"]["text"]
        assert all(step == 0 or nodes[parent][1] == step - 1 for parent, step, *_ in nodes)
        assert {x[5] for x in nodes} <= {"kept", "ended", "cut", "left", "pruned"}


@pytest.mark.parametrize("family", ["transformer", "t5"])
def test_the_steps_of_a_head_are_those_of_the_worked_example(family, engines, tmp_path):
    task = random_translator(family, tmp_path, "fp32")
    call = engines(task)
    src, tgt = TRAINED[0], TRAINED[2]
    call("record", text=src, target=tgt)
    for kind, name in (("encoder", "self_attention"), ("decoder", "self_attention"), ("cross", "cross_attention")):
        stack = "encoder" if kind == "encoder" else "decoder"
        example = worked_example_of_model(task, src, target=tgt, layer=f"{stack}.1.{name}", head=6)
        wanted = {x.name: x.values for step in example.steps for x in step.matrices}
        found = {name: values(x) for name, x in call("head", kind=kind, layer=1, head=5)["matrices"].items()}
        for name in ("Q", "K", "V"):
            assert found[name] == pytest.approx(wanted[name], abs=0.05 * np.abs(wanted[name]).max())
        assert np.abs(found["weights"] - wanted["weights"]).max() < TOLERANCE
        assert found["output"] == pytest.approx(found["weights"] @ found["V"], abs=1e-5)


def test_the_vectors_of_the_first_layer_are_those_of_inspect(records):
    for found, wanted in records:
        for side, vectors in wanted.vectors.items():
            own = values(found["vectors"][side]["input of layer 1"])
            assert own == pytest.approx(vectors.get("sum", vectors["embedding"]), abs=0.02)
            assert np.abs(own).max() > 0.1
