"""Conversion of our Transformer to the MarianMTModel of transformers."""

import torch
from transformers import MarianConfig, MarianMTModel

from glassformer.models.transformer import Transformer

# Module names in a layer: Marian -> ours.
ATTENTION = {
    "encoder": {"self_attn": "self_attention"},
    "decoder": {"self_attn": "self_attention", "encoder_attn": "cross_attention"},
}
NORMS = {
    "self_attn_layer_norm": "self_attn_residual",
    "encoder_attn_layer_norm": "cross_attn_residual",
    "final_layer_norm": "feedforward_residual",
}


def marian_with_weights_of(ours: Transformer) -> MarianMTModel:
    """Copy the weights, with permuted channels: Marian concatenates sinusoids (sin | cos), ours are interleaved."""
    c = ours.config
    config = MarianConfig(
        vocab_size=c.vocab_size, d_model=c.d_model, encoder_layers=c.n_encoder_layers,
        decoder_layers=c.n_decoder_layers, encoder_ffn_dim=c.d_ff,
        decoder_ffn_dim=c.d_ff, encoder_attention_heads=c.n_heads,
        decoder_attention_heads=c.n_heads, dropout=0.0, max_position_embeddings=c.max_len, pad_token_id=c.pad_id,
        eos_token_id=c.eos_id, bos_token_id=c.bos_id, decoder_start_token_id=c.bos_id, forced_eos_token_id=None,
        scale_embedding=True, activation_function="relu", share_encoder_decoder_embeddings=True,
    )  # fmt: skip
    theirs = MarianMTModel(config).eval()
    channels = torch.cat([torch.arange(0, c.d_model, 2), torch.arange(1, c.d_model, 2)])
    weights = {name: tensor.detach() for name, tensor in ours.state_dict().items()}
    state = theirs.state_dict()

    def copy(their: str, our: str, *, rows: bool, columns: bool) -> None:
        weight, bias = weights[f"{our}.weight"], weights[f"{our}.bias"]
        weight = weight[channels] if rows else weight
        state[f"{their}.weight"] = weight[:, channels] if columns else weight
        state[f"{their}.bias"] = bias[channels] if rows else bias

    for side, n_layers in (("encoder", c.n_encoder_layers), ("decoder", c.n_decoder_layers)):
        for i in range(n_layers):
            their, our = f"model.{side}.layers.{i}", f"{side}.{i}"
            for their_part, our_part in ATTENTION[side].items():
                for projection in ("q_proj", "k_proj", "v_proj"):
                    copy(
                        f"{their}.{their_part}.{projection}", f"{our}.{our_part}.{projection}", rows=False, columns=True
                    )
                copy(f"{their}.{their_part}.out_proj", f"{our}.{our_part}.out_proj", rows=True, columns=False)
            copy(f"{their}.fc1", f"{our}.feedforward.up", rows=False, columns=True)
            copy(f"{their}.fc2", f"{our}.feedforward.down", rows=True, columns=False)
            for their_part, our_part in NORMS.items():
                if f"{our}.{our_part}.norm.weight" in weights:
                    copy(f"{their}.{their_part}", f"{our}.{our_part}.norm", rows=True, columns=False)
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        state[f"{name}.weight"] = weights["embedding.weight"][:, channels]
    state["final_logits_bias"] = torch.zeros(1, c.vocab_size)
    theirs.load_state_dict(state)
    return theirs
