"""Everything there is to see of one text in a model, as one record: for notebooks, for programs, for the page."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.inspection.arrays import Array, array, pack, packed
from glassformer.inspection.inputs import ModelInputs, Side, read
from glassformer.inspection.record import ActivationCache, record
from glassformer.inspection.search_tree import Node, best_path, path, tree
from glassformer.models.families import family_of

FORMAT = 1
"""Of the JSON that `Inspection.record` gives; docs/inspection.md describes it."""

TOP = 8
"""Alternatives kept of each prediction."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """One attention: who looks at whom."""

    name: str
    kind: str
    """encoder, decoder or cross."""
    layer: int
    queries: str
    keys: str
    """Names of sides."""
    weights: Array
    """[heads, queries, keys]; rows sum to 1."""
    norms: dict[str, Array]
    """Of queries, keys and values their lengths, [heads, tokens]."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something a model may say, and how probable it finds that."""

    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model makes of one place."""

    position: int
    best: list[Candidate]
    expected: str | None = None
    log_prob: float | None = None
    """Natural logarithm of the probability of what was expected: its loss with the sign turned."""
    rank: int | None = None
    """How many the model found more probable than what was expected."""


@dataclass(slots=True)
class Inspection:
    """What a model does with a text."""

    task: str
    family: str
    sizes: dict[str, Any]
    sides: dict[str, Side]
    notes: list[str]
    vectors: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Of each side: embedding, positions, sum [tokens, d_model]."""
    attention: list[AttentionMap] = field(default_factory=list)
    rollout: dict[str, Array] = field(default_factory=dict)
    """Of stacks of self-attention [tokens, tokens]: what each place has of each token at the end."""
    stream: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Of each side, by the name of the sub-layer: lengths of the residual stream [tokens]."""
    lens: dict[str, list[Prediction]] = field(default_factory=dict)
    """By layer: what would be predicted if the stack ended there."""
    predictions: list[Prediction] = field(default_factory=list)
    """Of the last layer: of a decoder what follows each place, of an encoder what stands or holds there."""
    predicts: str = ""
    """next: the token that follows; words: the token that stands there; tags: its tag; span: answer ends; label."""
    first_predicted: int = 0
    answer: str = ""
    """What the task answers, where that is no token's prediction: the answer to a question."""
    nodes: list[Node] = field(default_factory=list)
    best_path: list[int] = field(default_factory=list)
    """The hypotheses that search looked at, and those on the winner's way."""
    node_texts: list[str] = field(default_factory=list)
    ended_texts: list[str | None] = field(default_factory=list)
    """Of each hypothesis its token; of those that ended all that they say."""
    alignment: Array | None = None
    """[target tokens, source tokens]: the mean of all heads of cross-attention, for the token that was said next."""
    agreement: Array | None = None
    """[target tokens]: the share of heads whose largest weight is where the mean's is."""
    saliency: dict[str, Array] = field(default_factory=dict)
    """Of classifiers [tokens]: gradient x input of the answer, and roll-out to the place that is pooled."""

    def record(self) -> dict[str, Any]:
        """As JSON holds it; arrays are 16-bit steps between their least and largest value, in base 64."""
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
            "vectors": {name: packed(vectors) for name, vectors in self.vectors.items()},
            "attention": [
                {
                    **{key: getattr(a, key) for key in ("name", "kind", "layer", "queries", "keys")},
                    "weights": pack(a.weights),
                    "norms": packed(a.norms),
                }
                for a in self.attention
            ],
            "rollout": packed(self.rollout),
            "stream": {name: packed(norms) for name, norms in self.stream.items()},
            "lens": {name: [plain(p) for p in row] for name, row in self.lens.items()},
            "predictions": [plain(p) for p in self.predictions],
            "predicts": self.predicts,
            "first_predicted": self.first_predicted,
            "answer": self.answer,
            "beam": [
                [n.parent, n.step, text, rounded(n.log_prob), rounded(n.total), n.status, rounded(n.score), whole]
                for n, text, whole in zip(self.nodes, self.node_texts, self.ended_texts, strict=True)
            ],
            "best_path": self.best_path,
            "alignment": None if self.alignment is None else pack(self.alignment),
            "agreement": None if self.agreement is None else pack(self.agreement),
            "saliency": packed(self.saliency),
        }

    def _repr_html_(self) -> str:
        from glassformer.inspection.page import frame, inspection_page

        return frame(inspection_page(self.record()))


def rounded(x: float | None) -> float | None:
    """Five digits are more than the page shows."""
    return None if x is None else round(x, 5)


def plain(p: Prediction) -> list[Any]:
    """A prediction as a row: place, what was expected, its log-probability and rank, the best ones."""
    best = [[guess.text, round(guess.probability, 5)] for guess in p.best]
    return [p.position, p.expected, rounded(p.log_prob), p.rank, best]


