"""Search trees: every hypothesis that a search expanded, its status, and the path to the best hypothesis."""

from collections.abc import Sequence
from dataclasses import dataclass

from glassformer.generate.policy import length_penalty
from glassformer.generate.search import Hypothesis, SearchStep


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """A beam search of one sequence."""

    hypotheses: list[Hypothesis]
    """Best first."""
    steps: list[SearchStep]
    alpha: float
    """Exponent of the length penalty."""


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


UNFINISHED_STATUS = {"continued": "kept", "truncated": "cut", "stopped": "left"}


def search_tree(search: RecordedSearch) -> list[Node]:
    """The search tree: at each step the 2 x beam most probable extensions."""
    nodes: list[Node] = []
    hypotheses = [-1]  # last node of each hypothesis
    for step in search.steps:
        statuses = dict.fromkeys(step.ended, "ended")
        statuses |= dict.fromkeys(step.unfinished, UNFINISHED_STATUS[step.outcome])
        node_of_extension: dict[int, int] = {}
        for i, total in enumerate(step.totals):
            if total == float("-inf"):
                continue
            status = statuses.get(i, "pruned")
            score = total / length_penalty(step.length, search.alpha) if status in ("ended", "cut") else None
            node_of_extension[i] = len(nodes)
            nodes.append(
                Node(
                    hypotheses[step.parents[i]],
                    step.length - 1,
                    step.token_ids[i],
                    step.log_probs[i],
                    total,
                    status,
                    score,
                )
            )
        hypotheses = [node_of_extension.get(i, -1) for i in step.unfinished]
    return nodes


def path(nodes: Sequence[Node], node: int) -> list[int]:
    """Indices of the nodes from the start to a node, in order."""
    indices = []
    while node >= 0:
        indices.append(node)
        node = nodes[node].parent
    return indices[::-1]


def best_path(nodes: Sequence[Node], best: Hypothesis) -> list[int]:
    """Indices of the nodes of the best hypothesis returned by the search."""
    for i, node in enumerate(nodes):
        if node.score is not None and [nodes[j].token_id for j in path(nodes, i)] == best.ids:
            return path(nodes, i)
    return []
