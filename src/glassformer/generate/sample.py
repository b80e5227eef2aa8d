"""Sampling with temperature, top-k and top-p."""

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
    """Probabilities after temperature, top-k and top-p, in descending order and with sum 1, and their token ids.

    Tokens that top-k excludes are not returned. Tokens that top-p excludes have probability 0.

    Args:
        logits: logits of the next token.
        temperature: divisor of the logits.
        top_k: keep the k most probable tokens (Fan et al. 2018).
        top_p: of the tokens that top_k keeps, keep the most probable ones until their probabilities sum to at least
            top_p times the sum over all of them (nucleus sampling, Holtzman et al. 2020).
    """
    probs = (logits.double() / temperature).softmax(-1)
    probs, ids = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        probs, ids = probs[:, :top_k], ids[:, :top_k]
    if top_p is not None:
        sum_before = probs.cumsum(-1) - probs
        probs = probs.masked_fill(sum_before >= top_p * probs.sum(-1, keepdim=True), 0.0)
    return probs / probs.sum(-1, keepdim=True), ids


def uniform_numbers(seed: int, index: int, n: int) -> np.ndarray:
    """n random numbers in [0, 1) for one text. They depend only on the seed and the index of the text."""
    return np.random.Generator(np.random.Philox(key=[seed, index])).random(n)


def sample_steps(
    model: Decodable,
    src: Int[Tensor, "sentences src"],
    max_new_tokens: Sequence[int],
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
    """Sample continuations step by step. Yields row of `src`, token id and natural log-probability.

    The log-probability is that of the model without `banned_ids`, before the n-gram ban, temperature, top-k and top-p.

    Args:
        model: the model.
        src: padded sources.
        max_new_tokens: maximum number of generated tokens of each source, including the end-of-sentence token.
        eos_id: id of the end-of-sentence token.
        banned_ids: ids of tokens that are never generated, such as padding.
        temperature: see `top_k_top_p_filter`.
        top_k: see `top_k_top_p_filter`.
        top_p: see `top_k_top_p_filter`.
        seed: seed of the random numbers.
        indices: index of each source among all texts of the call; with the seed it determines the random numbers.
        no_repeat_ngram_size: no n-gram of this size is generated twice.
        stopped: called with row and token after each token; True ends the row.
    """
    rows = list(range(len(src)))
    output_ids: list[list[int]] = [[] for _ in rows]
    numbers = [uniform_numbers(seed, index, n) for index, n in zip(indices, max_new_tokens, strict=True)]
    with torch.inference_mode():  # not around the yield: the mode of the caller must not change
        state, last = model.start(src)
    for length in range(max(max_new_tokens)):
        with torch.inference_mode():
            logits = model.step(last, state).float()
            if banned_ids:
                logits[:, list(banned_ids)] = -torch.inf
            u = torch.tensor([numbers[row][length] for row in rows], dtype=torch.float64, device=logits.device)
            log_probs = logits.log_softmax(-1)
            if no_repeat_ngram_size:
                for i, row in enumerate(rows):
                    logits[i, banned_ngram_tokens(output_ids[row], no_repeat_ngram_size)] = -torch.inf
            sampled = sample_inverse_cdf(*top_k_top_p_filter(logits, temperature, top_k, top_p), u)
            token_log_probs = log_probs.gather(1, sampled[:, None])[:, 0]
        keep = []
        for i, (row, token, log_prob) in enumerate(zip(rows, sampled.tolist(), token_log_probs.tolist(), strict=True)):
            output_ids[row].append(token)
            yield row, token, log_prob
            if token != eos_id and length + 1 < max_new_tokens[row] and not stopped(row, token):
                keep.append(i)
        if not keep:
            return
        with torch.inference_mode():
            kept = torch.tensor(keep, device=logits.device)
            if len(keep) < len(rows):
                state.select(kept, kept)
            rows, last = [rows[i] for i in keep], sampled[kept]


def sample_inverse_cdf(
    probs: Float[Tensor, "rows kept"], ids: Int[Tensor, "rows kept"], u: Float[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """Inverse-CDF sampling: token i is chosen if u, in [0, 1), lies in its interval of the cumulative distribution.

    Raises:
        NonFiniteError: no probability is greater than 0.
    """
    index = (probs.cumsum(-1) <= u[:, None]).sum(-1, keepdim=True)
    # Rounding of the cumulative sum must not select a token of probability 0.
    last = (probs > 0).sum(-1, keepdim=True) - 1
    if bool((last < 0).any()):
        raise NonFiniteError(NON_FINITE)
    index = index.minimum(last)
    return ids.gather(1, index)[:, 0]


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