def inspect(
    task: Any, text: str, target: str | None = None, *, window: int = 1, top: int = TOP, **options: Any
) -> Inspection:
    """Look at what a task's model does with a text.

    Args:
        task: what `glassformer.load` gives.
        text: what the model is to read; of a pair, two texts that a tab separates.
        target: what a translator or a language model is to follow in place of what search finds best.
        window: of a text longer than the model reads, the stretch to look at, counted from 1.
        top: alternatives to keep of each prediction.
        options: those of `DecodeConfig`: beam, length_penalty, max_length, no_repeat_ngram_size.

    Raises:
        ConfigError: nothing to read, or a target for a model that says nothing.
    """
    inputs = read(task, text, target, options=DecodeConfig.resolve(options), window=window)
    with torch.inference_mode(), record(task.model) as cache:
        hidden = inputs.forward()
    found = Inspection(
        task.name, family_of(task.model), task.model.config.model_dump(), inputs.sides, inputs.notes,
        first_predicted=inputs.first_predicted,
    )  # fmt: skip
    with torch.inference_mode():
        found.vectors = vectors(inputs, cache)
        found.attention = attention_maps(inputs, cache)
        found.stream = stream(inputs, cache)
        for name, x in [*layers(cache, "target" in inputs.sides), ("", hidden)]:
            predicts, predictions = predict(inputs, x, top, is_last=not name)
            if not name:
                found.predicts, found.predictions = predicts, predictions
            elif predictions:
                found.lens[name] = predictions
    found.rollout = {
        kind: rollout([a.weights for a in found.attention if a.kind == kind])
        for kind in ("encoder", "decoder")
        if any(a.kind == kind for a in found.attention)
    }
    if inputs.recorder:
        add_search_tree(found, inputs)
    if any(a.kind == "cross" for a in found.attention):
        add_alignment(found)
    if found.predicts == "label":
        found.saliency = saliency(inputs, found)
    if found.predicts == "span":
        found.answer = task(*text.split("\t", 1)) if "\t" in text else task.run([text])[0]
    return found


def vectors(inputs: ModelInputs, cache: ActivationCache) -> dict[str, dict[str, Array]]:
    """What each side's tokens begin as."""
    model = inputs.task.model
    found = {}
    calls = cache.calls("embedding")
    for i, (name, one) in enumerate(inputs.sides.items()):
        # A recurrent decoder reads one token after the other.
        words = calls[i] if calls[i].dim() == 3 else torch.stack(calls[i:], dim=1)
        words = words[:, : len(one.ids)]
        if getattr(model.config, "scale_embedding", family_of(model) == "rnn"):
            words = words * model.config.d_model**0.5
        parts = {"embedding": words}
        match family_of(model):
            case "transformer":
                parts["positions"] = model.positions[: len(one.ids)][None]
            case "gpt2" | "bert":
                parts["positions"] = cache["position_embedding"].view(1, -1, model.config.d_model)
        if "token_type_embedding" in cache:
            parts["token_types"] = cache["token_type_embedding"]
        if len(parts) > 1:
            parts["sum"] = torch.stack([part.expand_as(words) for part in parts.values()]).sum(0)
        found[name] = {kind: array(part[0]) for kind, part in parts.items()}
    return found


def attention_maps(inputs: ModelInputs, cache: ActivationCache) -> list[AttentionMap]:
    """All attentions, in the order in which they came."""
    maps = []
    for name in (name.removesuffix(".weights") for name in cache if name.endswith(".weights")):
        stack, _, kind = name.partition(".")
        layer, _, kind = kind.partition(".") if kind else ("0", "", name)
        cross = kind == "cross_attention"
        own = next(iter(inputs.sides)) if stack == "encoder" else inputs.predicted.name
        weights = torch.cat([call[0] for call in cache.calls(f"{name}.weights")], dim=-2)
        n_keys = len(inputs.sides["source" if cross else own].ids)
        maps.append(
            AttentionMap(
                name=name,
                kind="cross" if cross else stack,
                layer=int(layer) if layer.isdecimal() else 0,
                queries=inputs.predicted.name if cross else own,
                keys="source" if cross else own,
                weights=array(weights[..., :n_keys]),
                norms={
                    what: array(
                        torch.cat([call[0] for call in cache.calls(f"{name}.{what}")], dim=-2).norm(dim=-1)
                        if what == "queries"
                        else cache[f"{name}.{what}"][0].norm(dim=-1)
                    )
                    for what in ("queries", "keys", "values")
                },
            )
        )
    return maps


