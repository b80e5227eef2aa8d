"""Everything there is to see of one text in a model, as one record: for notebooks, for programs, for the page."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.inspection.arrays import Array, array, pack, packed
from glassformer.inspection.beam import Node, path, tree, winner
from glassformer.inspection.passage import Passage, Side, read
from glassformer.inspection.record import Tape, record
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
class Guess:
    """Something a model may say, and how probable it finds that."""

    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model makes of one place."""

    place: int
    best: list[Guess]
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
    first_said: int = 0
    said: str = ""
    """What the task answers, where that is no token's prediction: the answer to a question."""
    nodes: list[Node] = field(default_factory=list)
    won: list[int] = field(default_factory=list)
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
            "first_said": self.first_said,
            "said": self.said,
            "beam": [
                [n.parent, n.step, text, rounded(n.log_prob), rounded(n.total), n.fate, rounded(n.score), whole]
                for n, text, whole in zip(self.nodes, self.node_texts, self.ended_texts, strict=True)
            ],
            "won": self.won,
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
    return [p.place, p.expected, rounded(p.log_prob), p.rank, best]


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
        options: those of `DecodeConfig`: beam, length_penalty, max_length, no_repeat_ngram.

    Raises:
        ConfigError: nothing to read, or a target for a model that says nothing.
    """
    passage = read(task, text, target, options=DecodeConfig.resolve(options), window=window)
    with torch.inference_mode(), record(task.model) as tape:
        hidden = passage.forward()
    found = Inspection(
        task.name, family_of(task.model), task.model.config.model_dump(), passage.sides, passage.notes,
        first_said=passage.first_said,
    )  # fmt: skip
    with torch.inference_mode():
        found.vectors = vectors(passage, tape)
        found.attention = attention_maps(passage, tape)
        found.stream = stream(passage, tape)
        for name, x in [*layers(tape, "target" in passage.sides), ("", hidden)]:
            predicts, predictions = predict(passage, x, top, is_last=not name)
            if not name:
                found.predicts, found.predictions = predicts, predictions
            elif predictions:
                found.lens[name] = predictions
    found.rollout = {
        kind: rollout([a.weights for a in found.attention if a.kind == kind])
        for kind in ("encoder", "decoder")
        if any(a.kind == kind for a in found.attention)
    }
    if passage.watched:
        watch(found, passage)
    if any(a.kind == "cross" for a in found.attention):
        align(found)
    if found.predicts == "label":
        found.saliency = saliency(passage, found)
    if found.predicts == "span":
        found.said = task(*text.split("\t", 1)) if "\t" in text else task.run([text])[0]
    return found


def vectors(passage: Passage, tape: Tape) -> dict[str, dict[str, Array]]:
    """What each side's tokens begin as."""
    model = passage.task.model
    found = {}
    calls = tape.calls("embedding")
    for i, (name, one) in enumerate(passage.sides.items()):
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
                parts["positions"] = tape["positions"].view(1, -1, model.config.d_model)
        if "types" in tape:
            parts["types"] = tape["types"]
        if len(parts) > 1:
            parts["sum"] = torch.stack([part.expand_as(words) for part in parts.values()]).sum(0)
        found[name] = {kind: array(part[0]) for kind, part in parts.items()}
    return found


def attention_maps(passage: Passage, tape: Tape) -> list[AttentionMap]:
    """All attentions, in the order in which they came."""
    maps = []
    for name in (name.removesuffix(".weights") for name in tape if name.endswith(".weights")):
        stack, _, kind = name.partition(".")
        layer, _, kind = kind.partition(".") if kind else ("0", "", name)
        cross = kind == "cross_attention"
        own = next(iter(passage.sides)) if stack == "encoder" else passage.predicted.name
        weights = torch.cat([call[0] for call in tape.calls(f"{name}.weights")], dim=-2)
        n_keys = len(passage.sides["source" if cross else own].ids)
        maps.append(
            AttentionMap(
                name=name,
                kind="cross" if cross else stack,
                layer=int(layer) if layer.isdecimal() else 0,
                queries=passage.predicted.name if cross else own,
                keys="source" if cross else own,
                weights=array(weights[..., :n_keys]),
                norms={
                    what: array(
                        torch.cat([call[0] for call in tape.calls(f"{name}.{what}")], dim=-2).norm(dim=-1)
                        if what == "queries"
                        else tape[f"{name}.{what}"][0].norm(dim=-1)
                    )
                    for what in ("queries", "keys", "values")
                },
            )
        )
    return maps


