"""fill-mask: the most probable tokens for the masks of a text."""

import warnings
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from glassformer.config import JsonObject
from glassformer.errors import ConfigError, UserError
from glassformer.generate.scores import best_tokens, softmax
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.pipelines.feature_extraction import TokenizeOptions
from glassformer.pipelines.tokenizer_adapter import encoder_batches
from glassformer.tasks.masked_lm import MaskedLM

TOP_K = 5
"""Default number of candidates per mask."""


class FillMaskOptions(Options):
    """Arguments of fill-mask."""

    top_k: int | None = Field(default=None, ge=1)
    targets: str | tuple[str, ...] | None = None
    """The only candidate words. A word that is not in the vocabulary is replaced by its first token."""
    tokenizer_kwargs: TokenizeOptions = TokenizeOptions()


class FillMask(Pipeline[FillMaskOptions]):
    """{"score", "token", "token_str", "sequence"} of the most probable tokens for a mask, best first.

    A text with several masks gives one such list per mask. The score is a probability over the vocabulary.
    """

    options_type = FillMaskOptions
    model: MaskedLM

    def each(self, inputs: object, options: Mapping[str, object]) -> Output:
        results = super().each(inputs, options)
        return results[0] if isinstance(inputs, list) and len(inputs) == 1 else results

    def run(self, inputs: list[object], options: FillMaskOptions) -> list[Output]:
        texts = [self.text(text) for text in inputs]
        encoded_texts = [self.read(text, options) for text in texts]
        targets = self.targets(options.targets)
        results: list[Output] = [None] * len(encoded_texts)
        encoder = self.model.encoder
        for indices, hidden in encoder_batches(self.model, encoded_texts):
            for i, states in zip(indices, hidden, strict=True):
                ids = encoded_texts[i][0]
                probs = softmax(encoder.outputs(states[np.array(ids) == self.model.mask_id]))
                if targets:
                    others = np.ones(probs.shape[1], bool)
                    others[targets] = False
                    probs[:, others] = -1.0
                values, tokens = best_tokens(probs, min(options.top_k or TOP_K, len(targets) or probs.shape[1]))
                masks = [
                    [self.format_output(texts[i], ids, mask, *pair) for pair in zip(*pairs, strict=True)]
                    for mask, pairs in enumerate(zip(values.tolist(), tokens.tolist(), strict=True))
                ]
                results[i] = masks[0] if len(masks) == 1 else masks
        return results

    def read(self, text: str, options: FillMaskOptions) -> tuple[list[int], list[int]]:
        """Ids and token type ids of a text, which must contain a mask after truncation."""
        tokenize = options.tokenizer_kwargs
        truncates = options.truncates or bool(tokenize.truncation)
        limit = self.tokenizer.limit(truncates=truncates, max_length=tokenize.max_length)
        if not self.source.follows_transformers:
            all_ids, _ = self.model.add_special_tokens(self.model.encode_masked(text), [])
            ids = all_ids if len(all_ids) <= limit else [*all_ids[: limit - 1], all_ids[-1]]
            token_type_ids, was_truncated = [0] * len(ids), len(ids) < len(all_ids)
        else:
            window, *overflow = self.tokenizer.encode_windows(text, max_length=limit)
            ids, token_type_ids, was_truncated = window.ids, window.token_type_ids, bool(overflow)
        if was_truncated and not truncates and not tokenize.max_length:
            warn_truncated(limit, "end")
        if self.model.mask_id not in ids:
            raise UserError(
                f"{self.task}: no mask ({self.tokenizer.mask_token}) in the first {limit} tokens of {text!r:.60}."
            )
        return ids, token_type_ids

    def format_output(self, text: str, ids: list[int], mask: int, score: float, token: int) -> JsonObject:
        """Output dictionary of one token for the mask of index `mask`."""
        positions = [position for position, i in enumerate(ids) if i == self.model.mask_id]
        if not self.source.follows_transformers:
            sequence = self.model.fill_masks(text, [*([None] * mask), token])
        else:
            filled = [token if position == positions[mask] else i for position, i in enumerate(ids)]
            filled = [i for i in filled if i != self.tokenizer.pad_token_id]
            sequence = self.tokenizer.decode(filled, skip_special_tokens=len(positions) == 1)
        return {"score": score, "token": token, "token_str": self.tokenizer.decode([token]), "sequence": sequence}

    def first_token(self, word: str) -> list[int]:
        """Id of the first token of a word; empty if the word has no token."""
        return self.tokenizer.encode_windows(word, special_tokens=False)[0].ids[:1]

    def targets(self, words: str | tuple[str, ...] | None) -> list[int]:
        """Token ids of the candidate words."""
        vocab = self.tokenizer.get_vocab()
        target_ids: list[int] = []
        for word in [words] if isinstance(words, str) else words or ():
            ids = [vocab[word]] if word in vocab else self.first_token(word)
            if word not in vocab:
                fallback = f"its first token {self.tokenizer.token(ids[0])!r} is used" if ids else "it is ignored"
                message = f"targets: {word!r} is not in the model's vocabulary: {fallback}."
                warnings.warn(message, UserWarning, stacklevel=2)
            target_ids += ids
        if words is not None and not target_ids:
            raise ConfigError("targets: none of the words can be used.")
        return sorted(set(target_ids))
