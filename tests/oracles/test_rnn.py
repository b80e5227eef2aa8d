"""The recurrent baseline: attention against a plain loop, cached decoding against the full forward pass."""

import torch

from glassformer.models.rnn import Rnn, RnnConfig
from glassformer.nn.attention import Attention

PAD, BOS, VOCAB, D_MODEL = 0, 1, 23, 22


def model(n_layers: int = 2) -> Rnn:
    return Rnn(RnnConfig(vocab_size=VOCAB, d_model=D_MODEL, n_layers=n_layers, dropout=0.0)).eval()


def ragged(lengths: list[int], width: int) -> torch.Tensor:
    ids = torch.full((len(lengths), width), PAD)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, VOCAB, (length,))
    return ids


def test_additive_scores_equal_the_published_formula():
    """e_ij = w^T tanh(q_i + k_j + b), per head."""
    attention = Attention(2 * 5, 2, score="additive")
    q, k = torch.randn(3, 2, 7, 5), torch.randn(3, 2, 11, 5)
    found = attention.attention_weights(q, k)
    w, b = attention.additive.detach()
    for n in range(3):
        for head in range(2):
            for i in range(7):
                scores = torch.stack(
                    [w[head, 0] @ torch.tanh(q[n, head, i] + k[n, head, j] + b[head, 0]) for j in range(11)]
                )
                torch.testing.assert_close(found[n, head, i], scores.softmax(0))


@torch.no_grad()
def test_cached_decoding_gives_the_logits_of_the_full_forward_pass():
    ours, src, tgt = model(), ragged([11, 2, 7], 11), torch.randint(3, VOCAB, (3, 13))
    state, _ = ours.start(src)
    stepwise = torch.stack([ours.step(ids, state) for ids in tgt.T], dim=1)
    torch.testing.assert_close(stepwise, ours.logits(ours(src, tgt)), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_cached_decoding_follows_reordered_hypotheses():
    ours, src, beam = model(1), ragged([5, 3], 5), 3
    state, last = ours.start(src, beam)
    output_ids = last[:, None]
    for _ in range(5):
        whole = ours.logits(ours(src.repeat_interleave(beam, 0), output_ids))[:, -1]
        torch.testing.assert_close(ours.step(output_ids[:, -1], state), whole, rtol=1e-5, atol=1e-5)
        parents = (torch.arange(2)[:, None] * beam + torch.randint(beam, (2, beam))).flatten()
        state.select(parents)
        output_ids = torch.cat([output_ids[parents], torch.randint(3, VOCAB, (6, 1))], dim=1)


@torch.no_grad()
def test_padding_changes_nothing():
    ours, src, tgt = model(), ragged([7, 7], 7), torch.randint(3, VOCAB, (2, 5))
    padded = torch.cat([src, torch.full((2, 4), PAD)], dim=1)
    torch.testing.assert_close(ours(padded, tgt), ours(src, tgt), rtol=1e-5, atol=1e-5)
