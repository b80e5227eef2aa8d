"""Beam search, and greedy search as a beam of one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.models.base import Decodable


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One way to go on, ended by the end-of-sentence token or cut at the longest length allowed."""

    ids: list[int]
    """Tokens, the end of sentence included if it was reached."""
    log_probs: list[float]
    """Natural log-probability of each token."""
    score: float
    """Sum of log_probs divided by the length penalty."""


def length_penalty(n_tokens: int, alpha: float) -> float:
    """((5 + n) / 6)^alpha. Source: Wu et al. 2016, equation 14."""
    return float(((5 + n_tokens) / 6) ** alpha)


def banned_ngram_tokens(ids: Sequence[int], n: int) -> list[int]:
    """Tokens that would make n tokens in a row occur again."""
    last = list(ids[len(ids) - n + 1 :])
    return [ids[i + n - 1] for i in range(len(ids) - n + 1) if list(ids[i : i + n - 1]) == last]


TOPK_BLOCK = 128


def blockwise_topk(x: Float[Tensor, "rows vocab"], k: int) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """`topk`, first among the largest of blocks and then within the best `k` blocks: no other holds one of them."""
    n_blocks = x.size(1) // TOPK_BLOCK
    if n_blocks <= 2 * k:
        values, ids = x.topk(k)
        return values, ids
    blocks, rest = x[:, : n_blocks * TOPK_BLOCK].view(len(x), n_blocks, TOPK_BLOCK), x[:, n_blocks * TOPK_BLOCK :]
    best = blocks.amax(-1).topk(k).indices[..., None]
    values = torch.cat([blocks.gather(1, best.expand(-1, -1, TOPK_BLOCK)).flatten(1), rest], dim=1)
    ids = torch.arange(x.size(1), device=x.device)
    places = (best * TOPK_BLOCK + ids[:TOPK_BLOCK]).flatten(1)
    places = torch.cat([places, ids[n_blocks * TOPK_BLOCK :].expand(len(x), -1)], dim=1)
    values, index = values.topk(k)
    return values, places.gather(1, index)


@torch.inference_mode()
def search(
    model: Decodable,
    src: Int[Tensor, "sentences src"],
    max_lengths: Sequence[int],
    *,
    eos_id: int,
    banned_ids: Sequence[int] = (),
    beam: int = 4,
    alpha: float = 0.6,
    nbest: int = 1,
    no_repeat_ngram_size: int | None = None,
) -> list[list[Hypothesis]]:
    """The best continuations of each source, best first.

    At each step the 2 x beam most probable extensions of a sentence's hypotheses are looked at; those among the first
    `beam` that end the sentence are finished, the best `beam` of the others go on. A sentence is done when `beam`
    hypotheses are finished, when none that goes on can overtake the best `nbest`, or at its longest length, where
    what goes on is cut; it then leaves the batch.

    Args:
        max_lengths: of each sentence, the most tokens to give, the end of sentence among them.
        banned_ids: tokens never to be said.
        alpha: exponent of the length penalty.
        nbest: hypotheses to give of each sentence, at most `beam`.
        no_repeat_ngram_size: so many tokens in a row that are never said twice (Paulus et al. 2017).
    """
    n_sentences, device = len(src), src.device
    state, last = model.start(src, beam)
    finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    alive = list(range(n_sentences))  # the sentence of each block of `beam` rows
    # All hypotheses of a sentence start alike: only the first counts until they part.
    sums = torch.full((n_sentences, beam), -torch.inf, device=device)
    sums[:, 0] = 0.0
    ids = torch.empty(n_sentences * beam, 0, dtype=torch.long, device=device)
    log_probs = torch.empty(n_sentences * beam, 0, device=device)

    for length in range(1, max(max_lengths) + 1):
        logits = model.step(last, state).float()
        if banned_ids:
            logits[:, list(banned_ids)] = -torch.inf
        gain = logits.log_softmax(-1)
        if no_repeat_ngram_size:
            for row, said in zip(gain, ids.tolist(), strict=True):
                row[banned_ngram_tokens(said, no_repeat_ngram_size)] = -torch.inf
        gain, token = blockwise_topk(gain, min(2 * beam, logits.size(-1)))
        totals, index = (sums.view(-1, 1) + gain).view(len(alive), -1).topk(2 * beam, dim=-1)
        parent = index // gain.size(1) + beam * torch.arange(len(alive), device=device)[:, None]
        token, gain = token.view(len(alive), -1).gather(1, index), gain.view(len(alive), -1).gather(1, index)

        blocks, columns = [], []  # of the extensions that go on
        rows = zip(alive, totals.tolist(), token.tolist(), strict=True)
        for block, (sentence, row_totals, row_tokens) in enumerate(rows):
            hypotheses = finished[sentence]
            ending = [i for i in range(beam) if row_tokens[i] == eos_id]
            going_on = [i for i in range(2 * beam) if row_tokens[i] != eos_id][:beam]
            cut = going_on if length == max_lengths[sentence] else []
            for i in ending + cut:
                if row_totals[i] > -torch.inf and len(hypotheses) < 2 * beam:
                    hypotheses.append(
                        Hypothesis(
                            [*ids[parent[block, i]].tolist(), row_tokens[i]],
                            [*log_probs[parent[block, i]].tolist(), float(gain[block, i])],
                            row_totals[i] / length_penalty(length, alpha),
                        )
                    )
            if not cut and len(hypotheses) < beam:
                # What is to come only lowers a sum, and the penalty is largest at the longest length.
                reachable = row_totals[going_on[0]] / length_penalty(max_lengths[sentence], alpha)
                ranked = sorted((h.score for h in hypotheses), reverse=True)
                if len(ranked) < nbest or reachable > ranked[nbest - 1]:
                    blocks.append(block)
                    columns.append(going_on)
        if not blocks:
            break
        keep, column = torch.tensor(blocks, device=device), torch.tensor(columns, device=device)
        parents = parent[keep].gather(1, column).flatten()
        sums, last = totals[keep].gather(1, column), token[keep].gather(1, column).flatten()
        ids = torch.cat([ids[parents], last[:, None]], dim=1)
        log_probs = torch.cat([log_probs[parents], gain[keep].gather(1, column).view(-1, 1)], dim=1)
        state.select(parents, keep if len(keep) < len(alive) else None)
        alive = [alive[block] for block in blocks]
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in finished]
