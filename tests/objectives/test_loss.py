import pytest
import torch
import torch.nn.functional as F

from glassformer.nn.ops import loss as module
from glassformer.nn.ops.loss import linear_cross_entropy

# Prime sizes: swapped axes cannot match by accident, and the last chunk is smaller than the others.
TOKENS, D_MODEL, VOCAB = 61, 7, 31
CHUNK_ROWS = {"one chunk": 61, "two chunks": 59, "many chunks": 3, "a row a chunk": 1}


@pytest.fixture
def case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    hidden = torch.randn(TOKENS, D_MODEL, requires_grad=True)
    weight = torch.randn(VOCAB, D_MODEL, requires_grad=True)
    return hidden, weight, torch.randint(VOCAB, (TOKENS,))


def expected(hidden, weight, targets, smoothing, scale=1.0):
    """Loss and gradients by PyTorch's cross-entropy over all logits."""
    h, w = (x.detach().clone().requires_grad_() for x in (hidden, weight))
    loss = F.cross_entropy(h @ w.T, targets, label_smoothing=smoothing, reduction="sum")
    (loss * scale).backward()
    return loss.detach(), h.grad, w.grad


def ours(hidden, weight, targets, smoothing, scale=1.0):
    loss = linear_cross_entropy(hidden, weight, targets, label_smoothing=smoothing)
    (loss * scale).backward()
    return loss.detach(), hidden.grad, weight.grad


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n_rows", CHUNK_ROWS.values(), ids=CHUNK_ROWS)
def test_value_and_gradients_equal_pytorchs_for_any_chunk_size(case, monkeypatch, n_rows, smoothing):
    monkeypatch.setitem(module.CHUNK_BYTES, "cpu", 4 * n_rows * VOCAB)
    torch.testing.assert_close(ours(*case, smoothing), expected(*case, smoothing), rtol=1e-5, atol=1e-5)


def test_a_vocabulary_larger_than_a_chunk_is_processed_row_by_row(case, monkeypatch):
    monkeypatch.setitem(module.CHUNK_BYTES, "cpu", 2 * VOCAB)
    torch.testing.assert_close(ours(*case, 0.1), expected(*case, 0.1), rtol=1e-5, atol=1e-5)


def test_gradients_scale_with_the_gradient_of_the_loss(case):
    torch.testing.assert_close(ours(*case, 0.1, scale=3.0), expected(*case, 0.1, scale=3.0), rtol=1e-5, atol=1e-5)


def test_large_logits_neither_overflow_nor_underflow(case):
    hidden, weight, targets = case
    far = hidden.detach().mul(300).requires_grad_()
    torch.testing.assert_close(
        ours(far, weight, targets, 0.1), expected(far, weight, targets, 0.1), rtol=1e-5, atol=1e-3
    )


def test_bf16_autocast_is_close_to_fp32(case):
    with torch.autocast("cpu", torch.bfloat16):
        loss, d_hidden, d_weight = ours(*case, 0.1)
    want, want_hidden, want_weight = expected(*case, 0.1)
    assert loss.dtype == d_hidden.dtype == d_weight.dtype == torch.float32
    torch.testing.assert_close(loss, want, rtol=0.01, atol=0)
    assert (d_hidden - want_hidden).norm() < 0.02 * want_hidden.norm()
    assert (d_weight - want_weight).norm() < 0.02 * want_weight.norm()


def test_no_tensor_as_large_as_all_logits_is_saved_for_backward(case):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        linear_cross_entropy(*case, label_smoothing=0.1)
    assert kept
    assert max(kept) < TOKENS * VOCAB


def test_no_tensor_larger_than_a_chunk_of_logits_is_allocated(case, monkeypatch):
    n_rows = 11
    monkeypatch.setitem(module.CHUNK_BYTES, "cpu", 4 * n_rows * VOCAB)
    made = LargestTensor()
    with made:
        linear_cross_entropy(*case, label_smoothing=0.1).backward()
    assert made.n_elements <= max(n_rows * VOCAB, TOKENS * D_MODEL, VOCAB * D_MODEL)


class LargestTensor(torch.utils._python_dispatch.TorchDispatchMode):
    """Records the size of the largest result of any operation."""

    n_elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        results = result if isinstance(result, tuple) else (result,)
        self.n_elements = max([self.n_elements, *(x.numel() for x in results if isinstance(x, torch.Tensor))])
        return result


def test_the_loss_of_no_tokens_is_0(case):
    hidden, weight, targets = case
    loss, _, d_weight = ours(hidden[:0].detach().requires_grad_(), weight, targets[:0], 0.1)
    assert loss == 0
    assert not d_weight.any()


@pytest.mark.parametrize("token_weights", [None, torch.linspace(0.0, 2.0, TOKENS)], ids=["alike", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_and_gradients_with_a_bias_equal_pytorchs(case, monkeypatch, smoothing, token_weights):
    monkeypatch.setitem(module.CHUNK_BYTES, "cpu", 12 * VOCAB)
    hidden, weight, targets = case
    given = [hidden, weight, torch.randn(VOCAB, requires_grad=True)]
    h, w, b = (x.detach().clone().requires_grad_() for x in given)
    each = F.cross_entropy(h @ w.T + b, targets, label_smoothing=smoothing, reduction="none")
    want = (each if token_weights is None else each * token_weights).sum()
    (want * 3.0).backward()
    loss = linear_cross_entropy(
        hidden, weight, targets, bias=given[2], label_smoothing=smoothing, token_weights=token_weights
    )
    (loss * 3.0).backward()
    torch.testing.assert_close(
        [loss.detach(), *(x.grad for x in given)], [want.detach(), h.grad, w.grad, b.grad], rtol=1e-5, atol=1e-5
    )
