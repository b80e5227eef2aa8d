"""Transformer against torch.nn.Transformer with the same weights."""

import pytest
import torch
from torch import nn

from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.positions import position_ids

BATCH, SRC, TGT, VOCAB, D_MODEL, HEADS, D_FF = 3, 7, 5, 23, 22, 11, 31


def copy_attention(theirs: nn.MultiheadAttention, ours) -> None:
    theirs.in_proj_weight.copy_(torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def same_weights(ours: Transformer) -> nn.Transformer:
    c = ours.config
    theirs = nn.Transformer(
        c.d_model,
        c.n_heads,
        c.n_encoder_layers,
        c.n_decoder_layers,
        c.d_ff,
        0.0,
        batch_first=True,
        norm_first=c.pre_norm,
    )
    if not c.pre_norm:
        theirs.encoder.norm = theirs.decoder.norm = None
    with torch.no_grad():
        for their, our in zip(theirs.encoder.layers, ours.encoder, strict=True):
            copy_attention(their.self_attn, our.self_attention)
            norms = (our.self_attn_residual.norm, our.feedforward_residual.norm)
            copy_rest(their, our, norms)
        for their, our in zip(theirs.decoder.layers, ours.decoder, strict=True):
            copy_attention(their.self_attn, our.self_attention)
            copy_attention(their.multihead_attn, our.cross_attention)
            copy_rest(
                their, our, (our.self_attn_residual.norm, our.cross_attn_residual.norm, our.feedforward_residual.norm)
            )
        if c.pre_norm:
            theirs.encoder.norm.load_state_dict(ours.encoder_norm.state_dict())
            theirs.decoder.norm.load_state_dict(ours.decoder_norm.state_dict())
    return theirs.eval()


def copy_rest(their, our, norms) -> None:
    their.linear1.load_state_dict(our.feedforward.up.state_dict())
    their.linear2.load_state_dict(our.feedforward.down.state_dict())
    for i, norm in enumerate(norms, 1):
        getattr(their, f"norm{i}").load_state_dict(norm.state_dict())


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_hidden_states_match_pytorchs_transformer(pre_norm):
    config = TransformerConfig(
        vocab_size=VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_encoder_layers=3, n_decoder_layers=2, dropout=0,
        pre_norm=pre_norm,
    )  # fmt: skip
    ours = Transformer(config).eval()
    for p in ours.parameters():
        nn.init.normal_(p, std=0.3)  # biases and norms too, or a forgotten one would not show
    theirs = same_weights(ours)
    src, tgt = torch.randint(3, VOCAB, (BATCH, SRC)), torch.randint(3, VOCAB, (BATCH, TGT))
    src[1, 4:] = 0
    hidden = torch.zeros(src.shape).masked_fill(src == 0, -torch.inf)
    expected = theirs(
        ours.embed(src, position_ids(src)),
        ours.embed(tgt, position_ids(tgt)),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(TGT),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    torch.testing.assert_close(ours(src, tgt), expected, rtol=1e-5, atol=1e-5)


def test_embeddings_are_scaled_and_tied():
    model = Transformer(TransformerConfig(vocab_size=VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF)).eval()
    ids = torch.tensor([[5]])
    expected = model.embedding.weight[5] * D_MODEL**0.5 + model.positions[0]
    torch.testing.assert_close(model.embed(ids, position_ids(ids))[0, 0], expected)
    hidden = torch.randn(1, D_MODEL)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.embedding.weight.T)


def test_big_and_base_have_the_published_numbers_of_parameters():
    """Table 3: 65 and 213 million, with a shared vocabulary of about 37,000."""
    sizes = dict(vocab_size=37000)
    with torch.device("meta"):
        base = Transformer(TransformerConfig(**sizes))
        big = Transformer(TransformerConfig(**sizes, d_model=1024, n_heads=16, d_ff=4096))
    count = lambda m: sum(p.numel() for p in m.parameters()) / 1e6
    assert round(count(base)) in range(62, 67)
    assert round(count(big)) in range(209, 216)
