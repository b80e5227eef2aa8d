"""Sampling with temperature, top-k and top-p."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.processors import LogitsProcessor, apply, log_softmax
from glassformer.generate.search import Hypothesis
from glassformer.models.decoding import Decodable


def uniform_numbers(seed: int, index: int, n: int) -> np.ndarray:
    """n random numbers in [0, 1) for one text. They depend only on the seed and the index of the text."""
    return np.random.Generator(np.random.Philox(key=[seed, index])).random(n)


def sample_steps(
    model: Decodable,
    src: Int[Tensor, "sentences src"],
    max_new_tokens: Sequence[int],
    *,
    eos_id: int,
    processors: Sequence[LogitsProcessor] = (log_softmax,),
    warpers: Sequence[LogitsProcessor] = (),
    seed: int = 1,
    indices: Sequence[int] = (0,),
    stopped: Callable[[int, int], bool] = lambda row, token: False,
) -> Iterator[tuple[int, int, float]]:
    """Sample continuations step by step. Yields row of `src`, token id and natural log-probability.

    The log-probability is that of the model without `banned_ids`, before the n-gram ban, temperature, top-k and top-p.

    Args:
        model: the model.
        src: padded sources.
        max_new_tokens: maximum number of generated tokens of each source, including the end-of-sentence token.
        eos_id: id of the end-of-sentence token.
        processors: convert the logits to log-probabilities and apply constraints, such as `search_processors` returns.
        warpers: shape the distribution to sample from, such as `sampling_processors` returns.
        seed: seed of the random numbers.
        indices: index of each source among all texts of the call; with the seed it determines the random numbers.
        stopped: called with row and token after each token; True ends the row.
    """
    rows = list(range(len(src)))
    draws = [uniform_numbers(seed, index, n) for index, n in zip(indices, max_new_tokens, strict=True)]
    with torch.inference_mode():  # not around the yield: the mode of the caller must not change
        state, last = model.start(src)
    ids = torch.empty(len(src), 0, dtype=torch.long, device=src.device)
    for length in range(max(max_new_tokens)):
        with torch.inference_mode():
            log_probs = apply(processors, model.step(last, state).float(), ids)
            u = torch.tensor([draws[row][length] for row in rows], dtype=torch.float64, device=src.device)
            sampled = sample_tokens(apply(warpers, log_probs.double(), ids), u)
            token_log_probs = log_probs.gather(1, sampled[:, None])[:, 0]
        keep = []
        for i, (row, token, log_prob) in enumerate(zip(rows, sampled.tolist(), token_log_probs.tolist(), strict=True)):
            yield row, token, log_prob
            if token != eos_id and length + 1 < max_new_tokens[row] and not stopped(row, token):
                keep.append(i)
        if not keep:
            return
        with torch.inference_mode():
            kept = torch.tensor(keep, device=src.device)
            if len(keep) < len(rows):
                state.select(kept, kept)
            rows, last = [rows[i] for i in keep], sampled[kept]
            ids = torch.cat([ids[kept], last[:, None]], dim=1)


def sample_tokens(scores: Float[Tensor, "rows vocab"], u: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """Sample a token of each row from the softmax of its scores, by inversion of the cumulative distribution function.

    Args:
        scores: scores of the tokens; -inf excludes a token.
        u: a random number in [0, 1) for each row. It selects the token in whose interval of the cumulative distribution
            it lies, with the most probable token first.

    Raises:
        NonFiniteError: all tokens of a row are excluded, or a score is not a number.
    """
    probs, ids = scores.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
    index = (probs.cumsum(-1) <= u[:, None]).sum(-1, keepdim=True)
    # Rounding of the cumulative sum must not select a token of probability 0.
    last = (probs > 0).sum(-1, keepdim=True) - 1
    if bool((last < 0).any()):
        raise NonFiniteError(NON_FINITE)
    return ids.gather(1, index.minimum(last))[:, 0]


def sample(
    model: Decodable, src: Int[Tensor, "sentences src"], max_new_tokens: Sequence[int], **options: object
) -> list[list[Hypothesis]]:
    """Sample one continuation of each source; options as in `sample_steps`. The score of a
    hypothesis is the sum of its log_probs."""
    ids: list[list[int]] = [[] for _ in max_new_tokens]
    log_probs: list[list[float]] = [[] for _ in max_new_tokens]
    for row, token, log_prob in sample_steps(model, src, max_new_tokens, **options):  # type: ignore[arg-type]
        ids[row].append(token)
        log_probs[row].append(log_prob)
    return [[Hypothesis(i, p, sum(p))] for i, p in zip(ids, log_probs, strict=True)]
