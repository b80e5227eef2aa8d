"""Conversion of our Transformer to a CTranslate2 model folder."""

from pathlib import Path

import numpy as np
from ctranslate2.specs import LayerSpec, transformer_spec

from glassformer.models.transformer import Transformer

ATTENTIONS = {"self_attention": "self_attention", "attention": "cross_attention"}
"""Names of the attention modules of a layer: of CTranslate2 -> ours."""


def save_ctranslate2(model: Transformer, tokens: list[str], folder: Path, quantization: str) -> None:
    """Write a CTranslate2 model folder with the weights of a model.

    Args:
        tokens: names of the entries of the vocabulary.
        quantization: "int8", "float32" or another type of CTranslate2.
    """
    c = model.config
    assert c.activation == "relu"
    weights = {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}
    spec = transformer_spec.TransformerSpec.from_config(
        (c.n_encoder_layers, c.n_decoder_layers), c.n_heads, pre_norm=c.pre_norm
    )

    def linear(target: LayerSpec, *names: str) -> None:
        target.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
        target.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(target: LayerSpec, name: str) -> None:
        target.gamma, target.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side in ("encoder", "decoder"):
        target = getattr(spec, side)
        target.scale_embeddings = model.embedding_scale
        embedding = target.embeddings[0] if side == "encoder" else target.embeddings
        embedding.weight = weights["embedding.weight"]
        target.position_encodings.encodings = model.position_vectors(c.max_len + 1).numpy()
        if c.pre_norm:
            norm(target.layer_norm, f"{side}_norm")
        for i, layer in enumerate(target.layer):
            for theirs, ours in ATTENTIONS.items():
                if not hasattr(layer, theirs):
                    continue
                attention, name = getattr(layer, theirs), f"{side}.{i}.{ours}"
                projections = [f"{name}.{x}_proj" for x in "qkv"]
                groups = [projections] if ours == "self_attention" else [projections[:1], projections[1:]]
                for part, group in zip(attention.linear, [*groups, [f"{name}.out_proj"]], strict=True):
                    linear(part, *group)
                residual = name.replace("attention", "attn_residual")
                norm(attention.layer_norm, f"{residual}.norm")
            linear(layer.ffn.linear_0, f"{side}.{i}.feedforward.up")
            linear(layer.ffn.linear_1, f"{side}.{i}.feedforward.down")
            norm(layer.ffn.layer_norm, f"{side}.{i}.feedforward_residual.norm")
    spec.decoder.projection.weight = weights["embedding.weight"]
    if model.output_bias is not None:
        spec.decoder.projection.bias = weights["output_bias"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token = tokens[c.pad_id]
    spec.config.decoder_start_token = spec.config.bos_token = tokens[c.bos_id]
    spec.config.eos_token = tokens[c.eos_id]
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))
