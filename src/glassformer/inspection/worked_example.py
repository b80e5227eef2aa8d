"""Attention computed step by step: the example of docs/reference.md, or any head of a trained model."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.inspection.attention_steps import Matrix, Step, attention_steps, softmax
from glassformer.inspection.inputs import Side, prepare_inputs
from glassformer.inspection.record import record_activations
from glassformer.nn.attention import Attention
from glassformer.nn.positions import sinusoids
from glassformer.tasks.base import AnyTask


@dataclass(frozen=True, slots=True)
class Positions:
    """Sinusoidal position encodings by the paper's formula, and by a common incorrect implementation."""

    correct: Matrix
    """[positions, d_model]"""
    doubled_exponent: Matrix
    """[positions, d_model], with an exponent of 4i / d_model instead of 2i / d_model."""
    first: int
    second: int
    cosines: tuple[float, float]
    """Cosine similarity of positions `first` and `second`, for `correct` and `doubled_exponent`."""


@dataclass(frozen=True, slots=True)
class Similarities:
    """Cosine similarities of two tokens: of their embeddings, of their position encodings, and of the sums."""

    words: tuple[str, str]
    positions: tuple[int, int]
    word: float
    position: float
    sum: float


@dataclass(frozen=True, slots=True)
class Saturation:
    """Attention statistics for one head dimension, with and without the scale 1/sqrt(d_k)."""

    d_k: int
    deviation: float
    """Standard deviation of the dot product of two vectors with unit variance. With the scale it is 1."""
    largest: tuple[float, float, float]
    """Mean of the largest attention weight: unscaled, scaled by 1/sqrt(d_k), with additive scores."""
    gradient: tuple[float, float]
    """Mean derivative of the softmax, w (1 - w), unscaled and scaled."""


@dataclass(slots=True)
class WorkedExample:
    """A worked example."""

    title: str
    steps: list[Step]
    module: str = ""
    """Module path of the attention. Empty: no module of a model."""
    notes: list[str] = field(default_factory=list)
    positions: Positions | None = None
    similarities: Similarities | None = None
    saturation: list[Saturation] = field(default_factory=list)


X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=np.float64)
W_QUERY = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=np.float64)
W_KEY = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=np.float64)
W_VALUE = np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=np.float64)
N_HEADS, D_HEAD = 8, 64


def worked_example() -> WorkedExample:
    """The example of docs/reference.md. Heads and W^O of the last two steps are random numbers from a fixed seed."""
    q, k, v = X @ W_QUERY, X @ W_KEY, X @ W_VALUE
    attention = softmax(q @ k.T)
    rng = np.random.default_rng(1)
    heads = rng.standard_normal((3, N_HEADS * D_HEAD))
    w_o = rng.standard_normal((N_HEADS * D_HEAD, N_HEADS * D_HEAD)) / (N_HEADS * D_HEAD) ** 0.5
    return WorkedExample(
        "The worked example",
        attention_steps(
            X, (W_QUERY, W_KEY, W_VALUE), (q, k, v), q @ k.T, attention, (heads, heads @ w_o),
            ("input 1", "input 2", "input 3"),
            score_text="Q K^T divided by sqrt(3), which the example rounds to 1. The paper divides by sqrt(d_k).",
        ),
        positions=positions(2, 10),
        saturation=saturation(),
    )  # fmt: skip


def positions(first: int, second: int, d_model: int = 512, n: int = 64) -> Positions:
    """Compare two positions under both formulas. Source: Vaswani et al. 2017, section 3.5."""
    n = max(n, first + 1, second + 1)
    correct = sinusoids(n, d_model).double().numpy()
    doubled_exponent = np.zeros((n, d_model))
    angles = np.arange(n)[:, None] / 10000 ** (2 * np.arange(0, d_model, 2) / d_model)
    doubled_exponent[:, 0::2], doubled_exponent[:, 1::2] = np.sin(angles), np.cos(angles)
    cosines = (cosine(correct[first], correct[second]), cosine(doubled_exponent[first], doubled_exponent[second]))
    return Positions(correct, doubled_exponent, first, second, cosines)


