"""Beam search. Beam size 1 is greedy search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.generate.processors import LogitsProcessor, apply, log_softmax
from glassformer.models.decoding import Decodable


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished hypothesis: it ends with the end-of-sentence token or was truncated at the maximum length."""

    ids: list[int]
    """Token ids, including the end-of-sentence token if it was generated."""
    log_probs: list[float]
    """Natural log-probability of each token."""
    score: float
    """Sum of log_probs, divided by the length penalty."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The 2 x beam best extensions of the hypotheses of one sentence at one step of beam search, best first."""

    sentence: int
    """Row of the sentence in `src`."""
    length: int
    """Number of tokens of the extended hypotheses."""
    parents: list[int]
    """Index of the extended hypothesis, in the order of `unfinished` of the previous step."""
    token_ids: list[int]
    log_probs: list[float]
    totals: list[float]
    """Sum of the log-probabilities of the extended hypothesis; -inf: excluded."""
    ended: list[int]
    """Indices of the extensions that end with the end-of-sentence token and are finished hypotheses."""
    unfinished: list[int]
    """Indices of the best `beam` extensions that do not end."""
    outcome: Literal["continued", "truncated", "stopped"]
    """What happens to `unfinished`: they are continued; finished, at the maximum length; or dropped, because none can
    exceed the score of the finished hypotheses."""


def length_penalty(n_tokens: int, alpha: float) -> float:
    """Length penalty ((5 + n) / 6)^alpha. Source: Wu et al. 2016, equation 14."""
    return float(((5 + n_tokens) / 6) ** alpha)


TOPK_BLOCK = 128
"""Number of vocabulary entries per block in `blockwise_topk`."""


def blockwise_topk(x: Float[Tensor, "rows vocab"], k: int) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """Faster `topk`: search only the k blocks with the largest maxima, which contain all top k values."""
    n_blocks = x.size(1) // TOPK_BLOCK
    if n_blocks <= 2 * k:
        values, ids = x.topk(k)
        return values, ids
    blocks, rest = x[:, : n_blocks * TOPK_BLOCK].view(len(x), n_blocks, TOPK_BLOCK), x[:, n_blocks * TOPK_BLOCK :]
    best = blocks.amax(-1).topk(k).indices[..., None]
    values = torch.cat([blocks.gather(1, best.expand(-1, -1, TOPK_BLOCK)).flatten(1), rest], dim=1)
    ids = torch.arange(x.size(1), device=x.device)
    indices = (best * TOPK_BLOCK + ids[:TOPK_BLOCK]).flatten(1)
    indices = torch.cat([indices, ids[n_blocks * TOPK_BLOCK :].expand(len(x), -1)], dim=1)
    values, index = values.topk(k)
    return values, indices.gather(1, index)


@torch.inference_mode()
def beam_search(
    model: Decodable,
    src: Int[Tensor, "sentences src"],
    max_new_tokens: Sequence[int],
    *,
    eos_id: int,
    processors: Sequence[LogitsProcessor] = (log_softmax,),
    beam: int = 4,
    alpha: float = 0.6,
    nbest: int = 1,
    report: Callable[[SearchStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """Beam search: the best hypotheses of each source, best first.

    At each step, the 2 x beam most probable extensions of a sentence's hypotheses are considered. Those among the first
    `beam` that end with the end-of-sentence token are finished; the best `beam` of the others are continued. A sentence
    is done when `beam` hypotheses are finished, when no unfinished one can exceed the score of the best `nbest`, or at
    its maximum length, where unfinished ones are truncated. It is then removed from the batch.

    Args:
        model: the model.
        src: padded sources.
        max_new_tokens: maximum number of generated tokens of each sentence, including the end-of-sentence token.
        eos_id: id of the end-of-sentence token.
        processors: convert the logits to log-probabilities and apply constraints, such as `search_processors` returns.
        beam: beam size.
        alpha: exponent of the length penalty.
        nbest: number of hypotheses to return per sentence, at most `beam`.
        report: called with the extensions of each sentence at each step.
    """
    n_sentences, device = len(src), src.device
    state, last = model.start(src, beam)
    finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    alive = list(range(n_sentences))  # sentence index of each block of `beam` rows
    # All hypotheses of a sentence start identical: the others get probability 0 in the first step.
    sums = torch.full((n_sentences, beam), -torch.inf, device=device)
    sums[:, 0] = 0.0
    ids = torch.empty(n_sentences * beam, 0, dtype=torch.long, device=device)
    log_probs = torch.empty(n_sentences * beam, 0, device=device)

    for length in range(1, max(max_new_tokens) + 1):
        log_prob = apply(processors, model.step(last, state).float(), ids)
        log_prob, token = blockwise_topk(log_prob, min(2 * beam, log_prob.size(-1)))
        totals, index = (sums.view(-1, 1) + log_prob).view(len(alive), -1).topk(2 * beam, dim=-1)
        parent = index // log_prob.size(1) + beam * torch.arange(len(alive), device=device)[:, None]
        token, log_prob = token.view(len(alive), -1).gather(1, index), log_prob.view(len(alive), -1).gather(1, index)

        blocks, columns = [], []  # of the extensions to continue
        rows = zip(alive, totals.tolist(), token.tolist(), strict=True)
        for block, (sentence, row_totals, row_tokens) in enumerate(rows):
            hypotheses = finished[sentence]
            finished_columns = [i for i in range(beam) if row_tokens[i] == eos_id]
            unfinished_columns = [i for i in range(2 * beam) if row_tokens[i] != eos_id][:beam]
            truncated = unfinished_columns if length == max_new_tokens[sentence] else []
            for i in finished_columns + truncated:
                if row_totals[i] > -torch.inf and len(hypotheses) < 2 * beam:
                    hypotheses.append(
                        Hypothesis(
                            [*ids[parent[block, i]].tolist(), row_tokens[i]],
                            [*log_probs[parent[block, i]].tolist(), float(log_prob[block, i])],
                            row_totals[i] / length_penalty(length, alpha),
                        )
                    )
            is_continued = False
            if not truncated and len(hypotheses) < beam:
                # Upper bound: further tokens only decrease the sum, and the penalty is largest at the maximum length.
                reachable = row_totals[unfinished_columns[0]] / length_penalty(max_new_tokens[sentence], alpha)
                ranked = sorted((h.score for h in hypotheses), reverse=True)
                is_continued = len(ranked) < nbest or reachable > ranked[nbest - 1]
            if is_continued:
                blocks.append(block)
                columns.append(unfinished_columns)
            if report is not None:
                report(
                    SearchStep(
                        sentence,
                        length,
                        (parent[block] - block * beam).tolist(),
                        row_tokens,
                        log_prob[block].tolist(),
                        row_totals,
                        ended=finished_columns,
                        unfinished=unfinished_columns,
                        outcome="continued" if is_continued else "truncated" if truncated else "stopped",
                    )
                )
        if not blocks:
            break
        keep, column = torch.tensor(blocks, device=device), torch.tensor(columns, device=device)
        parents = parent[keep].gather(1, column).flatten()
        sums, last = totals[keep].gather(1, column), token[keep].gather(1, column).flatten()
        ids = torch.cat([ids[parents], last[:, None]], dim=1)
        log_probs = torch.cat([log_probs[parents], log_prob[keep].gather(1, column).view(-1, 1)], dim=1)
        state.select(parents, keep if len(keep) < len(alive) else None)
        alive = [alive[block] for block in blocks]
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in finished]
