"""Inspection of one text: attention, predictions, search and hidden states, as one record."""

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from glassformer.config import JsonObject
from glassformer.decode_config import DecodeConfig, SearchConfig, SearchOptions
from glassformer.inspection.arrays import Array, array, pack, pack_all
from glassformer.inspection.inputs import ModelInputs, Side, prepare_inputs
from glassformer.inspection.record import ActivationCache, record_activations
from glassformer.inspection.search_tree import Node, best_path, path, search_tree
from glassformer.models.families import family_of
from glassformer.tasks.base import AnyTask

FORMAT = 1
"""Version of the JSON format of `Inspection.record`, documented in docs/inspection.md."""

TOP_K = 8
"""Default number of alternatives kept for each prediction."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Attention weights of one module."""

    name: str
    kind: str
    """"encoder", "decoder" or "cross"."""
    layer: int
    queries: str
    keys: str
    """`queries` and `keys`: names of sides."""
    weights: Array
    """[heads, queries, keys]; rows sum to 1."""
    norms: dict[str, Array]
    """Euclidean norms of the queries, keys and values: [heads, tokens]."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate output and its probability."""

    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction at one position."""

    position: int
    best: list[Candidate]
    expected: str | None = None
    log_prob: float | None = None
    """Natural logarithm of the probability of the expected token: the negative loss."""
    rank: int | None = None
    """Number of tokens with a higher probability than the expected token."""


@dataclass(slots=True)
class Inspection:
    """Activations and predictions of a model for one text."""

    task: str
    family: str
    sizes: JsonObject
    sides: dict[str, Side]
    notes: list[str]
    vectors: dict[str, dict[str, Array]] = field(default_factory=dict)
    """By side: embedding, positions, token types and their sum, each [tokens, d_model]."""
    attention: list[AttentionMap] = field(default_factory=list)
    rollout: dict[str, Array] = field(default_factory=dict)
    """By stack of self-attention: attention roll-out from each position to each token, [tokens, tokens]."""
    stream: dict[str, dict[str, Array]] = field(default_factory=dict)
    """By side and sub-layer: norms of the residual stream, [tokens]."""
    lens: dict[str, list[Prediction]] = field(default_factory=dict)
    """By layer: predictions made from the output of that layer (logit lens)."""
    predictions: list[Prediction] = field(default_factory=list)
    """Predictions of the last layer: next tokens of a decoder, tokens or labels of an encoder."""
    predicts: str = ""
    """next: the following token; words: the token at the position; tags: its tag; span: start and end of the answer;
    label; number; nothing."""
    first_predicted: int = 0
    answer: str = ""
    """Output of the task where it is not a prediction of single tokens: the answer to a question."""
    nodes: list[Node] = field(default_factory=list)
    best_path: list[int] = field(default_factory=list)
    """Hypotheses expanded by the search, and indices of those that lead to the best one."""
    node_texts: list[str] = field(default_factory=list)
    ended_texts: list[str | None] = field(default_factory=list)
    """Token of each node, and the complete text of each node that ends a hypothesis."""
    alignment: Array | None = None
    """[target tokens, source tokens]: mean of all cross-attention heads for the prediction of each target token."""
    agreement: Array | None = None
    """[target tokens]: fraction of heads whose largest weight is on the same source token as that of the mean."""
    saliency: dict[str, Array] = field(default_factory=dict)
    """Classification: gradient x input of the predicted class and roll-out to the pooled position, each [tokens]."""

    def to_dict(self) -> JsonObject:
        """Convert to JSON-serializable data. Arrays are encoded by `pack`."""
        return {
            "format": FORMAT,
            "task": self.task,
            "family": self.family,
            "sizes": self.sizes,
            "notes": self.notes,
            "sides": {
                name: {"text": s.text, "ids": s.ids, "tokens": s.tokens, "offsets": s.offsets}
                for name, s in self.sides.items()
            },
            "vectors": {name: pack_all(vectors) for name, vectors in self.vectors.items()},
            "attention": [
                {
                    **{key: getattr(a, key) for key in ("name", "kind", "layer", "queries", "keys")},
                    "weights": pack(a.weights),
                    "norms": pack_all(a.norms),
                }
                for a in self.attention
            ],
            "rollout": pack_all(self.rollout),
            "stream": {name: pack_all(norms) for name, norms in self.stream.items()},
            "lens": {name: [prediction_row(p) for p in row] for name, row in self.lens.items()},
            "predictions": [prediction_row(p) for p in self.predictions],
            "predicts": self.predicts,
            "first_predicted": self.first_predicted,
            "answer": self.answer,
            "beam": [
                [n.parent, n.step, text, rounded(n.log_prob), rounded(n.total), n.status, rounded(n.score), ended_text]
                for n, text, ended_text in zip(self.nodes, self.node_texts, self.ended_texts, strict=True)
            ],
            "best_path": self.best_path,
            "alignment": None if self.alignment is None else pack(self.alignment),
            "agreement": None if self.agreement is None else pack(self.agreement),
            "saliency": pack_all(self.saliency),
        }

    def _repr_html_(self) -> str:
        from glassformer.inspection.page import frame, inspection_page

        return frame(inspection_page(self.to_dict()))


def rounded(x: float | None) -> float | None:
    """Round to 5 decimals, more than the page shows."""
    return None if x is None else round(x, 5)


def prediction_row(p: Prediction) -> list[object]:
    """Convert a prediction to a row: position, expected token, its log-probability and rank, best candidates."""
    best = [[candidate.text, round(candidate.probability, 5)] for candidate in p.best]
    return [p.position, p.expected, rounded(p.log_prob), p.rank, best]


def inspect(
    task: AnyTask,
    text: str,
    target: str | None = None,
    *,
    window: int = 1,
    top: int = TOP_K,
    tag: str = "",
    **options: Unpack[SearchOptions],
) -> Inspection:
    """Record attention, predictions, search and hidden states of a task's model for one text.

    Args:
        task: a task returned by `glassformer.load`.
        text: input text. Two texts of a pair are separated by a tab.
        target: translation and language models: text to score instead of the best hypothesis of the search.
        window: index of the window of a text that exceeds the maximum length, counted from 1.
        top: number of alternatives to keep for each prediction.
        tag: translators: tag of training files (`train --tags`).
        options: fields of `SearchConfig`, for models that generate text.

    Raises:
        ConfigError: the text is empty, or a target or an option of the search is given for a model that generates no
            text.
    """
    given = {"tag": tag} if tag else {}
    search = DecodeConfig(**SearchConfig.resolve(options).model_dump(exclude_unset=True), **given)
    task.check_options(search)
    inputs = prepare_inputs(task, text, target, options=search, window=window)
    with torch.inference_mode(), record_activations(task.model) as cache:
        hidden = inputs.forward()
    inspection = Inspection(
        task.name, family_of(task.model), task.config.model_dump(), inputs.sides, inputs.notes,
        first_predicted=inputs.first_predicted,
    )  # fmt: skip
    with torch.inference_mode():
        inspection.vectors = vectors(inputs, cache)
        inspection.attention = attention_maps(inputs, cache)
        inspection.stream = residual_norms(inputs, cache)
        for name, x in [*layer_outputs(cache, "target" in inputs.sides), ("", hidden)]:
            predicts, predictions = predict(inputs, x, top, is_last=not name)
            if not name:
                inspection.predicts, inspection.predictions = predicts, predictions
            elif predictions:
                inspection.lens[name] = predictions
    inspection.rollout = {
        kind: rollout([a.weights for a in inspection.attention if a.kind == kind])
        for kind in ("encoder", "decoder")
        if any(a.kind == kind for a in inspection.attention)
    }
    if inputs.search:
        add_search_tree(inspection, inputs)
    if any(a.kind == "cross" for a in inspection.attention):
        add_alignment(inspection)
    if inspection.predicts == "label":
        inspection.saliency = saliency(inputs, inspection)
    if inspection.predicts == "span":
        inspection.answer = task(*text.split("\t", 1)) if "\t" in text else task.run([text])[0]
    return inspection


def vectors(inputs: ModelInputs, cache: ActivationCache) -> dict[str, dict[str, Array]]:
    """Embedding, position and token type vectors of each side, and their sum."""
    model = inputs.task.model
    results = {}
    calls = cache.calls("embedding")
    for i, (name, side) in enumerate(inputs.sides.items()):
        # A recurrent decoder embeds one token per call.
        embedding = calls[i] if calls[i].dim() == 3 else torch.stack(calls[i:], dim=1)
        embedding = embedding[:, : len(side.ids)]
        if model.embedding_scale != 1.0:
            embedding = embedding * model.embedding_scale
        parts = {"embedding": embedding}
        if (positions := model.position_vectors(len(side.ids), name)) is not None:
            parts["positions"] = positions[None]
        if "token_type_embedding" in cache:
            parts["token_types"] = cache["token_type_embedding"]
        if len(parts) > 1:
            parts["sum"] = torch.stack([part.expand_as(embedding) for part in parts.values()]).sum(0)
        results[name] = {kind: array(part[0]) for kind, part in parts.items()}
    return results


def attention_maps(inputs: ModelInputs, cache: ActivationCache) -> list[AttentionMap]:
    """Attention weights of all modules, in the order of execution."""
    maps = []
    for name in (name.removesuffix(".weights") for name in cache if name.endswith(".weights")):
        stack, _, kind = name.partition(".")
        layer, _, kind = kind.partition(".") if kind else ("0", "", name)
        cross = kind == "cross_attention"
        side = next(iter(inputs.sides)) if stack == "encoder" else inputs.predicted.name
        weights = torch.cat([call[0] for call in cache.calls(f"{name}.weights")], dim=-2)
        n_keys = len(inputs.sides["source" if cross else side].ids)
        maps.append(
            AttentionMap(
                name=name,
                kind="cross" if cross else stack,
                layer=int(layer) if layer.isdecimal() else 0,
                queries=inputs.predicted.name if cross else side,
                keys="source" if cross else side,
                weights=array(weights[..., :n_keys]),
                norms={
                    projection: array(
                        torch.cat([call[0] for call in cache.calls(f"{name}.{projection}")], dim=-2).norm(dim=-1)
                        if projection == "queries"
                        else cache[f"{name}.{projection}"][0].norm(dim=-1)
                    )
                    for projection in ("queries", "keys", "values")
                },
            )
        )
    return maps


def residual_norms(inputs: ModelInputs, cache: ActivationCache) -> dict[str, dict[str, Array]]:
    """Norms of the residual stream after every sub-layer, by side and sub-layer."""
    results: dict[str, dict[str, Array]] = {}
    for name, x in cache.items():
        stack, _, rest = name.partition(".")
        if stack in ("encoder", "decoder") and rest.endswith("_residual") and rest.count(".") == 1:
            side = next(iter(inputs.sides)) if stack == "encoder" else inputs.predicted.name
            results.setdefault(side, {})[name] = array(x[0].norm(dim=-1))
    return results


def layer_outputs(cache: ActivationCache, only_decoder: bool) -> list[tuple[str, Tensor]]:
    """Outputs of all layers except the last one of the predicting stack.

    Args:
        only_decoder: ignore the encoder of an encoder-decoder.
    """
    stacks = ("decoder",) if only_decoder else ("encoder", "decoder")
    outputs = [(name, x) for name, x in cache.items() if name.partition(".")[0] in stacks and name.count(".") == 1]
    return [(name, x) for name, x in outputs if name.partition(".")[2].isdecimal() and x.dim() == 3][:-1]


def predict(inputs: ModelInputs, x: Tensor, top: int, *, is_last: bool) -> tuple[str, list[Prediction]]:
    """Apply the model's output head to the output of a layer.

    Args:
        top: maximum number of candidates per position.
        is_last: x is the output of the complete model, to which the final norm is already applied.

    Returns: the type of the predictions (see `Inspection.predicts`) and the predictions.
    """
    task, model, t = inputs.task, inputs.task.model, inputs.task.tokenizer
    ids = inputs.inputs[0]
    names: Any = t.token
    x = x if is_last else model.final_norm(x)
    if model.kind == "encoder":
        match model.config.head:
            case "mlm":
                predicts, logits = "words", model.mlm_logits(x)[0]
            case "none":
                return "nothing", []
            case "sequence" if model.config.n_labels == 1:
                number = float(model.label_logits(x, ids)[0, 0])
                low, high = getattr(task, "range", (-0.5, 0.5))
                return "number", [Prediction(0, [Candidate(f"{low + (high - low) * (number + 0.5):.4f}", 1.0)])]
            case "sequence":
                predicts, logits, names = "label", model.label_logits(x, ids), task.labels.__getitem__
            case "tokens":
                predicts, logits, names = "tags", model.label_logits(x, ids)[0], task.labels.__getitem__
            case "span" if not is_last:
                return "span", []
            case _:
                probs = model.label_logits(x, ids)[0].float().softmax(0)
                return "span", [
                    Prediction(i, [Candidate("start", start), Candidate("end", end)])
                    for i, (start, end) in enumerate(probs.tolist())
                ]
    else:
        predicts, logits = "next", model.logits(x)[0]
    log_probs = logits.float().log_softmax(-1)
    best = log_probs.topk(min(top, log_probs.size(-1)))
    predictions = []
    for position, (values, indices) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
        if predicts == "tags" and not begins_word(inputs.predicted, position):
            continue
        candidates = [Candidate(names(i), math.exp(p)) for i, p in zip(indices, values, strict=True)]
        if position < len(inputs.expected):
            expected = inputs.expected[position]
            log_prob = log_probs[position, expected]
            rank = int((log_probs[position] > log_prob).sum())
            predictions.append(Prediction(position, candidates, names(expected), float(log_prob), rank))
        else:
            predictions.append(Prediction(position, candidates))
    return predicts, predictions


def begins_word(side: Side, position: int) -> bool:
    """Whether a token is the first token of a word. Only first tokens are tagged."""
    offset, before = side.offsets[position], side.offsets[position - 1] if position else None
    has_same_start = offset is not None and before is not None and before[0] == offset[0]
    return offset is not None and not has_same_start and (offset[0] == 0 or side.text[offset[0] - 1].isspace())


def rollout(maps: list[Array]) -> Array:
    """Attention roll-out: attention from each position to each token through a stack, with residuals weighted 0.5.

    Source: Abnar & Zuidema 2020.
    """
    total = np.eye(maps[0].shape[-1], dtype=np.float32)
    for weights in maps:
        mixed = 0.5 * weights.mean(0) + 0.5 * np.eye(weights.shape[-1], dtype=np.float32)
        total = mixed @ total
    return total


def add_search_tree(inspection: Inspection, inputs: ModelInputs) -> None:
    """Add the recorded search tree to the inspection."""
    t, search = inputs.task.tokenizer, inputs.search
    assert search is not None
    inspection.nodes = search_tree(search)
    inspection.node_texts = [t.token(node.token_id) for node in inspection.nodes]
    inspection.ended_texts = [
        None if node.score is None else t.decode([inspection.nodes[j].token_id for j in path(inspection.nodes, i)])
        for i, node in enumerate(inspection.nodes)
    ]
    inspection.best_path = best_path(inspection.nodes, search.hypotheses[0])


def add_alignment(inspection: Inspection) -> None:
    """Add the mean of all cross-attention heads, and the fraction of heads that agree with it."""
    heads = np.concatenate([a.weights for a in inspection.attention if a.kind == "cross"])
    inspection.alignment = heads.mean(0)
    inspection.agreement = (heads.argmax(-1) == inspection.alignment.argmax(-1)).mean(0).astype(np.float32)


def saliency(inputs: ModelInputs, inspection: Inspection) -> dict[str, Array]:
    """Attribution of the most probable class to the input tokens: gradient x input and attention roll-out."""
    model = inputs.task.model
    with torch.enable_grad(), record_activations(model) as cache:
        logits = model.label_logits(inputs.forward(), inputs.inputs[0])
        embedding = cache["embedding"]
        (gradient,) = torch.autograd.grad(logits.log_softmax(-1)[0].max(), embedding)
    pooled = inspection.rollout["encoder"]
    return {
        "gradient x input": array((gradient * embedding).sum(-1)[0]),
        "roll-out": pooled[0] if model.config.pooling == "first" else pooled.mean(0),
    }
