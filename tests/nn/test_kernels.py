"""The Triton kernels against eager attention and PyTorch. Without a GPU, Triton's interpreter runs them."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from glassformer.nn.attention import Attention
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.nn.ops.softmax import softmax_statistics
from glassformer.nn.short_attention import short_attention, supports
from glassformer.nn.softmax_kernel import softmax_statistics_

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(
    ("n_queries", "n_keys", "d_head", "causal", "masked"),
    [
        (7, 7, 16, True, False),
        (5, 9, 16, False, True),
        (20, 33, 32, False, False),
        (40, 40, 32, True, True),
        (3, 6, 16, True, False),
        (1, 1, 16, False, False),
        (65, 17, 16, False, True),
    ],
)
def test_short_attention_has_the_output_and_gradients_of_eager_attention(n_queries, n_keys, d_head, causal, masked):
    torch.manual_seed(0)
    n_heads = 3
    attention = Attention(n_heads * d_head, n_heads).to(DEVICE)
    lengths = (n_queries, n_keys, n_keys)
    inputs = [torch.randn(2, length, n_heads * d_head, device=DEVICE, requires_grad=True) for length in lengths]
    mask = None
    if masked:
        mask = torch.rand(2, 1, 1, n_keys, device=DEVICE) > 0.4
        mask[..., 0] = True
    q, k, v = (attention.split_heads(x) for x in inputs)
    assert supports(q, k, mask)
    expected = attention.eager_attention(q, k, v, mask, causal, None)
    d_output = torch.randn_like(expected)
    expected_gradients = torch.autograd.grad(expected, inputs, d_output)
    output = short_attention(*(attention.split_heads(x) for x in inputs), mask, causal, attention.scale)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.autograd.grad(output, inputs, d_output), expected_gradients, rtol=1e-5, atol=1e-5)


def test_short_attention_refuses_other_shapes():
    q = torch.zeros(1, 2, 128, 64)
    assert supports(q, q, None)
    assert not supports(torch.zeros(1, 2, 129, 64), q, None)
    assert not supports(q, torch.zeros(1, 2, 129, 64), None)
    assert not supports(torch.zeros(1, 2, 8, 24), torch.zeros(1, 2, 8, 24), None)
    assert not supports(q, q, torch.ones(1, 1, 128, 128, dtype=torch.bool))


@pytest.mark.parametrize(("n_rows", "vocab_size"), [(5, 7), (3, 8192), (4, 20_001)])
def test_the_softmax_kernel_has_the_values_of_pytorch_and_zero_beyond_the_vocabulary(n_rows, vocab_size):
    torch.manual_seed(0)
    logits = torch.randn(n_rows, vocab_size) * 5
    targets = torch.randint(vocab_size, (n_rows,))
    expected = softmax_statistics(logits.clone(), targets, vocab_size)
    padded = F.pad(logits, (0, -vocab_size % 16), value=9.0).to(DEVICE)
    probs, lse, at_target = (x.cpu() for x in softmax_statistics_(padded, targets.to(DEVICE), vocab_size))
    assert (probs[:, vocab_size:] == 0).all()
    torch.testing.assert_close((probs[:, :vocab_size], lse, at_target), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("with_bias", [False, True])
def test_the_loss_with_the_softmax_kernel_has_the_gradients_of_the_loss_without(with_bias):
    torch.manual_seed(0)
    hidden, weight, bias = torch.randn(9, 6), torch.randn(41, 6), torch.randn(41)
    inputs = [x.to(DEVICE).requires_grad_() for x in ((hidden, weight, bias) if with_bias else (hidden, weight))]
    targets, weights = torch.randint(41, (9,), device=DEVICE), torch.rand(9, device=DEVICE)

    def loss_and_gradients():
        value = linear_cross_entropy(
            *inputs[:2], targets, bias=inputs[2] if with_bias else None, label_smoothing=0.1, token_weights=weights
        )
        return value.detach(), torch.autograd.grad(value, inputs)

    expected = loss_and_gradients()
    with linear_cross_entropy.use("padded"), softmax_statistics.use("triton"):
        torch.testing.assert_close(loss_and_gradients(), expected, rtol=1e-5, atol=1e-5)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from glassformer.nn.short_attention import BLOCKS, attend

for is_packed in (False, True):
    for is_backward in (False, True):
        for block in BLOCKS:
            constants = dict(
                HEAD_SIZE=64, BLOCK=block, SHORTER=0, CAUSAL=True, MASKED=not is_packed, PACKED=is_packed,
                BACKWARD=is_backward,
            )
            numbers = dict.fromkeys(("n_queries", "n_keys"), "*i32" if is_packed else "i32") | {"scale": "fp32"}
            pointers = dict.fromkeys("q k v o dq dk dv".split(), "*bf16")
            pointers |= dict.fromkeys(("q_starts", "k_starts"), "*i32" if is_packed else "*bf16")
            pointers["mask"] = "*bf16" if is_packed else "*i1"
            types = dict.fromkeys(constants, "constexpr") | numbers | pointers
            source = ASTSource(attend, {name: types.get(name, "i32") for name in attend.arg_names}, constants)
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": block // 16})
            assert "cubin" in compiled.asm
            assert compiled.metadata.shared <= 227 << 10
"""


@pytest.mark.slow
def test_the_attention_kernel_compiles_for_an_h100_on_a_machine_without_one():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
