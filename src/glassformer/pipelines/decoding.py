"""Saying something by the rules of transformers' `generate`, over the same protocol of models as `generate/`.

`generate/` is for models trained here: it stops a beam earlier and penalizes lengths by another formula. What a model
said in transformers it says again only by transformers' own rules.
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
NO_SCORE = -1e9
"""The score of a hypothesis that is none."""


@dataclass(slots=True)
class Finished:
    """The best ended hypotheses of one text."""

    n: int
    rows: list[tuple[float, list[int]]] = field(default_factory=list)
    """Scores and ids, best first."""

    @property
    def is_full(self) -> bool:
        return len(self.rows) == self.n

    def add(self, score: float, ids: list[int]) -> None:
        self.rows = sorted([*self.rows, (score, ids)], key=lambda row: -row[0])[: self.n]


def continuations(
    model: Decodable,
    prompts: Sequence[Sequence[int]],
    rules: GenerationConfig,
    *,
    seed: int,
    pad_id: int,
    device: torch.device,
    reads_prompt: bool,
    room: int | None,
) -> list[list[list[int]]]:
    """What follows each prompt, or answers each source: ids without it, num_return_sequences of each, best first.

    Args:
        reads_prompt: whether prompts are what a decoder goes on from, not what an encoder reads.
        room: tokens that a decoder can hold; None: any number.
    """
    found: list[list[list[int]]] = [[] for _ in prompts]
    n = rules.num_return_sequences
    for places in batches_by_length([len(ids) for ids in prompts], BATCH_TOKENS, model.pad_to_multiple_of):
        src = pad_sources([prompts[i] for i in places], pad_id, device, model.pad_to_multiple_of)
        with torch.inference_mode():
            if rules.num_beams == 1:
                src = src.repeat_interleave(n, dim=0)
            state, last = model.start(src, rules.num_beams)
            if not reads_prompt and rules.decoder_start_token_id is not None:
                last = torch.full_like(last, rules.decoder_start_token_id)
            past = src.repeat_interleave(rules.num_beams, dim=0) if reads_prompt else last[:, None]
            max_length = rules.total_max_length(past.size(1), room)
            if rules.num_beams == 1:
                draws = [generator_for(seed, n * i + j) for i in places for j in range(n)]
                rows = greedy_or_sample(model, state, past, rules, max_length, draws)
                several = [rows[start : start + n] for start in range(0, len(rows), n)]
            else:
                several = beam_search(model, state, past, rules, max_length, [generator_for(seed, i) for i in places])
        for place, said in zip(places, several, strict=True):
            found[place] = said
    return found


def generator_for(seed: int, index: int) -> np.random.Generator:
    """Random numbers of one output: a function of the seed and its place alone."""
    return np.random.Generator(np.random.Philox(key=[seed, index]))


def greedy_or_sample(
    model: Decodable,
    state: Any,
    past: Tensor,
    rules: GenerationConfig,
    max_length: int,
    draws: Sequence[np.random.Generator],
) -> list[list[int]]:
    """Each next token the most probable one, or drawn."""
    n_prompt = past.size(1)
    said: list[list[int]] = [[] for _ in range(len(past))]
    alive, ids = list(range(len(past))), past
    adjust = logits_processor(rules, n_prompt, max_length)
    while True:
        scores = adjust(model.step(ids[:, -1], state).float(), ids)
        if rules.do_sample:
            at = torch.tensor([draws[row].random() for row in alive], dtype=torch.float64, device=ids.device)
            next_ids = sample_inverse_cdf(*top_k_top_p_filter(scores), at)
        else:
            next_ids = scores.argmax(-1)
        keep = []
        for i, (row, token) in enumerate(zip(alive, next_ids.tolist(), strict=True)):
            said[row].append(token)
            if token not in rules.eos_token_id and n_prompt + len(said[row]) < max_length:
                keep.append(i)
        if not keep:
            return said
        kept = torch.tensor(keep, device=ids.device)
        if len(keep) < len(alive):
            state.select(kept, kept)
        ids = torch.cat([ids[kept], next_ids[kept, None]], dim=1)
        alive = [alive[i] for i in keep]


def beam_search(
    model: Decodable,
    state: Any,
    past: Tensor,
    rules: GenerationConfig,
    max_length: int,
    draws: Sequence[np.random.Generator],
) -> list[list[list[int]]]:
    """Beam search, or with do_sample beams drawn without replacement.

    At each step the best (1 + number of end tokens) x beam extensions are looked at; those among the first `beam` that
    end are finished, at a score of their sum divided by length^length_penalty; the best `beam` of the others go on.
    A text is done when it has `beam` finished and early_stopping is True, or none that goes on can score better: judged
    by its present length, or with early_stopping "never" by the length at which it would score best.
    """
    n, n_prompt = rules.num_beams, past.size(1)
    n_looked_at = max(2, 1 + len(rules.eos_token_id)) * n
    finished = [Finished(n) for _ in range(len(past) // n)]
    sums = torch.full((len(finished), n), NO_SCORE, device=past.device)
    sums[:, 0] = 0.0  # all beams of a text start alike: only the first counts until they part
    alive, ids = list(range(len(finished))), past
    adjust = logits_processor(rules, n_prompt, max_length)
    for length in range(n_prompt + 1, max_length + 1):
        scores = adjust(model.step(ids[:, -1], state).float().log_softmax(-1), ids)
        vocab = scores.size(-1)
        totals = (scores + sums.view(-1, 1)).view(len(alive), -1)
        index = top_or_sampled(
            totals, min(n_looked_at, totals.size(1)), [draws[i] for i in alive] if rules.do_sample else None
        )
        totals = totals.gather(1, index)
        n_said = length - n_prompt
        blocks, columns = [], []
        for block, text in enumerate(alive):
            values, tokens = totals[block].tolist(), (index[block] % vocab).tolist()
            ends = [token in rules.eos_token_id or length == max_length for token in tokens]
            done = finished[text]
            for i in range(n):
                if ends[i]:
                    row = int(index[block, i]) // vocab + block * n
                    said = [*ids[row, n_prompt:].tolist(), tokens[i]]
                    done.add(values[i] / n_said**rules.length_penalty, said)
            going_on = sorted((i for i, end in enumerate(ends) if not end), key=lambda i: -values[i])[:n]
            if not going_on or (rules.early_stopping is True and done.is_full):
                continue
            best_length = (
                max_length - n_prompt if rules.early_stopping == "never" and rules.length_penalty > 0 else n_said
            )
            if done.is_full and values[going_on[0]] / best_length**rules.length_penalty <= done.rows[-1][0]:
                continue
            blocks.append(block)
            columns.append(going_on)
        if not blocks:
            break
        keep, column = torch.tensor(blocks, device=ids.device), torch.tensor(columns, device=ids.device)
        index = index[keep].gather(1, column)
        parents = (index // vocab + n * keep[:, None]).flatten()
        ids = torch.cat([ids[parents], (index % vocab).view(-1, 1)], dim=1)
        sums = totals[keep].gather(1, column)
        state.select(parents, keep if len(keep) < len(alive) else None)
        alive = [alive[block] for block in blocks]
    return [[said for _, said in done.rows[: rules.num_return_sequences]] for done in finished]


def top_or_sampled(totals: Tensor, k: int, draws: Sequence[np.random.Generator] | None) -> Tensor:
    """Places of the k best of each row; or of k drawn by their probabilities without replacement, first drawn first."""
    if draws is None:
        return totals.topk(k).indices
    # The largest of log-probabilities with Gumbel noise are a draw without replacement (Yellott 1977).
    noise = np.stack(
        [-np.log(-np.log(sample_inverse_cdf.random(totals.size(1)) + 1e-300)) for sample_inverse_cdf in draws]
    )
    return (totals.double() + torch.from_numpy(noise).to(totals.device)).topk(k).indices


def logits_processor(rules: GenerationConfig, n_prompt: int, max_length: int) -> Callable[[Tensor, Tensor], Tensor]:
    """What is done to the scores [rows, vocab] of the next tokens, given the ids [rows, length] before them.

    In the order of transformers: penalties and bans, forced tokens, then what shapes a draw.
    """
    eos = list(rules.eos_token_id)
    banned = [*rules.suppress_tokens]
    banned += [word[0] for word in rules.bad_words_ids if len(word) == 1 and list(word) != eos[:1]]
    phrases = [word for word in rules.bad_words_ids if len(word) > 1]
    shortest = max(rules.min_length, n_prompt + rules.min_new_tokens if rules.min_new_tokens else 0)

    def adjust(scores: Tensor, ids: Tensor) -> Tensor:
        length = ids.size(1)
        scores = scores.clone()
        if rules.repetition_penalty != 1.0:
            said = scores.gather(1, ids)
            said = torch.where(said < 0, said * rules.repetition_penalty, said / rules.repetition_penalty)
            scores.scatter_(1, ids, said)
        if rules.no_repeat_ngram_size:
            for row, before in zip(scores, ids.tolist(), strict=True):
                row[banned_ngram_tokens(before, rules.no_repeat_ngram_size)] = -torch.inf
        if banned:
            scores[:, banned] = -torch.inf
        for *start, last in phrases:
            if len(start) < length:
                scores[(ids[:, -len(start) :] == ids.new_tensor(start)).all(1), last] = -torch.inf
        if length < shortest:
            scores[:, eos] = -torch.inf
        if rules.forced_bos_token_id is not None and length == 1:
            force(scores, rules.forced_bos_token_id)
        if rules.forced_eos_token_id is not None and length == max_length - 1:
            force(scores, rules.forced_eos_token_id)
        if rules.do_sample:
            scores = warp_logits(scores, rules, 1 if rules.num_beams == 1 else len(eos) + 1)
        return scores.log_softmax(-1) if rules.renormalize_logits else scores

    return adjust


def force(scores: Tensor, token: int) -> None:
    """Let no other token be said."""
    scores.fill_(-torch.inf)
    scores[:, token] = 0.0


def warp_logits(scores: Tensor, rules: GenerationConfig, n_least: int) -> Tensor:
    """Scores at a temperature, those outside top_k and top_p never.

    Args:
        n_least: tokens that stay in any case.
    """
    scores = scores / rules.temperature
    if rules.top_k:
        lowest = scores.topk(min(max(rules.top_k, n_least), scores.size(-1))).values[:, -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    if rules.top_p < 1.0:
        ascending, order = scores.sort(dim=-1)
        out = ascending.softmax(-1).cumsum(-1) <= 1 - rules.top_p
        out[:, -n_least:] = False
        scores = scores.masked_fill(out.scatter(1, order, out), -torch.inf)
    return scores
