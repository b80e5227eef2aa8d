import torch
import torch.nn.functional as F

from glassformer.nn.ops.loss import linear_cross_entropy

TOKENS, D_MODEL, VOCAB = 37, 11, 101


def test_the_loss_of_each_target_is_multiplied_by_its_weight():
    hidden = torch.randn(TOKENS, D_MODEL, requires_grad=True)
    weight = torch.randn(VOCAB, D_MODEL, requires_grad=True)
    targets, token_weights = torch.randint(VOCAB, (TOKENS,)), torch.rand(TOKENS)
    found = linear_cross_entropy(hidden, weight, targets, label_smoothing=0.1, token_weights=token_weights)
    logits = hidden @ weight.T
    expected = (F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="none") * token_weights).sum()
    torch.testing.assert_close(found, expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, (hidden, weight)), torch.autograd.grad(expected, (hidden, weight)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
