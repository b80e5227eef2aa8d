"""Activation checkpointing: the same gradients as without, with less memory."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from glassformer.errors import ConfigError
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.families import FAMILIES
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.llama import Llama, LlamaConfig
from glassformer.models.t5 import T5, T5Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.block import TransformerBlock
from glassformer.presets import ADAM
from glassformer.train_config import TrainConfig
from glassformer.training.options import check_blocks
from glassformer.training.step import TrainingStep

VOCAB = 41
SIZES = dict(vocab_size=VOCAB, d_model=24, n_heads=4, d_ff=31, dropout=0.1, max_len=32)
SIDES = dict(n_encoder_layers=2, n_decoder_layers=2)
MODELS = {
    "transformer": lambda **sizes: Transformer(TransformerConfig(**SIZES | SIDES | sizes)),
    "t5": lambda **sizes: T5(T5Config(**SIZES | SIDES | sizes)),
    "bert": lambda **sizes: Bert(BertConfig(**SIZES | {"n_layers": 2} | sizes)),
    "gpt2": lambda **sizes: Gpt2(Gpt2Config(**SIZES | {"n_layers": 2} | sizes)),
    "llama": lambda **sizes: Llama(LlamaConfig(**SIZES | {"n_layers": 2} | sizes)),
}


def training_step(family: str, *, is_on: bool, precision: str = "fp32", **sizes) -> TrainingStep:
    torch.manual_seed(5)
    model = MODELS[family](**sizes).train()
    n_sides = 2 if "n_encoder_layers" in type(model.config).model_fields else 1
    objective = SimpleNamespace(
        model=model, device=torch.device("cpu"), static_shapes=False,
        loss=lambda ids, label_smoothing: model(*[ids] * n_sides).float().square().sum(),
    )  # fmt: skip
    config = TrainConfig(src=("a",), out="b", precision=precision, activation_checkpointing=is_on, **ADAM)
    step = TrainingStep(objective, config, print)
    step.n_targets.fill_(7)
    return step


def loss_and_gradients(step: TrainingStep) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    torch.manual_seed(3)
    step.compute_gradients([torch.randint(3, VOCAB, (5, 7 + i)) for i in range(2)])
    return step.loss.clone(), {name: p.grad.clone() for name, p in step.parameters.items() if p.grad is not None}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("family", MODELS)
def test_loss_and_gradients_are_those_without_it_with_the_same_random_numbers(family, precision):
    expected_loss, expected = loss_and_gradients(training_step(family, is_on=False, precision=precision))
    loss, actual = loss_and_gradients(training_step(family, is_on=True, precision=precision))
    assert loss == expected_loss
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def retained_bytes(step: TrainingStep) -> int:
    """Memory that the forward pass allocates and keeps."""
    ids = torch.randint(3, VOCAB, (13, 29))
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        loss = step.loss_module(ids)
    assert loss.requires_grad
    return sum(event.self_cpu_memory_usage for event in profile.key_averages())


@pytest.mark.slow
@pytest.mark.parametrize("family", MODELS)
def test_the_forward_pass_keeps_little_more_than_the_inputs_of_the_blocks(family):
    layers = 5
    sizes = {"n_encoder_layers": layers, "n_decoder_layers": layers} if family in ("transformer", "t5") else {}
    sizes = sizes or {"n_layers": layers}
    assert retained_bytes(training_step(family, is_on=True, **sizes)) < 0.4 * retained_bytes(
        training_step(family, is_on=False, **sizes)
    )


def test_only_training_computes_activations_twice():
    step = training_step("gpt2", is_on=True)
    n_calls = 0

    def count(module: nn.Module, *_) -> None:
        nonlocal n_calls
        n_calls += 1

    for module in step.model.modules():
        if isinstance(module, TransformerBlock):
            module.feedforward.register_forward_pre_hook(count)
    loss_and_gradients(step)
    assert n_calls == 2 * 2 * 2  # blocks, batches, passes
    n_calls = 0
    step.model.eval()
    step.loss_module(torch.randint(3, VOCAB, (5, 7))).backward()
    assert n_calls == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_families_without_transformer_blocks_are_refused(family):
    config = TrainConfig(src=("a",), out="b", activation_checkpointing=True)
    if family in MODELS:
        check_blocks(config, family)
    else:
        with pytest.raises(ConfigError, match=rf"--activation-checkpointing: the family {family} has no Transformer"):
            check_blocks(config, family)
