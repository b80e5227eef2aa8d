"""Greedy decoding, sampling and beam search with the exact behavior of `generate` in transformers.

The package `generate/`, for models trained with glassformer, has another stopping criterion and another length penalty.
Models of transformers only reproduce their outputs with the algorithms in this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.generate.engine import batches_by_length, pad_sources
from glassformer.generate.sample import sample_inverse_cdf, top_k_top_p_filter
from glassformer.generate.search import banned_ngram_tokens
from glassformer.models.base import Decodable
from glassformer.pipelines.generation_config import GenerationConfig

BATCH_TOKENS = 1024
"""Maximum number of prompt tokens per batch, including padding."""
INACTIVE_SCORE = -1e9
"""Initial score of inactive hypotheses."""


@dataclass(slots=True)
class BeamHypotheses:
    """The n best completed hypotheses of one text."""

    n: int
    best: list[tuple[float, list[int]]] = field(default_factory=list)
    """Score and ids of each, best first."""

    @property
    def is_full(self) -> bool:
        return len(self.best) == self.n

    def add(self, score: float, ids: list[int]) -> None:
        self.best = sorted([*self.best, (score, ids)], key=lambda pair: -pair[0])[: self.n]


def generate_ids(
    model: Decodable,
    prompts: Sequence[Sequence[int]],
    config: GenerationConfig,
    *,
    seed: int,
    pad_id: int,
    device: torch.device,
    decoder_only: bool,
    max_positions: int | None,
) -> list[list[list[int]]]:
    """Generate from each prompt or source. Returns num_return_sequences lists of generated ids per prompt, best first.

    Args:
        decoder_only: the model continues the prompt. False: the prompt is the input of the encoder.
        max_positions: maximum number of decoder tokens; None: unlimited.
    """
    results: list[list[list[int]]] = [[] for _ in prompts]
    n = config.num_return_sequences
    for indices in batches_by_length([len(ids) for ids in prompts], BATCH_TOKENS, model.pad_to_multiple_of):
        src = pad_sources([prompts[i] for i in indices], pad_id, device, model.pad_to_multiple_of)
        with torch.inference_mode():
            if config.num_beams == 1:
                src = src.repeat_interleave(n, dim=0)
            state, last = model.start(src, config.num_beams)
            if not decoder_only and config.decoder_start_token_id is not None:
                last = torch.full_like(last, config.decoder_start_token_id)
            past = src.repeat_interleave(config.num_beams, dim=0) if decoder_only else last[:, None]
            max_length = config.total_max_length(past.size(1), max_positions)
            if config.num_beams == 1:
                rngs = [random_generator(seed, n * i + j) for i in indices for j in range(n)]
                sequences = greedy_or_sample(model, state, past, config, max_length, rngs)
                by_prompt = [sequences[start : start + n] for start in range(0, len(sequences), n)]
            else:
                rngs = [random_generator(seed, i) for i in indices]
                by_prompt = beam_search(model, state, past, config, max_length, rngs)
        for i, returned in zip(indices, by_prompt, strict=True):
            results[i] = returned
    return results


def random_generator(seed: int, index: int) -> np.random.Generator:
    """Random number generator of one output, determined by the seed and the index of the output."""
    return np.random.Generator(np.random.Philox(key=[seed, index]))


def greedy_or_sample(
    model: Decodable,
    state: Any,
    past: Tensor,
    config: GenerationConfig,
    max_length: int,
    rngs: Sequence[np.random.Generator],
) -> list[list[int]]:
    """Generate with the most probable token or a sampled token at each step."""
    n_prompt = past.size(1)
    generated: list[list[int]] = [[] for _ in range(len(past))]
    active, ids = list(range(len(past))), past
    process_logits = logits_processor(config, n_prompt, max_length)
    while True:
        scores = process_logits(model.step(ids[:, -1], state).float(), ids)
        if config.do_sample:
            u = torch.tensor([rngs[row].random() for row in active], dtype=torch.float64, device=ids.device)
            next_ids = sample_inverse_cdf(*top_k_top_p_filter(scores), u)
        else:
            next_ids = scores.argmax(-1)
        keep = []
        for i, (row, token) in enumerate(zip(active, next_ids.tolist(), strict=True)):
            generated[row].append(token)
            if token not in config.eos_token_id and n_prompt + len(generated[row]) < max_length:
                keep.append(i)
        if not keep:
            return generated
        kept = torch.tensor(keep, device=ids.device)
        if len(keep) < len(active):
            state.select(kept, kept)
        ids = torch.cat([ids[kept], next_ids[kept, None]], dim=1)
        active = [active[i] for i in keep]


def beam_search(
    model: Decodable,
    state: Any,
    past: Tensor,
    config: GenerationConfig,
    max_length: int,
    rngs: Sequence[np.random.Generator],
) -> list[list[list[int]]]:
    """Beam search; with do_sample, the extensions are sampled without replacement.

    Each step considers the best (1 + number of end tokens) x beam extensions. Those among the first `beam` that end
    with an end token are completed, with the score sum / length^length_penalty. The best `beam` of the others are kept.
    The search of a text stops when it has `beam` completed hypotheses and either early_stopping is True or no active
    hypothesis can reach a better score. The bound uses the current length, or with early_stopping "never" the length
    that maximizes the score.
    """
    n, n_prompt = config.num_beams, past.size(1)
    n_considered = max(2, 1 + len(config.eos_token_id)) * n
    finished = [BeamHypotheses(n) for _ in range(len(past) // n)]
    sums = torch.full((len(finished), n), INACTIVE_SCORE, device=past.device)
    sums[:, 0] = 0.0  # all beams of a text are identical at the start: only the first one is used in the first step
    active, ids = list(range(len(finished))), past
    process_logits = logits_processor(config, n_prompt, max_length)
    for length in range(n_prompt + 1, max_length + 1):
        scores = process_logits(model.step(ids[:, -1], state).float().log_softmax(-1), ids)
        vocab = scores.size(-1)
        totals = (scores + sums.view(-1, 1)).view(len(active), -1)
        index = topk_or_sampled(
            totals, min(n_considered, totals.size(1)), [rngs[i] for i in active] if config.do_sample else None
        )
        totals = totals.gather(1, index)
        n_generated = length - n_prompt
        blocks, columns = [], []
        for block, text in enumerate(active):
            values, tokens = totals[block].tolist(), (index[block] % vocab).tolist()
            is_end = [token in config.eos_token_id or length == max_length for token in tokens]
            done = finished[text]
            for i in range(n):
                if is_end[i]:
                    row = int(index[block, i]) // vocab + block * n
                    hypothesis = [*ids[row, n_prompt:].tolist(), tokens[i]]
                    done.add(values[i] / n_generated**config.length_penalty, hypothesis)
            continuing = sorted((i for i, end in enumerate(is_end) if not end), key=lambda i: -values[i])[:n]
            if not continuing or (config.early_stopping is True and done.is_full):
                continue
            best_length = (
                max_length - n_prompt if config.early_stopping == "never" and config.length_penalty > 0 else n_generated
            )
            if done.is_full and values[continuing[0]] / best_length**config.length_penalty <= done.best[-1][0]:
                continue
            blocks.append(block)
            columns.append(continuing)
        if not blocks:
            break
        keep, column = torch.tensor(blocks, device=ids.device), torch.tensor(columns, device=ids.device)
        index = index[keep].gather(1, column)
        parents = (index // vocab + n * keep[:, None]).flatten()
        ids = torch.cat([ids[parents], (index % vocab).view(-1, 1)], dim=1)
        sums = totals[keep].gather(1, column)
        state.select(parents, keep if len(keep) < len(active) else None)
        active = [active[block] for block in blocks]
    return [[ids for _, ids in done.best[: config.num_return_sequences]] for done in finished]


def topk_or_sampled(totals: Tensor, k: int, rngs: Sequence[np.random.Generator] | None) -> Tensor:
    """Indices of the k largest totals of each row, or of k samples without replacement in the order of sampling."""
    if rngs is None:
        return totals.topk(k).indices
    # Gumbel-top-k: the k largest log-probabilities after adding Gumbel noise are a sample without replacement
    # (Yellott 1977).
    noise = np.stack([-np.log(-np.log(rng.random(totals.size(1)) + 1e-300)) for rng in rngs])
    return (totals.double() + torch.from_numpy(noise).to(totals.device)).topk(k).indices


def logits_processor(config: GenerationConfig, n_prompt: int, max_length: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Build the function that processes the scores [rows, vocab] of the next tokens, given the ids [rows, length].

    Order as in transformers: penalties and bans, forced tokens, then temperature, top-k and top-p.
    """
    eos = list(config.eos_token_id)
    banned = [*config.suppress_tokens]
    banned += [word[0] for word in config.bad_words_ids if len(word) == 1 and list(word) != eos[:1]]
    phrases = [word for word in config.bad_words_ids if len(word) > 1]
    min_total = max(config.min_length, n_prompt + config.min_new_tokens if config.min_new_tokens else 0)

    def process_logits(scores: Tensor, ids: Tensor) -> Tensor:
        length = ids.size(1)
        scores = scores.clone()
        if config.repetition_penalty != 1.0:
            penalized = scores.gather(1, ids)
            penalized = torch.where(
                penalized < 0, penalized * config.repetition_penalty, penalized / config.repetition_penalty
            )
            scores.scatter_(1, ids, penalized)
        if config.no_repeat_ngram_size:
            for row, previous in zip(scores, ids.tolist(), strict=True):
                row[banned_ngram_tokens(previous, config.no_repeat_ngram_size)] = -torch.inf
        if banned:
            scores[:, banned] = -torch.inf
        for *start, last in phrases:
            if len(start) < length:
                scores[(ids[:, -len(start) :] == ids.new_tensor(start)).all(1), last] = -torch.inf
        if length < min_total:
            scores[:, eos] = -torch.inf
        if config.forced_bos_token_id is not None and length == 1:
            allow_only(scores, config.forced_bos_token_id)
        if config.forced_eos_token_id is not None and length == max_length - 1:
            allow_only(scores, config.forced_eos_token_id)
        if config.do_sample:
            scores = warp_logits(scores, config, 1 if config.num_beams == 1 else len(eos) + 1)
        return scores.log_softmax(-1) if config.renormalize_logits else scores

    return process_logits


def allow_only(scores: Tensor, token: int) -> None:
    """Allow only one token, in place."""
    scores.fill_(-torch.inf)
    scores[:, token] = 0.0


def warp_logits(scores: Tensor, config: GenerationConfig, min_tokens_to_keep: int) -> Tensor:
    """Apply temperature, top-k and top-p to scores. Excluded tokens get -inf.

    Top-k keeps the k highest scores, top-p the most probable of those until their probabilities sum to at least top_p.

    Args:
        min_tokens_to_keep: number of tokens that are never excluded.
    """
    scores = scores / config.temperature
    if config.top_k:
        lowest = scores.topk(min(max(config.top_k, min_tokens_to_keep), scores.size(-1))).values[:, -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    if config.top_p < 1.0:
        ascending, order = scores.sort(dim=-1)
        excluded = ascending.softmax(-1).cumsum(-1) <= 1 - config.top_p
        excluded[:, -min_tokens_to_keep:] = False
        scores = scores.masked_fill(excluded.scatter(1, order, excluded), -torch.inf)
    return scores
