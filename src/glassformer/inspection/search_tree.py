"""What a search saw: every hypothesis that it looked at, what became of it, and why the winner won."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.generate.search import Hypothesis, banned_ngram_tokens, length_penalty
from glassformer.models.base import Decodable


class RecorderState:
    """A decoder's state that tells who went on from whom."""

    def __init__(self, inner: Any, recorder: "SearchRecorder") -> None:
        self.backend, self.recorder = inner, recorder

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """As the state within."""
        self.recorder.parents.append(rows.tolist())
        self.backend.select(rows, sentences)


class SearchRecorder:
    """A model as search sees it, which remembers one sentence's logits and choices."""

    pad_to_multiple_of: ClassVar[int] = 1  # one sentence needs no padding

    def __init__(self, model: Decodable, limit: int, options: DecodeConfig) -> None:
        self.model, self.options = model, options
        self.limit = limit
        """Tokens that may be said at most."""
        self.log_probs: list[Tensor] = []
        """Of each step [hypotheses, vocab], as the model gave them."""
        self.last: list[list[int]] = []
        """Of each step the token that each hypothesis ended in."""
        self.parents: list[list[int]] = []
        self.found: list[Hypothesis] = []
        """What the search gave back, best first."""

    def start(self, src: Tensor, n_hypotheses: int = 1) -> tuple[RecorderState, Tensor]:
        """As the model's."""
        state, last = self.model.start(src, n_hypotheses)
        return RecorderState(state, self), last

    def step(self, ids: Tensor, state: RecorderState) -> Tensor:
        """As the model's."""
        logits = self.model.step(ids, state.backend)
        self.last.append(ids.tolist())
        self.log_probs.append(logits.float().log_softmax(-1))
        return logits


@dataclass(frozen=True, slots=True)
class Node:
    """One extension that was looked at."""

    parent: int
    """Number of the node it goes on from; -1: the start."""
    step: int
    token_id: int
    log_prob: float
    total: float
    """Sum of log-probabilities up to here."""
    status: str
    """kept: it went on; ended: it ended its sentence; cut: it was as long as allowed; left: search was over, for what
    had ended could not be overtaken; pruned: others were better."""
    score: float | None = None
    """Of what ended: the total by the length penalty."""


def tree(recorder: SearchRecorder, *, eos_id: int, banned_ids: tuple[int, ...]) -> list[Node]:
    """The extensions that search looked at: at each step the 2 x beam most probable."""
    beam, no_repeat_ngram_size = recorder.options.beam, recorder.options.no_repeat_ngram_size
    nodes: list[Node] = []
    front = [-1] * beam  # the node that each hypothesis ends in
    sums = [0.0] + [float("-inf")] * (beam - 1)
    for step, log_probs in enumerate(recorder.log_probs):
        seen = log_probs.clone()
        if banned_ids:
            seen[:, list(banned_ids)] = -torch.inf
            seen = seen.log_softmax(-1)
        if no_repeat_ngram_size:
            for row, node in zip(seen, front, strict=True):
                row[
                    banned_ngram_tokens([nodes[i].token_id for i in path(nodes, node)], no_repeat_ngram_size)
                ] = -torch.inf
        totals = torch.tensor(sums)[:, None] + seen.cpu()
        best, index = totals.flatten().topk(min(2 * beam, totals.numel()))
        kept = {
            (parent, token): row
            for row, (parent, token) in enumerate(
                zip(recorder.parents[step], recorder.last[step + 1], strict=True)
                if step + 1 < len(recorder.last)
                else ()
            )
        }
        new_front, new_sums = [-1] * beam, [float("-inf")] * beam
        may_go_on = beam
        for rank, (total, place) in enumerate(zip(best.tolist(), index.tolist(), strict=True)):
            parent, token = divmod(place, totals.size(1))
            if total == float("-inf"):
                continue
            status, score = "pruned", None
            if token == eos_id and rank < beam:
                status = "ended"
            elif (parent, token) in kept:
                status = "kept"
                new_front[kept[parent, token]], new_sums[kept[parent, token]] = len(nodes), total
            elif token != eos_id and may_go_on > 0 and not kept:
                status = "cut" if step + 1 == recorder.limit else "left"
            if status in ("ended", "cut"):
                score = total / length_penalty(step + 1, recorder.options.length_penalty)
            may_go_on -= token != eos_id
            nodes.append(Node(front[parent], step, token, float(seen[parent, token]), total, status, score))
        front, sums = new_front, new_sums
    return nodes


def path(nodes: list[Node], node: int) -> list[int]:
    """The nodes from the start to one, in order."""
    found = []
    while node >= 0:
        found.append(node)
        node = nodes[node].parent
    return found[::-1]


def best_path(nodes: list[Node], best: Hypothesis) -> list[int]:
    """The nodes of the hypothesis that search gave back."""
    for i, node in enumerate(nodes):
        if node.score is not None and [nodes[j].token_id for j in path(nodes, i)] == best.ids:
            return path(nodes, i)
    return []
