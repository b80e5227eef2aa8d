"""The worked example matches the reference to the last digit, and the steps of a model match its attention module."""

import numpy as np
import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.inspection.record import record_activations
from glassformer.inspection.worked_example import saturation, worked_example, worked_example_of_model
from tests.inspection.models import make

Q = [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
K = [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
V = [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
SCORES = [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
WEIGHTS = """[[6.33789383e-02 4.68310531e-01 4.68310531e-01]
 [6.03366485e-06 9.82007865e-01 1.79861014e-02]
 [2.95387223e-04 8.80536902e-01 1.19167711e-01]]"""
WEIGHTED = [
    "[0.06337894 0.12675788 0.19013681]",
    "[0.93662106 3.74648425 0.        ]",
    "[0.93662106 2.80986319 1.40493159]",
]
OUTPUTS = [
    "[1.93662106 6.68310531 1.59506841]",
    "[1.99999397 7.9639916  0.05397641]",
    "[1.99970461 7.75989225 0.35838929]",
]


def matrices(step):
    return {matrix.name: matrix.values for matrix in step.matrices}


def test_all_digits_match_the_reference():
    example = worked_example()
    steps = example.steps
    assert len(steps) == 10
    assert matrices(steps[0])["x"].tolist() == [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
    weights = matrices(steps[1])
    assert weights["W_query"].tolist() == [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
    assert weights["W_key"].tolist() == [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
    assert weights["W_value"].tolist() == [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
    assert {name: x.tolist() for name, x in matrices(steps[2]).items()} == {"Q": Q, "K": K, "V": V}
    assert matrices(steps[3])["scores"].tolist() == SCORES
    softmax = matrices(steps[4])["weights"]
    assert str(softmax) == WEIGHTS
    assert str(softmax[0]) == "[0.06337894 0.46831053 0.46831053]"
    assert [str(row) for row in matrices(steps[5])["weighted"]] == WEIGHTED
    assert str(matrices(steps[6])["output"][0]) == OUTPUTS[0]
    assert [str(row) for row in matrices(steps[7])["outputs"]] == OUTPUTS
    assert matrices(steps[8])["heads"].shape == (3, 8 * 64)
    assert matrices(steps[9])["z"].shape == (3, 512)
    p = example.positions
    assert f"{p.cosines[0]:.7f} {p.cosines[1]:.7f}" == "0.7225201 0.8600013"
    first_values = " ".join(f"{x:.8e}" for x in p.doubled_exponent[2, :4].astype(np.float32))
    assert first_values == "9.09297407e-01 -4.16146845e-01 9.58144367e-01 -2.86285430e-01"


def test_the_softmax_saturates_only_without_the_scale():
    rows = saturation()
    for row in rows:
        assert row.deviation == pytest.approx(row.d_k**0.5, rel=0.06)
    assert rows[0].largest[0] < rows[-1].largest[0] > 0.95
    assert rows[-1].gradient[0] < rows[0].gradient[0] / 5
    assert max(row.largest[1] for row in rows) - min(row.largest[1] for row in rows) < 0.05


CASES = [
    ("translation", "transformer", "encoder.1.self_attention", 2),
    ("translation", "transformer", "decoder.2.cross_attention", 1),
    ("translation", "t5", "decoder.0.self_attention", 2),
    ("translation", "rnn", "cross_attention", 1),
    ("causal-lm", "gpt2", "decoder.1.self_attention", 1),
    ("causal-lm", "llama", "decoder.1.self_attention", 5),
    ("classification", "bert", "encoder.0.self_attention", 2),
]


@pytest.mark.parametrize(("name", "family", "layer", "head"), CASES)
def test_steps_of_a_model_match_its_attention_module(name, family, layer, head):
    task = make(name, family)
    target = {"translation": "Der Hund", "causal-lm": " sat"}.get(name)
    example = worked_example_of_model(task, "The black cat", target=target, layer=layer, head=head)
    from glassformer.inspection.inputs import prepare_inputs

    inputs = prepare_inputs(task, "The black cat", target)
    module = task.model.get_submodule(layer)
    outputs = []
    hook = module.out_proj.register_forward_hook(lambda *args: outputs.append(args[-1][0]))
    with torch.no_grad(), record_activations(task) as cache:
        inputs.forward()
    hook.remove()
    steps = [matrices(step) for step in example.steps]
    expected = torch.cat(outputs).double().numpy()
    np.testing.assert_allclose(steps[9]["z"], expected, rtol=1e-5, atol=1e-5)
    x, w = steps[0]["x"], steps[1]
    assert ("memory" in steps[0]) == ("cross" in layer)
    made_of = steps[0].get("memory", x)
    values = module.v_proj.bias
    shift = (
        0
        if values is None
        else values.detach().double().numpy()[(head - 1) * w["W_value"].shape[1] :][: w["W_value"].shape[1]]
    )
    np.testing.assert_allclose(made_of @ w["W_value"] + shift, steps[2]["V"], rtol=1e-4, atol=1e-4)
    width = w["W_query"].shape[1]
    bias = module.q_proj.bias
    offset = 0 if bias is None else bias.detach().double().numpy()[(head - 1) * width : head * width]
    if family != "llama":  # whose queries and keys are rotated
        np.testing.assert_allclose(x @ w["W_query"] + offset, steps[2]["Q"], rtol=1e-4, atol=1e-4)
    if family == "rnn":  # additive
        assert steps[3]["scores"].shape == (len(x), len(steps[2]["K"]))
    else:
        np.testing.assert_allclose(
            steps[2]["Q"] @ steps[2]["K"].T * module.scale, steps[3]["scores"], rtol=1e-4, atol=1e-4
        )
    np.testing.assert_allclose(steps[4]["weights"] @ steps[2]["V"], steps[7]["outputs"])
    np.testing.assert_allclose(steps[4]["weights"].sum(-1), 1, rtol=1e-5)
    assert steps[8]["heads"].shape[1] == cache[f"{layer}.heads"].size(1) * width
    np.testing.assert_allclose(
        steps[8]["heads"][:, (head - 1) * width : head * width], steps[7]["outputs"], rtol=1e-4, atol=1e-5
    )


def selected(matrix, operand, i, j):
    """The part of a matrix that an operand of element [i, j] names."""
    row, column = ({"row": i, "column": j}.get(index, index) for index in (operand.row, operand.column))
    rows = slice(None) if row is None else row
    return matrix[rows, slice(None) if column is None else column - operand.shift]


@pytest.mark.parametrize("head", [None, 2])
def test_elements_are_computed_from_their_operands(head):
    """The operands of an element multiplied and summed are the element."""
    if head:
        task = make("classification", "bert")
        for p in task.model.get_submodule("encoder.1.self_attention").named_parameters():
            if p[0].endswith("bias"):
                torch.nn.init.zeros_(p[1])
        example = worked_example_of_model(task, "The black cat", layer="encoder.1.self_attention", head=head)
    else:
        example = worked_example()
    named = {matrix.name: matrix for step in example.steps for matrix in step.matrices}
    scale = {"scores": named["Q"].values.shape[1] ** -0.5 if head else 1}
    n_checked = 0
    for name, matrix in named.items():
        assert bool(matrix.operands) == (
            name not in ("x", "W_query", "W_key", "W_value") and (name, head) != ("heads", None)
        )
        if not matrix.operands or name in ("weights", "z"):
            continue
        for (i, j), value in np.ndenumerate(matrix.values):
            columns = [j - operand.shift for operand in matrix.operands if operand.column == "column"]
            if name == "heads" and not 0 <= columns[0] < named["outputs"].values.shape[1]:
                continue  # of another head
            parts = [selected(named[operand.name].values, operand, i, j) for operand in matrix.operands]
            product = np.prod(np.stack(parts), axis=0).sum() * scale.get(name, 1)
            np.testing.assert_allclose(product, value, rtol=1e-4, atol=1e-4)
            n_checked += 1
    assert n_checked > 30


def test_similarities_match_torch():
    task = make("translation", "transformer")
    s = worked_example_of_model(task, "The black cat sat", words=("black", "sat")).similarities
    assert s.words == ("black", "sat")
    tokens = [task.tokenizer.token(i).strip() for i in task.tokenizer.encode("The black cat sat")]
    a, b = tokens.index("black"), tokens.index("sat")
    ids = task.tokenizer.encode("The black cat sat")
    words = task.model.embedding.weight.detach()[[ids[a], ids[b]]] * 22**0.5
    positions = task.model.positions[[a, b]]
    cosine = torch.nn.functional.cosine_similarity
    assert s.word == pytest.approx(float(cosine(*words, dim=0)), abs=1e-5)
    assert s.position == pytest.approx(float(cosine(*positions, dim=0)), abs=1e-5)
    assert s.sum == pytest.approx(float(cosine(*(words + positions), dim=0)), abs=1e-5)


def test_errors_list_the_available_parts():
    task = make("causal-lm", "gpt2")
    with pytest.raises(
        ConfigError, match=r"no attention module 'decoder\.0\.cross_attention'; available: decoder\.0\.self_attention"
    ):
        worked_example_of_model(task, "a", layer="decoder.0.cross_attention")
    with pytest.raises(ConfigError, match=r"head 3: .* has heads 1 to 2"):
        worked_example_of_model(task, "a", head=3)
    with pytest.raises(ConfigError, match="'dog' is not a token of the text"):
        worked_example_of_model(task, "The cat", words=("The", "dog"))
