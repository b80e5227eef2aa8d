"""Logits and search against transformers' MarianMTModel with the same weights."""

import pytest
import torch

from glassformer.config import TransformerConfig
from glassformer.generate.search import search
from glassformer.models.transformer import Transformer

transformers = pytest.importorskip("transformers")

VOCAB, D_MODEL, HEADS, D_FF, LAYERS, MAX_LEN = 37, 22, 11, 31, 2, 40
PAD, BOS, EOS = 0, 1, 2


@pytest.fixture(scope="module")
def both():
    """Marian's sinusoids are halves, sin | cos; ours interleave: the channels of d_model are permuted between them."""
    torch.manual_seed(3)
    ours = Transformer(
        TransformerConfig(
            vocab_size=VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_encoder_layers=LAYERS,
            n_decoder_layers=LAYERS, dropout=0, max_len=MAX_LEN,
        )
    ).eval()  # fmt: skip
    for p in ours.parameters():
        torch.nn.init.normal_(p, std=0.35)
    config = transformers.MarianConfig(
        vocab_size=VOCAB, d_model=D_MODEL, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, dropout=0.0,
        max_position_embeddings=MAX_LEN, pad_token_id=PAD, eos_token_id=EOS, bos_token_id=BOS, decoder_start_token_id=BOS,
        forced_eos_token_id=None, scale_embedding=True, activation_function="relu", share_encoder_decoder_embeddings=True,
    )  # fmt: skip
    theirs = transformers.MarianMTModel(config).eval()
    channels = torch.cat([torch.arange(0, D_MODEL, 2), torch.arange(1, D_MODEL, 2)])
    state = theirs.state_dict()
    weights = {name: tensor.detach() for name, tensor in ours.state_dict().items()}
    for side, stack in (("encoder", ours.encoder), ("decoder", ours.decoder)):
        for i in range(len(stack)):
            names = {"self_attn": "self_attention"} | ({"encoder_attn": "cross_attention"} if side == "decoder" else {})
            for their_name, our_name in names.items():
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    w = weights[f"{side}.{i}.{our_name}.{part}.weight"]
                    b = weights[f"{side}.{i}.{our_name}.{part}.bias"]
                    into = part == "out_proj"
                    key = f"model.{side}.layers.{i}.{their_name}.{part}"
                    state[f"{key}.weight"] = w[channels] if into else w[:, channels]
                    state[f"{key}.bias"] = b[channels] if into else b
            key = f"model.{side}.layers.{i}"
            state[f"{key}.fc1.weight"] = weights[f"{side}.{i}.feedforward.up.weight"][:, channels]
            state[f"{key}.fc1.bias"] = weights[f"{side}.{i}.feedforward.up.bias"]
            state[f"{key}.fc2.weight"] = weights[f"{side}.{i}.feedforward.down.weight"][channels]
            state[f"{key}.fc2.bias"] = weights[f"{side}.{i}.feedforward.down.bias"][channels]
            around = {"self_attn_layer_norm": "around_self", "final_layer_norm": "around_feedforward"}
            if side == "decoder":
                around["encoder_attn_layer_norm"] = "around_cross"
            for their_name, our_name in around.items():
                for part in ("weight", "bias"):
                    state[f"{key}.{their_name}.{part}"] = weights[f"{side}.{i}.{our_name}.norm.{part}"][channels]
    embedding = weights["embedding.weight"][:, channels]
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        state[f"{name}.weight"] = embedding
    state["final_logits_bias"] = torch.zeros(1, VOCAB)
    theirs.load_state_dict(state)
    return ours, theirs


@pytest.fixture(scope="module")
def src():
    torch.manual_seed(5)
    ids = torch.randint(3, VOCAB, (7, 8))
    for row, length in enumerate((8, 3, 5, 7, 2, 8, 1)):
        ids[row, length:] = PAD
    return ids


def test_logits_match_marian_over_ragged_batches(both, src):
    ours, theirs = both
    tgt = torch.randint(3, VOCAB, (7, 5))
    tgt[:, 0] = BOS
    with torch.no_grad():
        expected = theirs(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt).logits
        torch.testing.assert_close(ours.logits(ours(src, tgt)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_marians_tokens(both, src, beam):
    ours, theirs = both
    longest = 17
    with torch.no_grad():
        expected = theirs.generate(
            input_ids=src, attention_mask=src != PAD, num_beams=beam, do_sample=False, max_new_tokens=longest,
            length_penalty=0.0, early_stopping=True, bad_words_ids=[[PAD], [BOS]],
        )  # fmt: skip
    found = search(ours, src, [longest] * len(src), bos_id=BOS, eos_id=EOS, banned_ids=(PAD, BOS), beam=beam, alpha=0.0)
    for ours_best, theirs_ids in zip(found, expected.tolist(), strict=True):
        ids = [i for i in theirs_ids[1:] if i != PAD]
        assert ours_best[0].ids == ids
