"""Attention worked out step by step: the small example of reference.md, or any head of a trained model."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.inspection.inputs import read
from glassformer.inspection.record import record
from glassformer.models.families import family_of
from glassformer.nn.attention import Attention
from glassformer.nn.positions import sinusoids

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shown:
    """A matrix with its name."""

    name: str
    values: Matrix
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One of the ten steps."""

    title: str
    text: str
    matrices: tuple[Shown, ...] = ()


@dataclass(frozen=True, slots=True)
class Positions:
    """Sinusoids by the paper's formula beside those of a loop that doubles the exponent."""

    paper: Matrix
    """[positions, d_model]"""
    doubled: Matrix
    first: int
    second: int
    cosines: tuple[float, float]
    """Of the two positions, by the paper's formula and by the other."""


@dataclass(frozen=True, slots=True)
class Similarities:
    """Cosines of two words: of their vectors, of their positions, of the sums."""

    words: tuple[str, str]
    positions: tuple[int, int]
    word: float
    position: float
    sum: float


@dataclass(frozen=True, slots=True)
class Saturation:
    """What a softmax of unscaled products comes to as heads grow wider."""

    d_k: int
    deviation: float
    """Standard deviation of the product of two vectors of unit variance; scaled it is 1."""
    largest: tuple[float, float, float]
    """Mean largest weight of softmax over the keys: unscaled, scaled by 1/sqrt(d_k), of additive scores."""
    gradient: tuple[float, float]
    """Mean size of the softmax's derivative, unscaled and scaled: what is left to learn from."""


@dataclass(slots=True)
class Worked:
    """A worked example."""

    title: str
    steps: list[Step]
    notes: list[str] = field(default_factory=list)
    positions: Positions | None = None
    similarities: Similarities | None = None
    saturation: list[Saturation] = field(default_factory=list)


X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=np.float64)
W_QUERY = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=np.float64)
W_KEY = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=np.float64)
W_VALUE = np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=np.float64)
N_HEADS, D_HEAD = 8, 64