def stream(passage: Passage, tape: Tape) -> dict[str, dict[str, Array]]:
    """Lengths of the residual stream after every sub-layer."""
    found: dict[str, dict[str, Array]] = {}
    for name, x in tape.items():
        stack, _, rest = name.partition(".")
        if stack in ("encoder", "decoder") and "around" in rest and rest.count(".") == 1:
            own = next(iter(passage.sides)) if stack == "encoder" else passage.predicted.name
            found.setdefault(own, {})[name] = array(x[0].norm(dim=-1))
    return found


def layers(tape: Tape, says: bool) -> list[tuple[str, Tensor]]:
    """The output of each layer but the last of the stack that predicts."""
    stacks = ("decoder",) if says else ("encoder", "decoder")
    found = [(name, x) for name, x in tape.items() if name.partition(".")[0] in stacks and name.count(".") == 1]
    return [(name, x) for name, x in found if name.partition(".")[2].isdecimal() and x.dim() == 3][:-1]


def predict(passage: Passage, x: Tensor, top: int, *, is_last: bool) -> tuple[str, list[Prediction]]:
    """What the model's head makes of a layer's output.

    Args:
        is_last: the output of the whole model, not of a layer before its final norm.
    """
    task, model, t = passage.task, passage.task.model, passage.task.tokenizer
    ids = passage.inputs[0]
    names: Any = t.token
    match family_of(model):
        case "bert":
            x = x if is_last else model.encoder_norm(x)
            match model.config.head:
                case "words":
                    predicts, logits = "words", model.word_logits(x)[0]
                case "none":
                    return "nothing", []
                case "sequence" if model.config.n_labels == 1:
                    number = float(model.label_logits(x, ids)[0, 0])
                    low, high = getattr(task, "range", (-0.5, 0.5))
                    return "number", [Prediction(0, [Guess(f"{low + (high - low) * (number + 0.5):.4f}", 1.0)])]
                case "sequence":
                    predicts, logits, names = "label", model.label_logits(x, ids), task.labels.__getitem__
                case "tokens":
                    predicts, logits, names = "tags", model.label_logits(x, ids)[0], task.labels.__getitem__
                case "span" if not is_last:
                    return "span", []
                case _:
                    probs = model.label_logits(x, ids)[0].float().softmax(0)
                    return "span", [
                        Prediction(i, [Guess("start", start), Guess("end", end)])
                        for i, (start, end) in enumerate(probs.tolist())
                    ]
        case "t5":
            predicts, logits = "next", model.logits(x if is_last else model.scaled(model.decoder_norm(x)))[0]
        case "rnn":
            predicts, logits = "next", model.logits(x)[0]
        case _:
            predicts, logits = "next", model.logits(x if is_last else model.decoder_norm(x))[0]
    log_probs = logits.float().log_softmax(-1)
    best = log_probs.topk(min(top, log_probs.size(-1)))
    rows = []
    for place, (values, choice) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
        if predicts == "tags" and not begins_word(passage.predicted, place):
            continue
        guesses = [Guess(names(i), math.exp(p)) for i, p in zip(choice, values, strict=True)]
        if place < len(passage.expected):
            told = passage.expected[place]
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


def watch(found: Inspection, passage: Passage) -> None:
    """The search that found the target."""
    t, watched = passage.task.tokenizer, passage.watched
    assert watched is not None
    banned = (t.pad_id, t.bos_id) if "source" in passage.sides else passage.task.banned_ids
    found.nodes = tree(watched, eos_id=t.eos_id, banned_ids=banned)
    found.node_texts = [t.token(node.token_id) for node in found.nodes]
    found.ended_texts = [
        None if node.score is None else t.decode([found.nodes[j].token_id for j in path(found.nodes, i)])
        for i, node in enumerate(found.nodes)
    ]
    found.won = winner(found.nodes, watched.found[0])


def align(found: Inspection) -> None:
    """The mean of all heads of cross-attention, and how many agree with it."""
    heads = np.concatenate([a.weights for a in found.attention if a.kind == "cross"])
    found.alignment = heads.mean(0)
    found.agreement = (heads.argmax(-1) == found.alignment.argmax(-1)).mean(0).astype(np.float32)


def saliency(passage: Passage, found: Inspection) -> dict[str, Array]:
    """Which tokens the most probable class rests on."""
    model = passage.task.model
    with torch.enable_grad(), record(model) as tape:
        logits = model.label_logits(passage.forward(), passage.inputs[0])
        words = tape["embedding"]
        (gradient,) = torch.autograd.grad(logits.log_softmax(-1)[0].max(), words)
    flow = found.rollout["encoder"]
    return {
        "gradient x input": array((gradient * words).sum(-1)[0]),
        "roll-out": flow[0] if model.config.pooling == "first" else flow.mean(0),
    }