def cosine(a: Matrix, b: Matrix) -> float:
    """Cosine similarity of two vectors."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def saturation(widths: tuple[int, ...] = (4, 16, 64, 256, 1024), n_keys: int = 16, n: int = 256) -> list[Saturation]:
    """Effect of the scale 1/sqrt(d_k) on attention weights, for random vectors of unit variance from a fixed seed.

    Source: Vaswani et al. 2017, section 3.2.1.
    """
    rows = []
    for d_k in widths:
        rng = np.random.default_rng(d_k)
        q, k = rng.standard_normal((n, 1, d_k)), rng.standard_normal((n, n_keys, d_k))
        products = (q * k).sum(-1)
        additive = np.tanh(q + k) @ (rng.standard_normal(d_k) / d_k**0.5)
        weights = [softmax(products), softmax(products / d_k**0.5), softmax(additive)]
        largest = [float(w.max(-1).mean()) for w in weights]
        gradients = [float((w * (1 - w)).mean()) for w in weights[:2]]
        rows.append(
            Saturation(d_k, float(products.std()), (largest[0], largest[1], largest[2]), (gradients[0], gradients[1]))
        )
    return rows


def worked_example_of_model(
    task: AnyTask,
    text: str,
    *,
    target: str | None = None,
    layer: str = "",
    head: int = 1,
    words: tuple[str, str] | None = None,
) -> WorkedExample:
    """The ten steps with the matrices of one attention head of a model.

    Args:
        layer: module name of the attention, such as encoder.0.self_attention. Default: the first attention module.
        head: index of the head, counted from 1.
        words: two tokens of the text to compare. Default: the first and the last token that are not special tokens.

    Raises:
        ConfigError: the layer, head or word does not exist; the message lists those that do.
    """
    name, module = attention_head(task, layer, head)
    model_inputs = prepare_inputs(task, text, target)
    inputs: list[Tensor] = []
    memories: list[Tensor] = []
    hooks = [
        proj.register_forward_pre_hook(lambda _, args, captured=captured: captured.append(args[0][0]))
        for proj, captured in ((module.q_proj, inputs), (module.k_proj, memories))
    ]
    with torch.inference_mode(), record_activations(task.model) as cache:
        model_inputs.forward()
        # A recurrent decoder attends once per step: concatenate the rows of its steps.
        q, attention, heads = (
            torch.cat([call[0] for call in cache.calls(f"{name}.{tensor}")], dim=-2)
            for tensor in ("queries", "weights", "heads")
        )
        k, v = cache[f"{name}.keys"][0], cache[f"{name}.values"][0]
        scores = module.attention_scores(q[None], k[None])[0]
        concatenated = heads.transpose(0, 1).flatten(1)
        out = module.out_proj(concatenated)
    for hook in hooks:
        hook.remove()
    h, d_head = head - 1, q.size(-1)
    shared = h * module.n_kv_heads // module.n_heads  # key/value head of the query head
    side = next(iter(model_inputs.sides.values())) if name.startswith("encoder") else model_inputs.predicted
    key_side = model_inputs.sides["source"] if "cross" in name else side
    wq, wk, wv = (
        proj.weight[i * d_head : (i + 1) * d_head].T
        for proj, i in ((module.q_proj, h), (module.k_proj, shared), (module.v_proj, shared))
    )
    is_rotated = "cross" not in name and getattr(task.model, "rotary", lambda _: None)(torch.arange(1)) is not None
    example = WorkedExample(
        f"{name}, head {head}",
        attention_steps(
            matrix(torch.cat(inputs)),
            (matrix(wq), matrix(wk), matrix(wv)),
            (matrix(q[h]), matrix(k[h]), matrix(v[h])),
            matrix(scores[h]),
            matrix(attention[h]),
            (matrix(concatenated), matrix(out)),
            tuple(side.tokens),
            score_text=(f"Q K^T times {module.scale:.6g}. " if module.additive is None else "w^T tanh(q + k + b). ")
            + "Q, K and V include their biases. "
            + ("Q and K are rotated by their positions. " if is_rotated else "")
            + "Mask and relative position bias (T5) are added before the softmax.",
            keys=tuple(key_side.tokens),
            memory=matrix(memories[-1]) if key_side is not side else None,
            query=min(1, len(side.tokens) - 1),
            head=h,
        ),
        module=name,
        notes=model_inputs.notes,
    )
    example.similarities = similarities(task, next(iter(model_inputs.sides.values())), words)
    return example


def attention_head(task: AnyTask, layer: str, head: int) -> tuple[str, Attention]:
    """Name and module of the attention `layer`, by default the first.

    Args:
        head: index of a head, counted from 1.

    Raises:
        ConfigError: the layer or the head does not exist.
    """
    known = {name: module for name, module in task.model.named_modules() if isinstance(module, Attention)}
    if not known:
        raise ConfigError(f"this {task.name} model has no attention.")
    name = layer or next(iter(known))
    if name not in known:
        raise ConfigError(f"no attention module {name!r}; available: {', '.join(known)}.")
    if not 1 <= head <= known[name].n_heads:
        raise ConfigError(f"head {head}: {name} has heads 1 to {known[name].n_heads}.")
    return name, known[name]


def matrix(x: Tensor) -> Matrix:
    """Convert a tensor to a float64 NumPy array."""
    return x.detach().double().cpu().numpy()


def similarities(task: AnyTask, side: Side, words: tuple[str, str] | None) -> Similarities | None:
    """Cosine similarities of two tokens of a text. None if the model has no position embeddings.

    Raises:
        ConfigError: a word is not a token of the text, or the model has no position embeddings.
    """
    model = task.model
    tokens = [token.strip() for token in side.tokens]
    t = task.tokenizer
    positions = [i for i, token in enumerate(side.ids) if token not in (t.pad_id, t.bos_id, t.eos_id)]
    if words:
        missing = [word for word in words if word not in tokens]
        if missing:
            raise ConfigError(f"{missing[0]!r} is not a token of the text; its tokens are: {', '.join(tokens)}.")
        a = tokens.index(words[0])
        b = tokens.index(words[1], a + 1 if words[0] == words[1] and tokens.count(words[0]) > 1 else 0)
    elif len(positions) > 1:
        a, b = positions[0], positions[-1]
    else:
        return None
    vectors = model.embedding.weight[side.ids].detach().double().cpu().numpy() * model.embedding_scale
    table = model.position_vectors(len(side.ids))
    if table is None:
        if words:
            raise ConfigError("--words compares words and positions, but this model has no position embeddings.")
        return None
    position_vectors = table.detach().double().cpu().numpy()
    sums = vectors + position_vectors
    return Similarities(
        (tokens[a], tokens[b]),
        (a, b),
        cosine(vectors[a], vectors[b]),
        cosine(position_vectors[a], position_vectors[b]),
        cosine(sums[a], sums[b]),
    )
