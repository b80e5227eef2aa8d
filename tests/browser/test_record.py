"""What the page shows of the inside of a model is what `inspect` shows, but for the rounding of 8 bits."""

import numpy as np
import pytest

from glassformer.inspection.inspect import inspect
from tests.browser.translators import TRAINED, random_translator

pytestmark = pytest.mark.slow
TOLERANCE = 0.03


@pytest.fixture(scope="module", params=["transformer", "pre-norm", "t5"])
def records(request, engines, tmp_path_factory):
    """Of each text with a target, the record of the page and that of `inspect`."""
    task = random_translator(request.param, tmp_path_factory.mktemp(request.param), "fp32")
    call = engines(task)
    pairs = zip(TRAINED, TRAINED[::-1], strict=True)
    return [(call("record", text=src, target=tgt), inspect(task, src, tgt)) for src, tgt in pairs]


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
        assert found["lens"].keys() == wanted.lens.keys()
        for name, predictions in wanted.lens.items():
            for own, other in zip(found["lens"][name], predictions, strict=True):
                assert own[:2] == [other.position, other.expected]
                assert own[2] == pytest.approx(other.log_prob, abs=0.2)
                assert [p for _, p in own[4]] == sorted((p for _, p in own[4]), reverse=True)
                n += 1
    assert n > 20


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
