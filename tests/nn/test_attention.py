import pytest
import torch
from torch import nn

from glassformer.nn.attention import Attention, KeyValueCache
from glassformer.nn.masks import causal_mask, padding_mask
from glassformer.nn.ops import attention as ops_attention

# Prime sizes: two axes swapped by mistake cannot agree by luck.
BATCH, Q, K, HEADS, D_MODEL = 2, 5, 7, 3, 3 * 11


def same_weights(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]))
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


@pytest.fixture
def both() -> tuple[Attention, nn.MultiheadAttention]:
    ours, theirs = Attention(D_MODEL, HEADS), nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    same_weights(ours, theirs)
    return ours, theirs.eval()


def test_attention_over_memory_matches_pytorch(both):
    ours, theirs = both
    x, memory = torch.randn(BATCH, Q, D_MODEL), torch.randn(BATCH, K, D_MODEL)
    mask = torch.rand(Q, K) > 0.3
    mask[:, 0] = True
    expected, _ = theirs(x, memory, memory, attn_mask=~mask)  # theirs: True = hidden
    torch.testing.assert_close(ours(x, memory, mask=mask[None, None]), expected, rtol=1e-5, atol=1e-5)


def test_padding_mask_matches_pytorch(both):
    ours, theirs = both
    x = torch.randn(BATCH, K, D_MODEL)
    ids = torch.tensor([[5, 6, 7, 8, 9, 0, 0], [5, 6, 0, 0, 0, 0, 0]])
    expected, _ = theirs(x, x, x, key_padding_mask=ids == 0)
    torch.testing.assert_close(ours(x, mask=padding_mask(ids, 0)), expected, rtol=1e-5, atol=1e-5)


def test_causal_attention_is_attention_with_the_causal_mask(both):
    ours, _ = both
    x = torch.randn(BATCH, Q, D_MODEL)
    torch.testing.assert_close(ours(x, causal=True), ours(x, mask=causal_mask(Q)[None, None]), rtol=1e-5, atol=1e-5)


def test_causal_attention_does_not_look_ahead(both):
    ours, _ = both
    x = torch.randn(BATCH, Q, D_MODEL)
    changed = x.clone()
    changed[:, 3:] = 7.0
    torch.testing.assert_close(ours(x, causal=True)[:, :3], ours(changed, causal=True)[:, :3])


def test_scale_is_the_width_of_a_head():
    """The reference's trap: dividing by sqrt(d_model)."""
    attention = Attention(D_MODEL, HEADS)
    x = torch.randn(1, Q, D_MODEL)
    q, k, v = (
        proj(x).view(1, Q, HEADS, -1).transpose(1, 2) for proj in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    weights = torch.softmax(q @ k.transpose(-1, -2) / (D_MODEL / HEADS) ** 0.5, -1)
    expected = attention.out_proj((weights @ v).transpose(1, 2).flatten(-2))
    torch.testing.assert_close(attention(x), expected, rtol=1e-5, atol=1e-5)


def test_heads_have_projections_of_their_own():
    """The reference's other trap: one d_head x d_head projection shared by all heads."""
    attention = Attention(D_MODEL, HEADS)
    assert attention.q_proj.weight.shape == (D_MODEL, D_MODEL)


@pytest.mark.parametrize("name", ["reference", "sdpa"])
def test_the_published_worked_example_of_one_head(name):
    x = torch.tensor([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]).double()
    w_query = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
    w_key = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
    w_value = torch.tensor([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
    # The example rounds sqrt(3) to 1 and has no projection of the output: the identity, and a fourth channel of 0.
    attention = Attention(4, 1, d_head=3, bias=False, scaled=False).double()
    with torch.no_grad():
        for proj, weight in ((attention.q_proj, w_query), (attention.k_proj, w_key), (attention.v_proj, w_value)):
            proj.weight.copy_(weight.T)
        attention.out_proj.weight.copy_(torch.eye(4, 3))
    with ops_attention.attention.use(name):
        out = attention(x[None])[0]
    printed = [
        [1.93662106, 6.68310531, 1.59506841, 0],
        [1.99999397, 7.9639916, 0.05397641, 0],
        [1.99970461, 7.75989225, 0.35838929, 0],
    ]
    # Printed from weights that were rounded to eight digits.
    torch.testing.assert_close(out, torch.tensor(printed).double(), rtol=0, atol=5e-7)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="not divisible by n_heads"):
        Attention(10, 3)


@pytest.mark.parametrize("n_steps", [3, 37])
def test_cache_gives_back_what_was_appended_along_the_chosen_rows(n_steps):
    rows, heads, d_head = 5, 3, 7
    cache = KeyValueCache()
    history = torch.empty(rows, heads, 0, 2 * d_head)
    for _ in range(n_steps):
        new = torch.randn(len(history), heads, int(torch.randint(1, 3, ())), 2 * d_head)
        history = torch.cat([history, new], dim=2)
        k, v = cache.append(*new.chunk(2, dim=-1))
        torch.testing.assert_close(torch.cat([k, v], dim=-1), history, rtol=0, atol=0)
        chosen = torch.randint(len(history), (max(1, len(history) - int(torch.rand(()) < 0.1)),))
        cache.select(chosen)
        history = history[chosen]


@pytest.mark.parametrize("n", [5, 67, 131])
@pytest.mark.parametrize("causal", [False, True])
def test_a_position_bias_is_added_to_the_scores_few_queries_or_many(n, causal):
    attention = Attention(33, 3)
    x, bias, mask = torch.randn(2, n, 33), torch.randn(1, 3, n, n), torch.rand(2, 1, 1, n) > 0.3
    mask[..., 0] = True
    k, v = attention.keys_values(x)
    q = attention.split_heads(attention.q_proj(x))
    seen = mask & causal_mask(n) if causal else mask
    scores = q @ k.transpose(-1, -2) / 11**0.5 + bias
    expected = attention.out_proj((scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(-2))
    ask = lambda: attention.attend(x, k, v, mask, causal=causal, position_bias=bias)
    torch.testing.assert_close(ask(), expected, rtol=1e-4, atol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(ask(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [5, 131, 389])
def test_training_in_bf16_is_training_in_fp32_but_for_rounding(n):
    attention = Attention(33, 3)
    x, bias, mask = torch.randn(2, n, 33, requires_grad=True), torch.randn(1, 3, n, n), torch.rand(2, 1, 1, n) > 0.3
    mask[..., 0] = True
    k, v = attention.keys_values(x)
    expected = attention.attend(x, k, v, mask, causal=True, position_bias=bias)
    (d_expected,) = torch.autograd.grad(expected.square().sum(), x)
    with torch.autocast("cpu", torch.bfloat16):
        k, v = attention.keys_values(x)
        found = attention.attend(x, k, v, mask, causal=True, position_bias=bias)
    (d_found,) = torch.autograd.grad(found.float().square().sum(), x)
    for a, b in ((found.float(), expected), (d_found, d_expected)):
        assert (a - b).norm() < 0.02 * b.norm()
