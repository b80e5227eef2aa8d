"""Search trees: every hypothesis that a search expanded, its status, and the path to the best hypothesis."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.generate.search import Hypothesis, banned_ngram_tokens, length_penalty
from glassformer.models.base import Decodable


class RecorderState:
    """Decoder state that records the parent of each hypothesis."""

    def __init__(self, inner: Any, recorder: "SearchRecorder") -> None:
        self.inner, self.recorder = inner, recorder

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Record the parents and reorder the wrapped state."""
        self.recorder.parents.append(rows.tolist())
        self.inner.select(rows, sentences)


class SearchRecorder:
    """Wrapper of a model that records the logits, tokens and parents of the search of one sequence."""

    pad_to_multiple_of: ClassVar[int] = 1  # a single sequence needs no padding

    def __init__(self, model: Decodable, max_new_tokens: int, options: DecodeConfig) -> None:
        self.model, self.options = model, options
        self.max_new_tokens = max_new_tokens
        """Maximum number of generated tokens."""
        self.log_probs: list[Tensor] = []
        """Log-probabilities of each step, [hypotheses, vocab], before banned tokens are removed."""
        self.last_tokens: list[list[int]] = []
        """Last token of each hypothesis, by step."""
        self.parents: list[list[int]] = []
        """Parent of each hypothesis, by step."""
        self.hypotheses: list[Hypothesis] = []
        """Hypotheses returned by the search, best first."""

    def start(self, src: Tensor, n_hypotheses: int = 1) -> tuple[RecorderState, Tensor]:
        """As `Decodable.start`."""
        state, last = self.model.start(src, n_hypotheses)
        return RecorderState(state, self), last

    def step(self, ids: Tensor, state: RecorderState) -> Tensor:
        """As `Decodable.step`, and record the tokens and their log-probabilities."""
        logits = self.model.step(ids, state.inner)
        self.last_tokens.append(ids.tolist())
        self.log_probs.append(logits.float().log_softmax(-1))
        return logits


@dataclass(frozen=True, slots=True)
class Node:
    """One extension of a hypothesis by a token."""

    parent: int
    """Index of the node that is extended; -1: the start."""
    step: int
    token_id: int
    log_prob: float
    total: float
    """Sum of log-probabilities from the start to this node."""
    status: str
    """kept: extended further; ended: complete, with an end token; cut: at the maximum length; left: not extended, the
    search stopped because no hypothesis could exceed the score of the completed ones; pruned: outside the beam."""
    score: float | None = None
    """Hypotheses with status ended or cut: `total` divided by the length penalty. Otherwise None."""


def tree(recorder: SearchRecorder, *, eos_id: int, banned_ids: tuple[int, ...]) -> list[Node]:
    """Reconstruct the search tree: at each step the 2 x beam most probable extensions."""
    beam, no_repeat_ngram_size = recorder.options.beam, recorder.options.no_repeat_ngram_size
    nodes: list[Node] = []
    last_nodes = [-1] * beam  # last node of each hypothesis
    sums = [0.0] + [float("-inf")] * (beam - 1)
    for step, log_probs in enumerate(recorder.log_probs):
        log_probs = log_probs.clone()
        if banned_ids:
            log_probs[:, list(banned_ids)] = -torch.inf
            log_probs = log_probs.log_softmax(-1)
        if no_repeat_ngram_size:
            for row, node in zip(log_probs, last_nodes, strict=True):
                row[
                    banned_ngram_tokens([nodes[i].token_id for i in path(nodes, node)], no_repeat_ngram_size)
                ] = -torch.inf
        totals = torch.tensor(sums)[:, None] + log_probs.cpu()
        best, index = totals.flatten().topk(min(2 * beam, totals.numel()))
        kept = {
            (parent, token): row
            for row, (parent, token) in enumerate(
                zip(recorder.parents[step], recorder.last_tokens[step + 1], strict=True)
                if step + 1 < len(recorder.last_tokens)
                else ()
            )
        }
        new_last_nodes, new_sums = [-1] * beam, [float("-inf")] * beam
        capacity = beam  # hypotheses that can still be extended at this step
        for rank, (total, i) in enumerate(zip(best.tolist(), index.tolist(), strict=True)):
            parent, token = divmod(i, totals.size(1))
            if total == float("-inf"):
                continue
            status, score = "pruned", None
            if token == eos_id and rank < beam:
                status = "ended"
            elif (parent, token) in kept:
                status = "kept"
                new_last_nodes[kept[parent, token]], new_sums[kept[parent, token]] = len(nodes), total
            elif token != eos_id and capacity > 0 and not kept:
                status = "cut" if step + 1 == recorder.max_new_tokens else "left"
            if status in ("ended", "cut"):
                score = total / length_penalty(step + 1, recorder.options.length_penalty)
            capacity -= token != eos_id
            nodes.append(Node(last_nodes[parent], step, token, float(log_probs[parent, token]), total, status, score))
        last_nodes, sums = new_last_nodes, new_sums
    return nodes


def path(nodes: list[Node], node: int) -> list[int]:
    """Indices of the nodes from the start to a node, in order."""
    indices = []
    while node >= 0:
        indices.append(node)
        node = nodes[node].parent
    return indices[::-1]


def best_path(nodes: list[Node], best: Hypothesis) -> list[int]:
    """Indices of the nodes of the best hypothesis returned by the search."""
    for i, node in enumerate(nodes):
        if node.score is not None and [nodes[j].token_id for j in path(nodes, i)] == best.ids:
            return path(nodes, i)
    return []
