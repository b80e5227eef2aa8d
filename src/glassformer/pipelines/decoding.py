"""Greedy decoding, sampling and beam search with the exact behavior of `generate` in transformers.

The package `generate/`, for models trained with glassformer, has a different stopping criterion and length penalty.
Only the algorithms in this module give a model of transformers the outputs that it has there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from glassformer.generate.batches import batches_by_length
from glassformer.generate.protocol import Decodable, State
from glassformer.generate.rules import (
    BannedPhrases,
    BannedTokens,
    ForcedToken,
    LogSoftmax,
    MinLength,
    NoRepeatNgrams,
    RepetitionPenalty,
    Rule,
    Temperature,
    TopK,
    TopP,
    apply,
)
from glassformer.generate.sample import sample_tokens
from glassformer.generate.scores import Scores, best_tokens
from glassformer.pipelines.generation_config import GenerationConfig

TokenIds = NDArray[np.int64]
"""Tokens of each hypothesis, beginning with the prompt: [rows, length]."""

BATCH_TOKENS = 1024
"""Maximum number of prompt tokens per batch, including padding."""
DUPLICATE_BEAM_SCORE = -1e9
"""Initial score of all beams of a text but the first, so that the first step extends only one."""


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
    lengths = [len(prompt) for prompt in prompts]
    for indices in batches_by_length(lengths, BATCH_TOKENS, model.pad_to_multiple_of):
        copies = n if config.num_beams == 1 else 1
        sources = [prompts[i] for i in indices for _ in range(copies)]
        state, last = model.start(sources, config.num_beams)
        if not decoder_only and config.decoder_start_token_id is not None:
            last = np.full_like(last, config.decoder_start_token_id)
        prefix_ids = np.repeat(sources, config.num_beams, axis=0) if decoder_only else last[:, None].astype(np.int64)
        max_length = config.total_max_length(prefix_ids.shape[1], max_positions)
        if config.num_beams == 1:
            rngs = [random_generator(seed, n * i + j) for i in indices for j in range(n)]
            sequences = greedy_or_sample(model, state, prefix_ids, config, max_length, rngs)
            by_prompt = [sequences[start : start + n] for start in range(0, len(sequences), n)]
        else:
            rngs = [random_generator(seed, i) for i in indices]
            by_prompt = beam_search(model, state, prefix_ids, config, max_length, rngs)
        for i, returned in zip(indices, by_prompt, strict=True):
            results[i] = returned
    return results


def random_generator(seed: int, index: int) -> np.random.Generator:
    """Random number generator of one output, determined by the seed and the index of the output."""
    return np.random.Generator(np.random.Philox(key=[seed, index]))


def greedy_or_sample(
    model: Decodable,
    state: State,
    prefix_ids: TokenIds,
    config: GenerationConfig,
    max_length: int,
    rngs: Sequence[np.random.Generator],
) -> list[list[int]]:
    """Generate with the most probable token or a sampled token at each step."""
    n_prompt = prefix_ids.shape[1]
    generated: list[list[int]] = [[] for _ in range(len(prefix_ids))]
    active, ids = list(range(len(prefix_ids))), prefix_ids
    rules = generation_rules(config, n_prompt, max_length)
    while True:
        scores = apply(rules, model.logits(ids[:, -1], state), ids)
        if config.do_sample:
            next_ids = sample_tokens(scores, np.array([rngs[row].random() for row in active]))
        else:
            next_ids = scores.argmax(axis=-1)
        keep = []
        for i, (row, token) in enumerate(zip(active, next_ids.tolist(), strict=True)):
            generated[row].append(token)
            if token not in config.eos_token_id and n_prompt + len(generated[row]) < max_length:
                keep.append(i)
        if not keep:
            return generated
        kept = np.array(keep)
        if len(keep) < len(active):
            state.select(kept, kept)
        ids = np.concatenate([ids[kept], next_ids[kept, None]], axis=1)
        active = [active[i] for i in keep]


def beam_search(
    model: Decodable,
    state: State,
    prefix_ids: TokenIds,
    config: GenerationConfig,
    max_length: int,
    rngs: Sequence[np.random.Generator],
) -> list[list[list[int]]]:
    """Beam search; with do_sample, the extensions are sampled without replacement.

    Each step considers the best (1 + number of end tokens) x beam extensions. Those among the first `beam` that end
    with an end token are completed; their score is the sum of log-probabilities divided by
    (number of generated tokens)^length_penalty. The best `beam` of the others are kept. The search of a text stops when
    it has `beam` completed hypotheses and either early_stopping is True or no active hypothesis can reach a better
    score. The bound uses the current number of generated tokens, or with early_stopping "never" the number that
    maximizes the score.
    """
    n, n_prompt = config.num_beams, prefix_ids.shape[1]
    n_considered = max(2, 1 + len(config.eos_token_id)) * n
    finished = [BeamHypotheses(n) for _ in range(len(prefix_ids) // n)]
    sums = np.full((len(finished), n), DUPLICATE_BEAM_SCORE, np.float32)
    sums[:, 0] = 0.0
    active, ids = list(range(len(finished))), prefix_ids
    rules = generation_rules(config, n_prompt, max_length)
    for length in range(n_prompt + 1, max_length + 1):
        scores = apply(rules, model.logits(ids[:, -1], state), ids)
        vocab = scores.shape[-1]
        totals = (scores + sums.reshape(-1, 1)).reshape(len(active), -1)
        index = topk_or_sampled(
            totals, min(n_considered, totals.shape[1]), [rngs[i] for i in active] if config.do_sample else None
        )
        totals = np.take_along_axis(totals, index, 1)
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
        keep, column = np.array(blocks), np.array(columns)
        index = np.take_along_axis(index[keep], column, 1)
        parents = (index // vocab + n * keep[:, None]).ravel()
        ids = np.concatenate([ids[parents], (index % vocab).reshape(-1, 1)], axis=1)
        sums = np.take_along_axis(totals[keep], column, 1)
        state.select(parents, keep if len(keep) < len(active) else None)
        active = [active[block] for block in blocks]
    return [[ids for _, ids in done.best[: config.num_return_sequences]] for done in finished]


def topk_or_sampled(totals: Scores, k: int, rngs: Sequence[np.random.Generator] | None) -> NDArray[np.int64]:
    """Indices of the k largest totals of each row, or of k samples without replacement in the order of sampling."""
    if rngs is None:
        return best_tokens(totals, k)[1]
    # Gumbel-top-k: the k largest log-probabilities after adding Gumbel noise are a sample without replacement
    # (Yellott 1977).
    noise = np.stack([-np.log(-np.log(rng.random(totals.shape[1]) + 1e-300)) for rng in rngs])
    return best_tokens(totals.astype(np.float64) + noise, k)[1]


def generation_rules(config: GenerationConfig, n_prompt: int, max_length: int) -> list[Rule]:
    """The rules of a generation config, in the order of transformers: penalties and constraints, forced tokens, then
    temperature, top-k and top-p.
    """
    c, eos = config, config.eos_token_id
    words = [tuple(word) for word in c.bad_words_ids]
    banned = (*c.suppress_tokens, *(word[0] for word in words if len(word) == 1 and word != eos[:1]))
    min_total = max(c.min_length, n_prompt + c.min_new_tokens if c.min_new_tokens else 0)
    n_kept = 1 if c.num_beams == 1 else len(eos) + 1  # beam search needs a token that does not end the text
    chosen: list[tuple[object, Rule]] = [
        (c.num_beams > 1, LogSoftmax()),
        (c.repetition_penalty != 1.0, RepetitionPenalty(c.repetition_penalty)),
        (c.no_repeat_ngram_size, NoRepeatNgrams(c.no_repeat_ngram_size or 0)),
        (banned, BannedTokens(banned)),
        (True, BannedPhrases(tuple(word for word in words if len(word) > 1))),
        (min_total, MinLength(min_total, eos)),
        (c.forced_bos_token_id is not None, ForcedToken(c.forced_bos_token_id or 0, 1)),
        (c.forced_eos_token_id is not None, ForcedToken(c.forced_eos_token_id or 0, max_length - 1)),
        (c.do_sample, Temperature(c.temperature)),
        (c.do_sample and c.top_k, TopK(max(c.top_k or 0, n_kept))),
        (c.do_sample and c.top_p < 1.0, TopP(c.top_p, n_kept)),
        (c.renormalize_logits, LogSoftmax()),
    ]
    return [rule for applies, rule in chosen if applies]