def softmax(x: Matrix) -> Matrix:
    """Each row's exponentials as shares of their sum."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def steps(
    x: Matrix,
    weights: tuple[Matrix, Matrix, Matrix],
    qkv: tuple[Matrix, Matrix, Matrix],
    scores: Matrix,
    attention: Matrix,
    others: tuple[Matrix, Matrix],
    tokens: tuple[str, ...],
    *,
    how: str,
    keys: tuple[str, ...] = (),
    memory: Matrix | None = None,
    query: int = 0,
) -> list[Step]:
    """The ten steps of reference.md, section 2.

    Args:
        weights: of queries, keys, values.
        attention: rows of softmax.
        others: all heads side by side, and what the output projection makes of them.
        tokens: names of the rows of x.
        how: the scores come about.
        keys: names of what is looked at, where it is not x.
        memory: what keys and values are made of, where it is not x.
        query: the row that steps 6 and 7 follow.
    """
    q, k, v = qkv
    keys = keys or tokens
    weighted = attention[query][:, None] * v
    heads, out = others
    name = tokens[query]
    return [
        Step(
            "Input",
            f"{len(x)} vectors of width {x.shape[1]}"
            + ("." if memory is None else f", which look at {len(memory)} others."),
            (Shown("x", x, tokens), *((Shown("memory", memory, keys),) if memory is not None else ())),
        ),
        Step(
            "Weight matrices",
            "One each for queries, keys and values; learned.",
            (Shown("W_query", weights[0]), Shown("W_key", weights[1]), Shown("W_value", weights[2])),
        ),
        Step(
            "Queries, keys and values",
            "Queries are x times their matrix; keys and values what is looked at times theirs.",
            (Shown("Q", q, tokens), Shown("K", k, keys), Shown("V", v, keys)),
        ),
        Step("Scaled scores", how, (Shown("scores", scores, tokens, keys),)),
        Step(
            "Softmax",
            "Each row's exponentials as shares of their sum: how much each token takes of each.",
            (Shown("weights", attention, tokens, keys),),
        ),
        Step(
            "Weighted values",
            f"The values, each times its weight in the row of {name}.",
            (Shown("weighted", weighted, keys),),
        ),
        Step("Their sum", f"The output for {name}.", (Shown("output", weighted.sum(0)[None], (name,)),)),
        Step("The same for every input", "The weights times V.", (Shown("outputs", attention @ v, tokens),)),
        Step("All heads", f"Side by side: {heads.shape[0]} x {heads.shape[1]}.", (Shown("heads", heads, tokens),)),
        Step("Output projection", "Side by side times W^O: as wide as the input again.", (Shown("z", out, tokens),)),
    ]


def worked_example() -> Worked:
    """The example of reference.md, with its numbers; heads and W^O of the last two steps are drawn from a seed."""
    q, k, v = X @ W_QUERY, X @ W_KEY, X @ W_VALUE
    attention = softmax(q @ k.T)
    draw = np.random.default_rng(1)
    heads = draw.standard_normal((3, N_HEADS * D_HEAD))
    w_o = draw.standard_normal((N_HEADS * D_HEAD, N_HEADS * D_HEAD)) / (N_HEADS * D_HEAD) ** 0.5
    return Worked(
        "The worked example",
        steps(
            X, (W_QUERY, W_KEY, W_VALUE), (q, k, v), q @ k.T, attention, (heads, heads @ w_o),
            ("input 1", "input 2", "input 3"),
            how="Q K^T divided by sqrt(3), which the example rounds down to 1; the paper divides by sqrt(d_k).",
        ),
        positions=positions(2, 10),
        saturation=saturation(),
    )  # fmt: skip


def positions(first: int, second: int, d_model: int = 512, n: int = 64) -> Positions:
    """Two positions by both formulas. Source: Vaswani et al. 2017, section 3.5."""
    n = max(n, first + 1, second + 1)
    paper = sinusoids(n, d_model).double().numpy()
    doubled = np.zeros((n, d_model))
    angles = np.arange(n)[:, None] / 10000 ** (2 * np.arange(0, d_model, 2) / d_model)
    doubled[:, 0::2], doubled[:, 1::2] = np.sin(angles), np.cos(angles)
    return Positions(
        paper, doubled, first, second, (cosine(paper[first], paper[second]), cosine(doubled[first], doubled[second]))
    )


def cosine(a: Matrix, b: Matrix) -> float:
    """Of the angle between two vectors."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def saturation(widths: tuple[int, ...] = (4, 16, 64, 256, 1024), n_keys: int = 16, n: int = 256) -> list[Saturation]:
    """What scaling is for, on vectors of unit variance drawn from a seed.

    Source: Vaswani et al. 2017, section 3.2.1.
    """
    found = []
    for d_k in widths:
        draw = np.random.default_rng(d_k)
        q, k = draw.standard_normal((n, 1, d_k)), draw.standard_normal((n, n_keys, d_k))
        products = (q * k).sum(-1)
        additive = np.tanh(q + k) @ (draw.standard_normal(d_k) / d_k**0.5)
        weights = [softmax(products), softmax(products / d_k**0.5), softmax(additive)]
        largest = [float(w.max(-1).mean()) for w in weights]
        gradients = [float((w * (1 - w)).mean()) for w in weights[:2]]
        found.append(
            Saturation(d_k, float(products.std()), (largest[0], largest[1], largest[2]), (gradients[0], gradients[1]))
        )
    return found


