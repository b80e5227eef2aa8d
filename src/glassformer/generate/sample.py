"""Sampling: each next token drawn from what the model thinks of it."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.search import Hypothesis, banned_ngram_tokens
from glassformer.models.base import Decodable


def top_k_top_p_filter(
    logits: Float[Tensor, "rows vocab"], temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> tuple[Float[Tensor, "rows kept"], Int[Tensor, "rows kept"]]:
    """Probabilities of the tokens that may be drawn, most probable first, and their ids.

    Args:
        top_k: the k most probable tokens (Fan et al. 2018).
        top_p: the fewest tokens whose probabilities come to p, at least one (Holtzman et al. 2020).
    """
    probs = (logits.double() / temperature).softmax(-1)
    probs, ids = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        probs, ids = probs[:, :top_k], ids[:, :top_k]
    if top_p is not None:
        before = probs.cumsum(-1) - probs
        probs = probs.masked_fill(before >= top_p * probs.sum(-1, keepdim=True), 0.0)
    return probs / probs.sum(-1, keepdim=True), ids


def uniform_numbers(seed: int, index: int, n: int) -> np.ndarray:
    """n numbers in [0, 1) for one text: a function of the seed and the text's place alone."""
    return np.random.Generator(np.random.Philox(key=[seed, index])).random(n)


def sample_steps(
    model: Decodable,
    src: Int[Tensor, "sentences src"],
    max_lengths: Sequence[int],
    *,
    eos_id: int,
    banned_ids: Sequence[int] = (),
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 1,
    indices: Sequence[int] = (0,),
    no_repeat_ngram_size: int | None = None,
    stopped: Callable[[int, int], bool] = lambda row, token: False,
) -> Iterator[tuple[int, int, float]]:
    """Tokens as they are drawn: row of the source, id, and its natural log-probability before filtering.

    Args:
        indices: of each source its place among all, which with the seed decides its random numbers.
        no_repeat_ngram_size: so many tokens in a row that are never said twice.
        stopped: told each row's token; whether the row is to end there.
    """
    rows = list(range(len(src)))
    said: list[list[int]] = [[] for _ in rows]
    draws = [uniform_numbers(seed, index, n) for index, n in zip(indices, max_lengths, strict=True)]
    with torch.inference_mode():  # never while yielding: whoever asks goes on in a mode of its own
        state, last = model.start(src)
    for length in range(max(max_lengths)):
        with torch.inference_mode():
            logits = model.step(last, state).float()
            if banned_ids:
                logits[:, list(banned_ids)] = -torch.inf
            at = torch.tensor([draws[row][length] for row in rows], dtype=torch.float64, device=logits.device)
            log_probs = logits.log_softmax(-1)
            if no_repeat_ngram_size:
                for i, row in enumerate(rows):
                    logits[i, banned_ngram_tokens(said[row], no_repeat_ngram_size)] = -torch.inf
            drawn = sample_inverse_cdf(*top_k_top_p_filter(logits, temperature, top_k, top_p), at)
            gains = log_probs.gather(1, drawn[:, None])[:, 0]
        keep = []
        for i, (row, token, gain) in enumerate(zip(rows, drawn.tolist(), gains.tolist(), strict=True)):
            said[row].append(token)
            yield row, token, gain
            if token != eos_id and length + 1 < max_lengths[row] and not stopped(row, token):
                keep.append(i)
        if not keep:
            return
        with torch.inference_mode():
            kept = torch.tensor(keep, device=logits.device)
            if len(keep) < len(rows):
                state.select(kept, kept)
            rows, last = [rows[i] for i in keep], drawn[kept]


def sample_inverse_cdf(
    probs: Float[Tensor, "rows kept"], ids: Int[Tensor, "rows kept"], at: Float[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """The token in whose stretch of the summed probabilities each number in [0, 1) falls."""
    place = (probs.cumsum(-1) <= at[:, None]).sum(-1, keepdim=True)
    # Rounding must not lead past the last token that may be drawn.
    last = (probs > 0).sum(-1, keepdim=True) - 1
    if bool((last < 0).any()):
        raise NonFiniteError(NON_FINITE)
    place = place.minimum(last)
    return ids.gather(1, place)[:, 0]


def sample(
    model: Decodable, src: Int[Tensor, "sentences src"], max_lengths: Sequence[int], **options: object
) -> list[list[Hypothesis]]:
    """One drawn continuation of each source; options as in `sample_steps`. Its score is the sum of its log_probs."""
    ids: list[list[int]] = [[] for _ in max_lengths]
    log_probs: list[list[float]] = [[] for _ in max_lengths]
    for row, token, gain in sample_steps(model, src, max_lengths, **options):  # type: ignore[arg-type]
        ids[row].append(token)
        log_probs[row].append(gain)
    return [[Hypothesis(i, p, sum(p))] for i, p in zip(ids, log_probs, strict=True)]