def stream(inputs: ModelInputs, cache: ActivationCache) -> dict[str, dict[str, Array]]:
    """Lengths of the residual stream after every sub-layer."""
    found: dict[str, dict[str, Array]] = {}
    for name, x in cache.items():
        stack, _, rest = name.partition(".")
        if stack in ("encoder", "decoder") and rest.endswith("_residual") and rest.count(".") == 1:
            own = next(iter(inputs.sides)) if stack == "encoder" else inputs.predicted.name
            found.setdefault(own, {})[name] = array(x[0].norm(dim=-1))
    return found


def layers(cache: ActivationCache, says: bool) -> list[tuple[str, Tensor]]:
    """The output of each layer but the last of the stack that predicts."""
    stacks = ("decoder",) if says else ("encoder", "decoder")
    found = [(name, x) for name, x in cache.items() if name.partition(".")[0] in stacks and name.count(".") == 1]
    return [(name, x) for name, x in found if name.partition(".")[2].isdecimal() and x.dim() == 3][:-1]


def predict(inputs: ModelInputs, x: Tensor, top: int, *, is_last: bool) -> tuple[str, list[Prediction]]:
    """What the model's head makes of a layer's output.

    Args:
        is_last: the output of the whole model, not of a layer before its final norm.
    """
    task, model, t = inputs.task, inputs.task.model, inputs.task.tokenizer
    ids = inputs.inputs[0]
    names: Any = t.token
    match family_of(model):
        case "bert":
            x = x if is_last else model.encoder_norm(x)
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
        case "t5":
            predicts, logits = "next", model.logits(x if is_last else model.scale_hidden(model.decoder_norm(x)))[0]
        case "rnn":
            predicts, logits = "next", model.logits(x)[0]
        case _:
            predicts, logits = "next", model.logits(x if is_last else model.decoder_norm(x))[0]
    log_probs = logits.float().log_softmax(-1)
    best = log_probs.topk(min(top, log_probs.size(-1)))
    rows = []
    for place, (values, choice) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
        if predicts == "tags" and not begins_word(inputs.predicted, place):
            continue
        guesses = [Candidate(names(i), math.exp(p)) for i, p in zip(choice, values, strict=True)]
        if place < len(inputs.expected):
            told = inputs.expected[place]
            log_prob = log_probs[place, told]
            rank = int((log_probs[place] > log_prob).sum())
            rows.append(Prediction(place, guesses, names(told), float(log_prob), rank))
        else:
            rows.append(Prediction(place, guesses))
    return predicts, rows


def begins_word(side: Side, place: int) -> bool:
    """Whether a token is the first of a word, which is the one that is tagged."""
    offset = side.offsets[place]
    return offset is not None and (offset[0] == 0 or side.text[offset[0] - 1].isspace())


def rollout(maps: list[Array]) -> Array:
    """How much of each token has come to each place after a stack of self-attention, residuals counted as half.

    Source: Abnar & Zuidema 2020.
    """
    total = np.eye(maps[0].shape[-1], dtype=np.float32)
    for weights in maps:
        mixed = 0.5 * weights.mean(0) + 0.5 * np.eye(weights.shape[-1], dtype=np.float32)
        total = mixed @ total
    return total


def add_search_tree(found: Inspection, inputs: ModelInputs) -> None:
    """The search that found the target."""
    t, recorder = inputs.task.tokenizer, inputs.recorder
    assert recorder is not None
    banned = (t.pad_id, t.bos_id) if "source" in inputs.sides else inputs.task.banned_ids
    found.nodes = tree(recorder, eos_id=t.eos_id, banned_ids=banned)
    found.node_texts = [t.token(node.token_id) for node in found.nodes]
    found.ended_texts = [
        None if node.score is None else t.decode([found.nodes[j].token_id for j in path(found.nodes, i)])
        for i, node in enumerate(found.nodes)
    ]
    found.best_path = best_path(found.nodes, recorder.found[0])


def add_alignment(found: Inspection) -> None:
    """The mean of all heads of cross-attention, and how many agree with it."""
    heads = np.concatenate([a.weights for a in found.attention if a.kind == "cross"])
    found.alignment = heads.mean(0)
    found.agreement = (heads.argmax(-1) == found.alignment.argmax(-1)).mean(0).astype(np.float32)


def saliency(inputs: ModelInputs, found: Inspection) -> dict[str, Array]:
    """Which tokens the most probable class rests on."""
    model = inputs.task.model
    with torch.enable_grad(), record(model) as cache:
        logits = model.label_logits(inputs.forward(), inputs.inputs[0])
        words = cache["embedding"]
        (gradient,) = torch.autograd.grad(logits.log_softmax(-1)[0].max(), words)
    flow = found.rollout["encoder"]
    return {
        "gradient x input": array((gradient * words).sum(-1)[0]),
        "roll-out": flow[0] if model.config.pooling == "first" else flow.mean(0),
    }
