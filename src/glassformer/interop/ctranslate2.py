"""Export of models to CTranslate2, and their use there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import common_spec, transformer_spec
from torch import nn

from glassformer.errors import UserError
from glassformer.generate.shortlist import Shortlist
from glassformer.interop.verification import Ids, Outputs
from glassformer.models.base import Model
from glassformer.models.families import family_of
from glassformer.nn.attention import Attention
from glassformer.nn.block import TransformerBlock
from glassformer.tasks.base import AnyTask
from glassformer.tasks.generation import GeneratesText
from glassformer.tokens import wordpiece
from glassformer.tokens.tokenizer import NEVER_ENCODED, UNK

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "gelu_tanh": common_spec.Activation.GELUTanh,
    "silu": common_spec.Activation.SWISH,
    "gated_gelu": common_spec.Activation.GELUTanh,
    "gated_silu": common_spec.Activation.SWISH,
    "tanh": common_spec.Activation.Tanh,
}
"""Our name of an activation function -> CTranslate2's."""

VOCABULARY_MAP = "vmap.txt"
"""File of a vocabulary shortlist in a model folder of CTranslate2."""


def save(task: AnyTask, folder: Path) -> str:
    """Write the files of a CTranslate2 model into a folder. Returns a description.

    Raises:
        UserError: CTranslate2 has no such model.
    """
    tokens = vocabulary(task)
    save_model(task.model, tokens, folder)
    what = ""
    if isinstance(task, GeneratesText) and task.shortlist:
        (folder / VOCABULARY_MAP).write_text(vocabulary_map(task.shortlist, tokens), encoding="utf-8", newline="\n")
        what = ", with the vocabulary shortlist (use_vmap=True)"
    if task.kind == "encoder":
        what = (
            f": {'hidden states and pooler' if has_pooler(task.model) else 'hidden states'}, without the output layer"
        )
    return f"a model for ctranslate2.{CLASSES[task.kind].__name__}{what}"


def save_model(model: Model, tokens: list[str], folder: Path, quantization: str | None = None) -> None:
    """Write the files of a CTranslate2 model into a folder.

    Args:
        tokens: names of the vocabulary entries, all different.
        quantization: "int8", "float32" or another type of CTranslate2. Default: the weights as they are, in fp32.

    Raises:
        UserError: CTranslate2 has no such model.
    """
    c = model.config
    family = family_of(model)
    if family not in SPECS:
        raise UserError(f"a {family}: CTranslate2 has no such model. Supported families: {', '.join(SPECS)}.")
    faults = {
        "pruned attention heads": c.pruned_heads,
        "additive attention": getattr(c, "attention", "dot") != "dot",
        "learned positions": getattr(c, "learned_positions", False),
        "normalized embeddings": getattr(c, "embedding_norm", False),
    }
    if what := next((name for name, is_present in faults.items() if is_present), None):
        raise UserError(f"a {family} with {what}: CTranslate2 has no such model, so it cannot be exported.")
    spec = SPECS[family](model)
    if model.kind == "encoder-decoder":
        spec.register_source_vocabulary(tokens)
        spec.register_target_vocabulary(tokens)
        spec.config.decoder_start_token = tokens[c.bos_id]
    else:
        spec.register_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token = tokens[c.bos_id], tokens[c.eos_id]
    spec.config.unk_token = next((token for token in (UNK, wordpiece.UNK) if token in tokens), tokens[c.pad_id])
    spec.config.layer_norm_epsilon = getattr(c, "norm_eps", 1e-5)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def vocabulary_map(shortlist: Shortlist, tokens: Sequence[str]) -> str:
    """A shortlist as CTranslate2 reads it: a token, a tab, and the target tokens; those of the empty token are on every
    list.
    """
    lists = {"": shortlist.frequent}
    for i in np.flatnonzero(shortlist.begins[1:] > shortlist.begins[:-1]).tolist():
        lists[tokens[i]] = np.append(shortlist.targets[shortlist.begins[i] : shortlist.begins[i + 1]], i)
    return "".join(f"{token}\t{' '.join(tokens[i] for i in ids.tolist())}\n" for token, ids in lists.items())


def vocabulary(task: AnyTask) -> list[str]:
    """Names of the vocabulary entries, all different. Rows of the embedding that have no token get a name too."""
    id_to_token = task.tokenizer.backend.id_to_token
    return [(id_to_token(i) or f"<unused {i}>").removeprefix(NEVER_ENCODED) for i in range(task.config.vocab_size)]


# Specifications: weights of a model under CTranslate2's names


