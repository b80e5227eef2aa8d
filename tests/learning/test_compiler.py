"""Compiled training steps give the same loss and gradients as eager ones, and other passes stay eager.

The backend aot_eager traces and differentiates like the default one but needs no C++ compiler.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import TorchDynamoException

from glassformer.data.pairs import pack_pairs
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.llama import Llama, LlamaConfig
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.block import TransformerBlock
from glassformer.nn.dropout import Dropout
from glassformer.nn.ops.attention import attention
from glassformer.nn.ops.linear import linear
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.presets import ADAM
from glassformer.train_config import TrainConfig
from glassformer.training.compiler import Compiled
from glassformer.training.step import TrainingStep

# The compiler reads .grad of all tensors.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")

VOCAB = 41
SIZES = dict(vocab_size=VOCAB, d_model=24, n_heads=4, d_ff=31, dropout=0.0, max_len=32)
MODELS = {
    "transformer": lambda: Transformer(TransformerConfig(**SIZES, n_encoder_layers=2, n_decoder_layers=2)),
    "gpt2": lambda: Gpt2(Gpt2Config(**SIZES, n_layers=2)),
    "llama": lambda: Llama(LlamaConfig(**SIZES, n_kv_heads=2, n_layers=2)),
}


@pytest.fixture(autouse=True)
def fresh_compiler():
    yield
    torch._dynamo.reset()


def inputs(family: str, seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    sides = 2 if family == "transformer" else 1
    return tuple(torch.randint(3, VOCAB, (5, 7 + seed), generator=generator) for _ in range(sides))


def loss_and_gradients(model, ids, compiled=None):
    model.zero_grad()

    def loss():
        hidden = model(*ids).flatten(0, 1)
        return linear_cross_entropy(hidden, model.output_weight, ids[-1].flatten(), label_smoothing=0.1)

    with compiled.active() if compiled else nullcontext():
        value = loss()
        value.backward()
    return value.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.slow
@pytest.mark.parametrize("activation_checkpointing", [False, True])
@pytest.mark.parametrize("family", ["transformer", "gpt2", pytest.param("llama", marks=pytest.mark.exhaustive)])
def test_compiled_steps_have_the_loss_and_gradients_of_eager_ones(family, activation_checkpointing, monkeypatch):
    model = MODELS[family]().train()
    compiled = Compiled(model, backend="aot_eager")
    for seed in (0, 1, 2):  # other lengths: other shapes
        ids = inputs(family, seed)
        monkeypatch.setattr(TransformerBlock, "activation_checkpointing", False)
        expected_loss, expected = loss_and_gradients(model, ids)
        monkeypatch.setattr(TransformerBlock, "activation_checkpointing", activation_checkpointing)
        loss, gradients = loss_and_gradients(model, ids, compiled)
        torch.testing.assert_close(loss, expected_loss, rtol=1e-6, atol=1e-6)
        assert gradients.keys() == expected.keys()
        for name, gradient in gradients.items():
            torch.testing.assert_close(gradient, expected[name], rtol=1e-5, atol=1e-5, msg=name)


def test_only_the_active_block_is_compiled_and_everything_is_restored():
    model = MODELS["gpt2"]().train()
    calls = []

    def backend(graph, example_inputs):
        calls.append(graph)
        return graph.forward

    compiled = Compiled(model, backend=backend)
    ids = inputs("gpt2", 0)
    model(*ids)
    assert calls == []
    with compiled.active():
        model(*ids)
    assert len(calls) == 1, "a block is more than one graph"
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_compiled_dropout_keeps_no_mask_for_the_backward_pass():
    """It is computed again from the seed, by the default backend."""
    dropout, saved = Dropout(0.3), []
    compiled = torch.compile(lambda x: dropout(x * 1.0), fullgraph=True, dynamic=False)

    def keep(tensor):
        saved.append(tensor)
        return tensor

    for _ in range(2):
        x = torch.ones(97, 3001, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = compiled(x)
        y.sum().backward()
        torch.testing.assert_close(x.grad, y.detach())
        assert abs((y == 0).float().mean().item() - 0.3) < 0.005
    assert saved
    assert sum(tensor.numel() for tensor in saved) < 10


@pytest.mark.slow
def test_compiled_steps_of_packed_sequences_have_the_loss_and_gradients_of_eager_ones():
    model = MODELS["transformer"]().train()
    compiled = Compiled(model, backend="aot_eager", dynamic=False)
    for seed in (0, 1):
        pairs = [tuple(ids.tolist() for ids in pair) for pair in zip(*inputs("transformer", seed), strict=True)]
        batch = pack_pairs(pairs, 61, 9, 16, pad_id=0, bos_id=1, eos_id=2)
        ids = batch.src, batch.tgt_in, batch.src_spans, batch.tgt_spans

        def loss_and_gradients_of_real_tokens(compiled=None, ids=ids, batch=batch):
            model.zero_grad()
            with compiled.active() if compiled else nullcontext():
                hidden = model(*ids).flatten(0, 1)
                targets = batch.tgt_out.flatten()
                value = linear_cross_entropy(hidden, model.output_weight, targets, token_weights=batch.target_weights)
                value.backward()
            return value.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}

        expected = loss_and_gradients_of_real_tokens()
        torch.testing.assert_close(loss_and_gradients_of_real_tokens(compiled), expected, rtol=1e-5, atol=1e-5)


def failing_forward(graph, example_inputs):
    raise RuntimeError("no compiler here")


def compiler_error(graph, example_inputs):
    raise TorchDynamoException("no compiler here")  # the base class of the errors of the default backend


def failing_backward(graph, example_inputs):
    return aot_autograd(fw_compiler=lambda graph, inputs: graph.forward, bw_compiler=compiler_error)(
        graph, example_inputs
    )


@pytest.mark.parametrize("backend", [failing_forward, failing_backward])
def test_a_failing_compiler_means_a_warning_and_eager_training(backend):
    model = MODELS["gpt2"]().train()
    messages = []
    device = torch.device("cpu")
    objective = SimpleNamespace(
        model=model, device=device, loss=lambda ids, label_smoothing: model(ids).square().sum(), static_shapes=False
    )
    config = TrainConfig(src=("a",), out="b", precision="fp32", **ADAM)
    step = TrainingStep(objective, config, messages.append)
    step.compiled = Compiled(model, backend=backend)
    step.n_targets.fill_(2)
    parts = [*inputs("gpt2", 0), *inputs("gpt2", 1)]
    step.compute_gradients(parts)
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    assert step.compiled is None
    assert len(messages) == 1
    assert "compilation failed, training goes on without it" in messages[0]
    model.zero_grad()
    expected = sum(model(ids).square().sum() / 2 for ids in parts)
    expected.backward()
    torch.testing.assert_close(step.loss, expected.detach())
    for name, p in model.named_parameters():
        torch.testing.assert_close(gradients[name], p.grad, msg=name)


@pytest.mark.parametrize("name", ["concatenated", "reference"])
def test_the_selection_of_implementations_is_traced_into_one_graph(name, monkeypatch):
    monkeypatch.setattr("glassformer.nn.ops.linear.invalidate_packed_weights", lambda *weights: None)  # as on a GPU
    weights, x = (torch.randn(5, 7), torch.randn(3, 7)), torch.randn(2, 7, requires_grad=True)

    def function(x):
        a, b = linear(x, weights, ())
        heads = a.view(1, 2, 1, 5).transpose(1, 2)
        return attention(heads, heads, heads, None, True, None, 1.0, True), b

    with linear.use(name):
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), function(x))
