"""The ten steps of attention, with the matrices of each step and what their elements are computed from."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


Index = int | Literal["row", "column"] | None
"""An index: fixed, the row or column of the element that is computed, or None for all rows or columns."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The part of a matrix that an element of another matrix is computed from: a row, a column or an element."""

    name: str
    """Name of the matrix."""
    row: Index = None
    column: Index = None
    shift: int = 0
    """Subtracted from the column of the element. There is no operand where the result is not a column."""


@dataclass(frozen=True, slots=True)
class NamedMatrix:
    """A matrix with its name, optional row and column labels, and what its elements are computed from."""

    name: str
    values: Matrix
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One of the ten steps of the computation."""

    title: str
    text: str
    matrices: tuple[NamedMatrix, ...] = ()


def softmax(x: Matrix) -> Matrix:
    """Softmax over the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def attention_steps(
    x: Matrix,
    weights: tuple[Matrix, Matrix, Matrix],
    qkv: tuple[Matrix, Matrix, Matrix],
    scores: Matrix,
    attention: Matrix,
    all_heads: tuple[Matrix, Matrix],
    tokens: tuple[str, ...],
    *,
    score_text: str,
    keys: tuple[str, ...] = (),
    memory: Matrix | None = None,
    query: int = 0,
    head: int | None = None,
) -> list[Step]:
    """Build the ten steps of docs/reference.md, section 2.

    Args:
        weights: projection matrices of queries, keys and values.
        attention: attention weights, one row per query.
        all_heads: concatenated outputs of all heads, and the result of the output projection.
        tokens: labels of the rows of x.
        score_text: explanation of the scores.
        keys: labels of the keys. Default: `tokens`.
        memory: input of the key and value projections. Default: x.
        query: row of x used in steps 6 and 7.
        head: index of the head among all heads, counted from 0. None: it is not one of them.
    """
    v = qkv[2]
    keys = keys or tokens
    weighted = attention[query][:, None] * v
    heads, out = all_heads
    name = tokens[query]
    attended = "x" if memory is None else "memory"
    projections = [
        (Operand(source, row="row"), Operand(weight, column="column"))
        for source, weight in (("x", "W_query"), (attended, "W_key"), (attended, "W_value"))
    ]
    own = Operand("outputs", row="row", column="column", shift=0 if head is None else head * v.shape[1])
    return [
        Step(
            "Input",
            f"{len(x)} vectors of width {x.shape[1]}"
            + ("." if memory is None else f", which attend to {len(memory)} memory vectors."),
            (NamedMatrix("x", x, tokens), *((NamedMatrix("memory", memory, keys),) if memory is not None else ())),
        ),
        Step(
            "Weight matrices",
            "One learned projection matrix each for queries, keys and values.",
            (NamedMatrix("W_query", weights[0]), NamedMatrix("W_key", weights[1]), NamedMatrix("W_value", weights[2])),
        ),
        Step(
            "Queries, keys and values",
            "Q = x W_query, K = x W_key, V = x W_value."
            if memory is None
            else "Q = x W_query, K = memory W_key, V = memory W_value.",
            tuple(
                NamedMatrix(name, values, rows, operands=operands)
                for name, values, rows, operands in zip("QKV", qkv, (tokens, keys, keys), projections, strict=True)
            ),
        ),
        Step(
            "Scaled scores",
            score_text,
            (NamedMatrix("scores", scores, tokens, keys, (Operand("Q", row="row"), Operand("K", row="column"))),),
        ),
        Step(
            "Softmax",
            "Softmax over each row: the attention weights of each query over all keys.",
            (NamedMatrix("weights", attention, tokens, keys, (Operand("scores", row="row"),)),),
        ),
        Step(
            "Weighted values",
            f"Each value multiplied by its attention weight for the query {name}.",
            (
                NamedMatrix(
                    "weighted",
                    weighted,
                    keys,
                    operands=(Operand("weights", row=query, column="row"), Operand("V", row="row", column="column")),
                ),
            ),
        ),
        Step(
            "Sum of the weighted values",
            f"The attention output for {name}.",
            (NamedMatrix("output", weighted.sum(0)[None], (name,), operands=(Operand("weighted", column="column"),)),),
        ),
        Step(
            "Outputs for all queries",
            "The attention weights multiplied by V.",
            (
                NamedMatrix(
                    "outputs",
                    attention @ v,
                    tokens,
                    operands=(Operand("weights", row="row"), Operand("V", column="column")),
                ),
            ),
        ),
        Step(
            "All heads",
            f"Outputs of all heads, concatenated: {heads.shape[0]} x {heads.shape[1]}.",
            (NamedMatrix("heads", heads, tokens, operands=() if head is None else (own,)),),
        ),
        Step(
            "Output projection",
            "The concatenated heads multiplied by W^O.",
            (NamedMatrix("z", out, tokens, operands=(Operand("heads", row="row"),)),),
        ),
    ]