def transformer(model: Any) -> Any:
    """Specification of the original Transformer, or of T5."""
    c = model.config
    is_t5 = family_of(model) == "t5"
    options: dict[str, Any] = {"pre_norm": c.pre_norm} if not is_t5 else {
        "pre_norm": True, "rms_norm": True, "relative_attention_bias": True, "head_dim": c.d_head,
    }  # fmt: skip
    if not is_t5 and c.rotary:
        options |= {"rotary_dim": 0, "rotary_interleave": False}
    options |= {"activation": ACTIVATIONS[c.activation], "ffn_glu": c.activation.startswith("gated")}
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(c.n_encoder_layers, c.n_heads, **options),
        transformer_spec.TransformerDecoderSpec(c.n_decoder_layers, c.n_heads, **options),
    )
    fill_stack(spec.encoder, model, model.encoder, model.encoder_norm)
    fill_stack(spec.decoder, model, model.decoder, model.decoder_norm)
    fill_projection(spec.decoder.projection, model)
    if is_t5:
        if c.scale_output:
            spec.decoder.scale_outputs = c.d_model**-0.5
        for side, bias in ((spec.encoder, model.encoder_position_bias), (spec.decoder, model.decoder_position_bias)):
            for layer in side.layer:
                layer.self_attention.relative_attention_bias = array(bias.weight)
                layer.self_attention.relative_attention_max_distance = np.int32(c.max_distance)
    return spec


def decoder_only(model: Any) -> Any:
    """Specification of GPT-2, or of Llama."""
    c = model.config
    options: dict[str, Any] = {}
    if family_of(model) == "llama":
        n_kv_heads = c.n_kv_heads if c.n_kv_heads != c.n_heads else None
        options = {
            "rms_norm": True, "rotary_dim": 0, "rotary_interleave": False,
            "rotary_base": c.rope_theta, "num_heads_kv": n_kv_heads, "head_dim": c.d_head,
        }  # fmt: skip
    options |= {"activation": ACTIVATIONS[c.activation], "ffn_glu": c.activation.startswith("gated")}
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(c.n_layers, c.n_heads, pre_norm=True, **options)
    fill_stack(spec.decoder, model, model.decoder, model.decoder_norm)
    fill_projection(spec.decoder.projection, model)
    return spec


def bert(model: Any) -> Any:
    """Specification of a BERT without the other layers of its head than the dense layer of the pooler."""
    c = model.config
    encoder = transformer_spec.TransformerEncoderSpec(
        c.n_layers, c.n_heads, pre_norm=c.pre_norm, activation=ACTIVATIONS[c.activation], layernorm_embedding=True,
        num_source_embeddings=2 if c.n_token_types else 1, embeddings_merge=common_spec.EmbeddingsMerge.ADD,
        ffn_glu=c.activation.startswith("gated"),
    )  # fmt: skip
    spec = transformer_spec.TransformerEncoderModelSpec(
        encoder, pooling_layer=has_pooler(model), pooling_activation=ACTIVATIONS[c.pooler_activation]
    )
    fill_stack(spec.encoder, model, model.encoder, model.encoder_norm)
    fill_norm(spec.encoder.layernorm_embedding, model.embedding_norm)
    if c.n_token_types:
        spec.encoder.embeddings[1].weight = array(model.token_type_embedding.weight)
    if has_pooler(model):
        fill_linear(spec.pooler_dense, model.pooler)
    return spec


def has_pooler(model: Any) -> bool:
    """Whether a BERT has a dense layer on its first token, as CTranslate2's pooler."""
    return model.pooler is not None and model.config.pooling == "first"


SPECS = {"transformer": transformer, "t5": transformer, "gpt2": decoder_only, "llama": decoder_only, "bert": bert}
"""Model family -> function that makes the specification of a model."""


def fill_stack(spec: Any, model: Any, blocks: Sequence[TransformerBlock], final_norm: nn.Module) -> None:
    """Embedding, positions, blocks and final normalization of an encoder or decoder."""
    embedding = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embedding.weight = array(model.embedding.weight)
    spec.scale_embeddings = model.embedding_scale
    # A decoder's first input is the start token, in addition to the maximum length.
    positions = model.position_vectors(model.config.max_len + (model.kind == "encoder-decoder"))
    if positions is not None:
        spec.position_encodings.encodings = array(positions)
    if hasattr(spec, "layer_norm"):
        fill_norm(spec.layer_norm, final_norm)
    for layer, block in zip(spec.layer, blocks, strict=True):
        fill_attention(layer.self_attention, block.self_attention, block.self_attn_residual.norm)
        if hasattr(layer, "attention"):
            fill_attention(layer.attention, block.cross_attention, block.cross_attn_residual.norm)
        feedforward = block.feedforward
        if feedforward.gate is None:
            fill_linear(layer.ffn.linear_0, feedforward.up)
        else:
            fill_linear(layer.ffn.linear_0, feedforward.gate)
            fill_linear(layer.ffn.linear_0_noact, feedforward.up)
        fill_linear(layer.ffn.linear_1, feedforward.down)
        fill_norm(layer.ffn.layer_norm, block.feedforward_residual.norm)