def worked_model(
    task: Any,
    text: str,
    *,
    target: str | None = None,
    layer: str = "",
    head: int = 1,
    words: tuple[str, str] | None = None,
) -> Worked:
    """The same steps with the matrices of one head of a model.

    Args:
        layer: name of the attention, such as encoder.0.self_attention; default: the first.
        head: counted from 1.
        words: two tokens of the text to compare; default: the first and the last that are no special tokens.

    Raises:
        ConfigError: a layer, a head or a word that is not there, with those there are.
    """
    model = task.model
    known = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    if not known:
        raise ConfigError(f"{task.name} by this model has no attention to work out.")
    name = layer or next(iter(known))
    if name not in known:
        raise ConfigError(f"no attention {name!r}; there are: {', '.join(known)}.")
    module = known[name]
    if not 1 <= head <= module.n_heads:
        raise ConfigError(f"head {head}: {name} has heads 1 to {module.n_heads}.")
    model_inputs = read(task, text, target)
    inputs: list[Tensor] = []
    memories: list[Tensor] = []
    hooks = [
        proj.register_forward_pre_hook(lambda _, given, found=found: found.append(given[0][0]))
        for proj, found in ((module.q_proj, inputs), (module.k_proj, memories))
    ]
    with torch.inference_mode(), record(model) as cache:
        model_inputs.forward()
        # A recurrent decoder looks once a step: its rows are one after the other.
        q, attention, heads = (
            torch.cat([call[0] for call in cache.calls(f"{name}.{kind}")], dim=-2)
            for kind in ("queries", "weights", "heads")
        )
        k, v = cache[f"{name}.keys"][0], cache[f"{name}.values"][0]
        scores = module.scores(q[None], k[None])[0]
        every = heads.transpose(0, 1).flatten(1)
        out = module.out_proj(every)
    for hook in hooks:
        hook.remove()
    h, width = head - 1, q.size(-1)
    rows = slice(h * width, (h + 1) * width)
    side = next(iter(model_inputs.sides.values())) if name.startswith("encoder") else model_inputs.predicted
    seen = model_inputs.sides["source"] if "cross" in name else side
    wq, wk, wv = (proj.weight[rows].T for proj in (module.q_proj, module.k_proj, module.v_proj))
    found = Worked(
        f"{name}, head {head}",
        steps(
            matrix(torch.cat(inputs)),
            (matrix(wq), matrix(wk), matrix(wv)),
            (matrix(q[h]), matrix(k[h]), matrix(v[h])),
            matrix(scores[h]),
            matrix(attention[h]),
            (matrix(every), matrix(out)),
            tuple(side.tokens),
            how=(f"Q K^T times {module.scale:.6g}. " if module.additive is None else "w^T tanh(q + k + b). ")
            + "Q, K and V have their biases in them; masks, and T5's biases, enter before softmax.",
            keys=tuple(seen.tokens),
            memory=matrix(memories[-1]) if seen is not side else None,
            query=min(1, len(side.tokens) - 1),
        ),
        notes=model_inputs.notes,
    )
    found.similarities = similarities(task, next(iter(model_inputs.sides.values())), words)
    return found


def matrix(x: Tensor) -> Matrix:
    """A tensor's numbers."""
    return x.detach().double().cpu().numpy()


def similarities(task: Any, side: Any, words: tuple[str, str] | None) -> Similarities | None:
    """Three cosines of two tokens of a text, where the model has positions of its own.

    Raises:
        ConfigError: a word that is no token of the text, with those there are.
    """
    model = task.model
    tokens = [token.strip() for token in side.tokens]
    t = task.tokenizer
    positions = [i for i, token in enumerate(side.ids) if token not in (t.pad_id, t.bos_id, t.eos_id)]
    if words:
        missing = [word for word in words if word not in tokens]
        if missing:
            raise ConfigError(f"{missing[0]!r} is no token of the text; there are: {', '.join(tokens)}.")
        a = tokens.index(words[0])
        b = tokens.index(words[1], a + 1 if words[0] == words[1] and tokens.count(words[0]) > 1 else 0)
    elif len(positions) > 1:
        a, b = positions[0], positions[-1]
    else:
        return None
    scale = model.config.d_model**0.5 if getattr(model.config, "scale_embedding", False) else 1.0
    vectors = model.embedding.weight[side.ids].detach().double().cpu().numpy() * scale
    table = getattr(model, "positions", None)
    if table is None:
        if words:
            raise ConfigError(
                f"--words compares words and positions: a {family_of(model)} has no vectors of positions."
            )
        return None
    rows = table.weight if isinstance(table, torch.nn.Embedding) else table
    first = getattr(model.config, "position_offset", 0)
    place = rows[first : first + len(side.ids)].detach().double().cpu().numpy()
    both = vectors + place
    return Similarities(
        (tokens[a], tokens[b]),
        (a, b),
        cosine(vectors[a], vectors[b]),
        cosine(place[a], place[b]),
        cosine(both[a], both[b]),
    )
