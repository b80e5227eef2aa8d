"""The words that fit the gaps of a text."""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field

from glassformer.errors import ConfigError, UserError
from glassformer.pipelines.base import Options, Pipeline, warn_cut
from glassformer.pipelines.feature_extraction import TokenizeOptions
from glassformer.pipelines.tokenizer_adapter import encoded
from glassformer.tasks.masked_lm import MaskedLM

TOP_K = 5


class FillOptions(Options):
    """Arguments of fill-mask."""

    top_k: int | None = Field(default=None, ge=1)
    targets: str | tuple[str, ...] | None = None
    """The only words that may be said; of one that is no unit, its first unit stands for it."""
    tokenizer_kwargs: TokenizeOptions = TokenizeOptions()


class FillMask(Pipeline):
    """{"score", "token", "token_str", "sequence"} of the most probable units for a mask, best first.

    Of a text with several masks, such a list for each; the score is a probability over the vocabulary.
    """

    tasks = ("masked-lm", "bert-pretraining")
    options_type = FillOptions
    model: MaskedLM

    def each(self, inputs: Any, options: Mapping[str, Any]) -> Any:
        found = super().each(inputs, options)
        return found[0] if isinstance(inputs, list) and len(inputs) == 1 else found

    def run(self, inputs: list[Any], options: FillOptions) -> list[Any]:
        rows = [self.read(self.text(given), options) for given in inputs]
        targets = self.targets(options.targets)
        found: list[Any] = [None] * len(rows)
        for places, hidden, ids in encoded(self.model, rows):
            for place, states, row in zip(places, hidden, ids, strict=True):
                with torch.inference_mode():
                    logits = self.model.model.mlm_logits(states[row == self.model.mask_id])
                    probs = logits.float().softmax(-1).cpu()
                if targets:
                    kept = torch.zeros_like(probs)
                    kept[:, targets] = 1.0
                    probs = torch.where(kept.bool(), probs, -1.0)
                best = probs.topk(min(options.top_k or TOP_K, len(targets) or probs.size(-1)))
                gaps = [
                    [self.format_output(inputs[place], rows[place][0], gap, *pair) for pair in zip(*pairs, strict=True)]
                    for gap, pairs in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True))
                ]
                found[place] = gaps[0] if len(gaps) == 1 else gaps
        return found

    def read(self, text: str, options: FillOptions) -> tuple[list[int], list[int]]:
        """Ids and types of a text that has a mask."""
        more = options.tokenizer_kwargs
        cuts = options.cuts or bool(more.truncation)
        limit = self.tokenizer.limit(cuts=cuts, max_length=more.max_length)
        if self.source.is_ours:
            whole, _ = self.model.add_special_tokens(self.model.encode_masked(text), [])
            ids = whole if len(whole) <= limit else [*whole[: limit - 1], whole[-1]]
            token_type_ids, was_cut = [0] * len(ids), len(ids) < len(whole)
        else:
            window, *cut = self.tokenizer.read(text, max_length=limit)
            ids, token_type_ids, was_cut = window.ids, window.token_type_ids, bool(cut)
        if was_cut and not cuts and not more.max_length:
            warn_cut(limit, "end")
        if self.model.mask_id not in ids:
            raise UserError(f"{self.task}: no mask ({self.tokenizer.mask_token}) in what is read of {text!r:.60}.")
        return ids, token_type_ids

    def format_output(self, text: str, ids: list[int], gap: int, score: float, token: int) -> dict[str, Any]:
        """One unit in one gap."""
        places = [place for place, i in enumerate(ids) if i == self.model.mask_id]
        if self.source.is_ours:
            sequence = self.model.fill_masks(text, [*([None] * gap), token])
        else:
            filled = [token if place == places[gap] else i for place, i in enumerate(ids)]
            filled = [i for i in filled if i != self.tokenizer.pad_token_id]
            sequence = self.tokenizer.decode(filled, skip_special_tokens=len(places) == 1)
        return {"score": score, "token": token, "token_str": self.tokenizer.decode([token]), "sequence": sequence}

    def targets(self, wanted: str | tuple[str, ...] | None) -> list[int]:
        """Units of the words that may be said."""
        vocab = self.tokenizer.get_vocab()
        found = []
        for word in [wanted] if isinstance(wanted, str) else wanted or ():
            ids = [vocab[word]] if word in vocab else self.tokenizer.read(word, special_tokens=False)[0].ids[:1]
            if word not in vocab:
                instead = f"{self.tokenizer.unit(ids[0])!r} stands for it" if ids else "it is left out"
                warnings.warn(f"targets: {word!r} is no unit of the model: {instead}.", UserWarning, stacklevel=2)
            found += ids
        if wanted is not None and not found:
            raise ConfigError("targets: none of them is a word.")
        return sorted(set(found))
