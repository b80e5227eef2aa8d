"""Beam search. Beam size 1 is greedy search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.generate.processors import LogitsProcessor, apply, log_softmax, only_banned_ids
from glassformer.models.decoding import Decodable, DecodesBest


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
    banned = only_banned_ids(processors) if isinstance(model, DecodesBest) else None
    state, last = model.start(src)
    finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    alive = np.arange(n_sentences)  # sentence index of each block of hypotheses
    limits, has_finished = np.array(max_new_tokens), np.zeros(n_sentences, bool)
    # One hypothesis of each sentence in the first step, then `beam`.
    sums = np.zeros((n_sentences, 1), np.float32)
    ids, log_probs = np.empty((n_sentences, 0), np.int64), np.empty((n_sentences, 0), np.float32)

    for length in range(1, max(max_new_tokens) + 1):
        if banned is not None:
            best = model.best(last, state, min(2 * beam, model.vocab_size), banned)  # type: ignore[attr-defined]
        else:
            scores = apply(processors, model.step(last, state).float(), torch.from_numpy(ids).to(device))
            best = blockwise_topk(scores, min(2 * beam, scores.size(-1)))
        values, tokens = (x.cpu().numpy() for x in best)
        totals, log_prob, token, parent = best_extensions(sums, values, tokens, 2 * beam, eos_id)

        # The sentences of which nothing ends are continued with the best `beam` extensions.
        is_continued = np.ones(len(alive), bool)
        columns = np.tile(np.arange(beam), (len(alive), 1))
        needs_care = (token == eos_id).any(1) | (limits[alive] == length) | has_finished[alive]
        for block in np.flatnonzero(needs_care | (report is not None)).tolist():
            sentence = int(alive[block])
            row_totals, row_tokens = totals[block].tolist(), token[block].tolist()
            hypotheses = finished[sentence]
            finished_columns = [i for i in range(beam) if row_tokens[i] == eos_id]
            unfinished_columns = [i for i in range(2 * beam) if row_tokens[i] != eos_id][:beam]
            truncated = unfinished_columns if length == max_new_tokens[sentence] else []
            for i in finished_columns + truncated:
                if row_totals[i] > -math.inf and len(hypotheses) < 2 * beam:
                    hypotheses.append(
                        Hypothesis(
                            [*ids[parent[block, i]].tolist(), row_tokens[i]],
                            [*log_probs[parent[block, i]].tolist(), float(log_prob[block, i])],
                            row_totals[i] / length_penalty(length, alpha),
                        )
                    )
            is_continued[block] = False
            has_finished[sentence] = bool(hypotheses)
            if not truncated and len(hypotheses) < beam:
                # Upper bound: further tokens only decrease the sum, and the penalty is largest at the maximum length.
                reachable = row_totals[unfinished_columns[0]] / length_penalty(max_new_tokens[sentence], alpha)
                ranked = sorted((h.score for h in hypotheses), reverse=True)
                is_continued[block] = len(ranked) < nbest or reachable > ranked[nbest - 1]
                columns[block] = unfinished_columns
            if report is not None:
                outcome: Literal["truncated", "stopped"] = "truncated" if truncated else "stopped"
                report(
                    SearchStep(
                        sentence,
                        length,
                        (parent[block] - block * sums.shape[1]).tolist(),
                        row_tokens,
                        log_prob[block].tolist(),
                        row_totals,
                        ended=finished_columns,
                        unfinished=unfinished_columns,
                        outcome="continued" if is_continued[block] else outcome,
                    )
                )
        keep = np.flatnonzero(is_continued)
        if not len(keep):
            break
        selected = keep[:, None], columns[keep]
        parents, sums = parent[selected].ravel(), totals[selected]
        ids = np.concatenate([ids[parents], token[selected].reshape(-1, 1)], axis=1)
        log_probs = np.concatenate([log_probs[parents], log_prob[selected].reshape(-1, 1)], axis=1)
        last = torch.from_numpy(ids[:, -1].copy()).to(device)
        kept = torch.from_numpy(keep).to(device) if len(keep) < len(alive) else None
        state.select(torch.from_numpy(parents).to(device), kept)
        alive = alive[keep]
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in finished]


def best_extensions(
    sums: NDArray[np.float32], log_probs: NDArray[np.float32], tokens: NDArray[np.int64], n: int, eos_id: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """The n best extensions of each sentence's hypotheses, best first.

    Args:
        sums: sum of the log-probabilities of each hypothesis: [sentences, hypotheses].
        log_probs: those of the best next tokens of each hypothesis: [sentences x hypotheses, k].
        tokens: ids of the tokens.

    Returns:
        For each extension the sum, the log-probability of the token, the token, and the row of the hypothesis. If there
        are fewer than n, the others have the sum -inf and do not end.
    """
    n_sentences, k = len(sums), log_probs.shape[1]
    totals = (sums.reshape(-1, 1) + log_probs).reshape(n_sentences, -1)
    log_probs, tokens = log_probs.reshape(n_sentences, -1), tokens.reshape(n_sentences, -1)
    if (missing := n - totals.shape[1]) > 0:
        fill = ((0, 0), (0, missing))
        totals, log_probs = (np.pad(x, fill, constant_values=-np.inf) for x in (totals, log_probs))
        tokens = np.pad(tokens, fill, constant_values=0 if eos_id else 1)
    index = np.argsort(-totals, axis=1, kind="stable")[:, :n]
    rows = np.arange(n_sentences)[:, None]
    parents = np.minimum(index // k, sums.shape[1] - 1) + sums.shape[1] * rows
    return totals[rows, index], log_probs[rows, index], tokens[rows, index], parents
