"""Greedy decoding, sampling and beam search with the exact behavior of `generate` in transformers.

The algorithms are those of `glassformer.generate`, with other rules and another policy: `generate` has a different
stopping criterion and length penalty, and another order of the rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.batches import batches_by_length
from glassformer.generate.policy import Policy
from glassformer.generate.protocol import Decodable
from glassformer.generate.rules import (
    BannedPhrases,
    ExcludedTokens,
    ForcedToken,
    LogSoftmax,
    MinLength,
    NoRepeatNgrams,
    RepetitionPenalty,
    Rule,
    Temperature,
    TopK,
    TopP,
)
from glassformer.generate.sample import Sampling, random_generator
from glassformer.generate.search import BeamSearch
from glassformer.pipelines.generation_config import GenerationConfig

BATCH_TOKENS = 1024
"""Maximum number of prompt tokens per batch, including padding."""


@dataclass(frozen=True)
class TransformersPolicy(Policy):
    """Policy of transformers: the score is the sum of log-probabilities divided by (number of generated tokens)^alpha.

    A search ends when it has `beam` finished hypotheses and either `early_stopping` is True or no unfinished one can
    reach a better score. The bound uses the current number of generated tokens, or with early_stopping "never" the
    number that maximizes the score.
    """

    early_stopping: bool | Literal["never"] = False
    n_end_tokens: int = 1

    @property
    def n_considered(self) -> int:
        return max(2, 1 + self.n_end_tokens) * self.beam

    def score(self, total: float, n_tokens: int) -> float:
        return float(total / n_tokens**self.alpha)

    def truncated(self, unfinished: list[int]) -> list[int]:
        return [i for i in unfinished if i < self.beam]

    def continues(self, scores: Sequence[float], total: float, n_tokens: int, limit: int) -> bool:
        if len(scores) < self.beam:
            return True
        if self.early_stopping is True:
            return False
        best_length = limit if self.early_stopping == "never" and self.alpha > 0 else n_tokens
        return self.score(total, best_length) > scores[-1]


def generate_ids(
    model: Decodable,
    prompts: Sequence[Sequence[int]],
    config: GenerationConfig,
    *,
    seed: int,
    first_index: int = 0,
    decoder_only: bool,
    max_positions: int | None,
) -> list[list[list[int]]]:
    """Generate from each prompt or source. Returns num_return_sequences lists of generated ids per prompt, best first.

    Args:
        first_index: index of the first prompt. With the seed, the index of a prompt determines its random numbers.
        decoder_only: the model continues the prompt. False: the prompt is the input of the encoder.
        max_positions: maximum number of decoder tokens; None: unlimited.

    Raises:
        NonFiniteError: the outputs of the model are not finite.
    """
    results: list[list[list[int]]] = [[] for _ in prompts]
    n_copies = config.num_return_sequences if config.num_beams == 1 else 1
    lengths = [len(prompt) for prompt in prompts]
    for batch in batches_by_length(lengths, BATCH_TOKENS, model.pad_to_multiple_of):
        indices = [i for i in batch for _ in range(n_copies)]
        sources = [prompts[i] for i in indices]
        state, last = model.start(sources, config.num_beams)
        if not decoder_only and config.decoder_start_token_id is not None:
            last = np.full_like(last, config.decoder_start_token_id)
        before = np.repeat(np.array(sources), config.num_beams, axis=0) if decoder_only else last[:, None]
        max_length = config.total_max_length(before.shape[1], max_positions)
        rules, warpers = generation_rules(config, before.shape[1], max_length)
        limits = [max_length - before.shape[1]] * len(sources)
        if config.do_sample and config.num_beams == 1:
            sampling = Sampling(
                state, last, limits, eos_ids=config.eos_token_id, rules=rules, warpers=warpers, prompts=before,
                seed=seed, indices=[n_copies * (first_index + i) + j for i in batch for j in range(n_copies)],
            )  # fmt: skip
            outputs = [[ids] for ids in sampling.run(model)]
        else:
            generators = [random_generator(seed, first_index + i) for i in batch] if config.do_sample else None
            search = BeamSearch(
                state, last, limits, eos_ids=config.eos_token_id, rules=rules + warpers, policy=policy_of(config),
                prompts=before, generators=generators,
            )  # fmt: skip
            outputs = [[h.ids for h in hypotheses] for hypotheses in search.run(model)]
        for i, output in zip(indices, outputs, strict=True):
            if not output:
                raise NonFiniteError(NON_FINITE)
            results[i] += output
    return results


def policy_of(config: GenerationConfig) -> TransformersPolicy:
    """The policy of a generation config. One beam is greedy decoding, which ends with the first end token."""
    c, is_greedy = config, config.num_beams == 1
    return TransformersPolicy(
        c.num_beams, c.length_penalty, nbest=1 if is_greedy else c.num_return_sequences,
        early_stopping=is_greedy or c.early_stopping, n_end_tokens=len(c.eos_token_id),
    )  # fmt: skip


def generation_rules(config: GenerationConfig, n_prompt: int, max_length: int) -> tuple[list[Rule], list[Rule]]:
    """The rules of a generation config, in the order of transformers: penalties, constraints and forced tokens; and
    what follows: temperature, top-k and top-p.
    """
    c, eos = config, config.eos_token_id
    words = [tuple(word) for word in c.bad_words_ids]
    banned = (*c.suppress_tokens, *(word[0] for word in words if len(word) == 1 and word != eos[:1]))
    min_total = max(c.min_length, n_prompt + c.min_new_tokens if c.min_new_tokens else 0)
    n_kept = 1 if c.num_beams == 1 else len(eos) + 1  # beam search needs a token that does not end the text
    # The penalty is for logits, but in beam search for log-probabilities.
    penalty: list[Rule] = [RepetitionPenalty(c.repetition_penalty)] if c.repetition_penalty != 1.0 else []
    normalized: list[Rule] = [*penalty, LogSoftmax()] if c.num_beams == 1 else [LogSoftmax(), *penalty]
    constraints: list[tuple[object, Rule]] = [
        (c.no_repeat_ngram_size, NoRepeatNgrams(c.no_repeat_ngram_size)),
        (banned, ExcludedTokens(banned)),
        (words, BannedPhrases(tuple(word for word in words if len(word) > 1))),
        (min_total, MinLength(min_total, eos)),
        (c.forced_bos_token_id is not None, ForcedToken(c.forced_bos_token_id or 0, 1)),
        (c.forced_eos_token_id is not None, ForcedToken(c.forced_eos_token_id or 0, max_length - 1)),
    ]
    warpers: list[tuple[object, Rule]] = [
        (c.do_sample, Temperature(c.temperature)),
        (c.do_sample and c.top_k, TopK(max(c.top_k or 0, n_kept))),
        (c.do_sample and c.top_p < 1.0, TopP(c.top_p, n_kept)),
        (c.renormalize_logits, LogSoftmax()),
    ]
    return normalized + [rule for applies, rule in constraints if applies], [x for applies, x in warpers if applies]