def fill_attention(spec: Any, module: Attention, norm: nn.Module) -> None:
    """Self-attention has two linear layers there, queries, keys and values together; cross-attention has three."""
    q, k, v = module.q_proj, module.k_proj, module.v_proj
    for linear, layers in zip(spec.linear, [(q, k, v)] if len(spec.linear) == 2 else [(q,), (k, v)], strict=False):
        fill_linear(linear, *layers)
    fill_linear(spec.linear[-1], module.out_proj)
    fill_norm(spec.layer_norm, norm)
    spec.queries_scale = module.scale


def fill_linear(spec: Any, *layers: nn.Linear) -> None:
    """A linear layer, or several with the same input as one."""
    spec.weight = np.concatenate([array(layer.weight) for layer in layers])
    if layers[0].bias is not None:
        spec.bias = np.concatenate([array(layer.bias) for layer in layers])


def fill_norm(spec: Any, norm: Any) -> None:
    """LayerNorm, or RMSNorm, which has no bias."""
    spec.gamma = array(norm.weight)
    if getattr(norm, "bias", None) is not None:
        spec.beta = array(norm.bias)


def fill_projection(spec: Any, model: Any) -> None:
    """The projection to the vocabulary."""
    spec.weight = array(model.output_weight)
    if model.output_bias is not None:
        spec.bias = array(model.output_bias)


def array(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A tensor as a numpy array in fp32."""
    return tensor.detach().float().cpu().numpy()


# Use

CLASSES = {
    "encoder": ctranslate2.Encoder,
    "decoder": ctranslate2.Generator,
    "encoder-decoder": ctranslate2.Translator,
}
"""Kind of a model -> CTranslate2's class."""


def load(folder: Path, task: AnyTask) -> "CTranslate2Model":
    """Read the model that `save` wrote for a task."""
    return CTranslate2Model(folder, task)


class CTranslate2Model:
    """A model in CTranslate2, with the interface of `verification.ExportedModel`."""

    def __init__(self, folder: Path, task: Any) -> None:
        self.task = task
        self.tokens = vocabulary(task)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.model: Any = CLASSES[task.kind](str(folder), device="cpu", intra_threads=torch.get_num_threads())

    def names(self, rows: Sequence[Ids]) -> list[list[str]]:
        """Names of the tokens, which CTranslate2 takes instead of ids."""
        return [[self.tokens[i] for i in row] for row in rows]

    def generate(self, sources: Sequence[Ids], max_new_tokens: int) -> list[list[int]]:
        """See `ExportedModel`."""
        options = {"beam_size": 1, "max_batch_size": 1024, "batch_type": "tokens", "return_end_token": True}
        options["suppress_sequences"] = self.names([(i,) for i in self.task.banned_ids])
        (options["end_token"],) = self.names([(self.task.tokenizer.eos_id, *self.task.end_ids)])
        if self.task.kind == "decoder":
            generated = self.model.generate_batch(
                self.names(sources), include_prompt_in_result=False, max_length=max_new_tokens, **options
            )
            return [result.sequences_ids[0] for result in generated]
        translated = self.model.translate_batch(
            self.names(sources),
            min_decoding_length=0,
            max_decoding_length=max_new_tokens,
            max_input_length=0,
            **options,
        )
        return [[self.ids[token] for token in result.hypotheses[0]] for result in translated]

    def log_probs(self, sources: Sequence[Ids], outputs: Sequence[Ids]) -> list[list[float]]:
        """See `ExportedModel`."""
        options: dict[str, Any] = {"max_batch_size": 1024, "batch_type": "tokens", "max_input_length": 0}
        if self.task.kind == "decoder":
            rows = [[*source, *output] for source, output in zip(sources, outputs, strict=True)]
            scored = self.model.score_batch(self.names(rows), **options)
            return [
                result.log_probs[len(source) - 1 :][: len(output)]
                for result, source, output in zip(scored, sources, outputs, strict=True)
            ]
        # CTranslate2 adds the end token to each target.
        eos_id = self.task.tokenizer.eos_id
        targets = [output[:-1] if output[-1:] == [eos_id] else output for output in map(list, outputs)]
        scored = self.model.score_batch(self.names(sources), self.names(targets), **options)
        return [result.log_probs[: len(output)] for result, output in zip(scored, outputs, strict=True)]

    def outputs(self, ids: Ids, token_type_ids: Ids) -> Outputs:
        """See `ExportedModel`."""
        n_types = self.task.config.n_token_types
        types = {"token_type_ids": [[min(i, n_types - 1) for i in token_type_ids]]} if n_types else {}
        result = self.model.forward_batch([list(ids)], **types)
        outputs = {"last_hidden_state": np.array(result.last_hidden_state)[0]}
        if result.pooler_output is not None:
            outputs["pooler_output"] = np.array(result.pooler_output)[0]
        return outputs
