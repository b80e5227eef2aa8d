"""Masked language modeling and BERT pretraining, and prediction of masked tokens."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, overload

import numpy as np

from glassformer.config import JsonObject
from glassformer.data.ragged import Row
from glassformer.decode_config import DecodeConfig
from glassformer.devices import require_torch
from glassformer.errors import UserError
from glassformer.generate.scores import best_of, softmax
from glassformer.metrics import Score
from glassformer.metrics.likelihood import perplexity
from glassformer.tasks.base import Record
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.texts import Warn, check_texts, python_warning
from glassformer.tokens.tokenizer import MASK
from glassformer.tokens.wordpiece import CONTINUATION

if TYPE_CHECKING:
    from torch import Tensor

    from glassformer.objectives.denoise import MaskedLMBatch

SEED = 1
"""Random seed of the masks in validation and evaluation, so that all validations use the same masks."""

VALIDATION_ROWS = 32
"""Batch size of validation."""


@dataclass(frozen=True, slots=True)
class MaskPrediction:
    """One predicted token for one mask."""

    token: str
    token_id: int
    score: float
    """Probability of the token."""
    text: str
    """The text with the token in place of the mask; other masks are unchanged."""


class MaskedLMRecord(Record):
    """JSON record of a line with masks: `output` is the line with the most probable tokens."""

    predictions: list[list[JsonObject]]
    """Fields of the most probable tokens (`MaskPrediction`) for each mask, best first."""


class MaskedLM(DocumentTask, EncoderTask[Document]):
    """Masked language model: predicts the masked tokens of a text.

    A plain text file is one stream of tokens, split into windows of the maximum length. In JSONL {"text": …} every
    line is a separate text.

    Source: Devlin et al. 2018, section 3.1.
    """

    name = "masked-lm"
    pipeline_tag = "fill-mask"
    pipelines = ("fill-mask",)
    head_config = {"head": "mlm", "pooler": False}

    # Loss

    def rows(self, examples: Sequence[Document]) -> list[Row]:
        size = self.config.max_len - 2
        rows: list[Row] = []
        for is_whole, group in groupby(examples, key=lambda e: e.is_whole):
            texts = self.tokenizer.encode_batch([e.text for e in group])
            streams = texts if is_whole else [[i for ids in texts for i in ids]]
            rows += [(ids[start : start + size],) for ids in streams for start in range(0, len(ids), size)]
        return rows

    @cached_property
    def special_ids(self) -> list[int]:
        """Ids of the special tokens."""
        return [i for i, token in self.tokenizer.backend.get_added_tokens_decoder().items() if token.special]

    @cached_property
    def text_token_ids(self) -> "Tensor":
        """Ids of all tokens but special ones: the candidates for random replacement."""
        import torch

        return torch.tensor(sorted({*range(self.tokenizer.vocab_size)} - {*self.special_ids}))

    @property
    def mask_id(self) -> int:
        """Id of the mask token.

        Raises:
            UserError: the tokenizer has no mask token.
        """
        if self.tokenizer.mask_id is None:
            raise UserError("the tokenizer has no mask token: this model cannot predict masked tokens.")
        return self.tokenizer.mask_id

    def masked_batch(self, rows: Sequence[Row]) -> "MaskedLMBatch":
        """Mask random tokens of rows, with torch's random state. Each call draws new masks (dynamic masking)."""
        return self.mask([(row, []) for (row,) in rows])

    def mask(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> "MaskedLMBatch":
        """Collate texts or pairs of texts to a batch and mask random tokens."""
        import torch

        from glassformer.data.batch import flat_positions, pad
        from glassformer.objectives.denoise import MaskedLMBatch, mask_tokens

        sequences = [self.add_special_tokens(*pair) for pair in pairs]
        ids = pad([sequence for sequence, _ in sequences], self.tokenizer.pad_id)
        maskable = ~torch.isin(ids, torch.tensor(self.special_ids))
        masked, prediction_mask = mask_tokens(ids, maskable, self.mask_id, self.text_token_ids)
        return MaskedLMBatch(
            n_targets=int(prediction_mask.sum()),
            ids=masked,
            token_type_ids=pad([sequence for _, sequence in sequences], 0),
            target_positions=flat_positions(prediction_mask),
            targets=ids[prediction_mask],
        )

    def fixed_batches(self, rows: Sequence[Row]) -> "list[MaskedLMBatch]":
        """`masked_batch` of rows with the same masks in every call, for validation and evaluation."""
        require_torch(f"The evaluation of {self.name}")
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return [
                self.masked_batch(rows[start : start + VALIDATION_ROWS])
                for start in range(0, len(rows), VALIDATION_ROWS)
            ]

    def sums(self, batches: "Sequence[MaskedLMBatch]") -> list[dict[str, float]]:
        """Sums over the masked tokens of each batch, for `metrics`."""
        import torch

        with torch.inference_mode():
            return [self.batch_sums(batch.to(torch.device(self.device))) for batch in batches]

    def batch_sums(self, batch: "MaskedLMBatch") -> dict[str, float]:
        """Sums over the masked tokens of one batch."""
        hidden = self.model(batch.ids, batch.token_type_ids).flatten(0, 1)[batch.target_positions]
        log_probs = self.model.mlm_logits(hidden).float().log_softmax(-1)
        nll = -float(log_probs.gather(-1, batch.targets[:, None]).sum())
        return {"nll": nll, "n_correct": int((log_probs.argmax(-1) == batch.targets).sum()), "n": len(batch.targets)}

    def metrics(self, sums: Iterable[Mapping[str, float]]) -> dict[str, float]:
        """Mean negative log-probability of a masked token in nats, and the fraction of correct predictions."""
        total = Counter[str]()
        for of_batch in sums:
            total.update(of_batch)
        return self.metrics_of(total)

    def metrics_of(self, sums: Mapping[str, float]) -> dict[str, float]:
        """`metrics` from the sums over all batches."""
        n = max(1, sums["n"])
        return {"loss": sums["nll"] / n, "accuracy": sums["n_correct"] / n}

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        rows = self.rows(examples)
        if not rows:
            raise UserError(
                "the test set has no text that the loss is defined for; for pretraining, two lines that follow each"
                " other.\n  Give a file that has some."
            )
        metrics = self.metrics(self.sums(self.fixed_batches(rows)))
        return [], [
            *(Score(name, x) for name, x in metrics.items()),
            Score("perplexity", perplexity(metrics["loss"], 1)),
        ]

    # Inference

    @property
    def masks(self) -> list[str]:
        """What a mask is written as in a text: <mask>, or the mask token of the tokenizer."""
        return sorted({MASK, self.tokenizer.special_tokens.mask_token or MASK})

    @cached_property
    def mask_pattern(self) -> re.Pattern[str]:
        """Matches a mask in a text."""
        return re.compile("|".join(map(re.escape, self.masks)))

    @cached_property
    def tokens_include_space(self) -> bool:
        """Whether tokens include the space before a word, so that a mask also replaces that space."""
        return any(len(token) > 1 and token[0] in "Ġ▁" for token in self.tokenizer.backend.get_vocab())

    def encode_masked(self, text: str) -> list[int]:
        """Token ids of a text with masks."""
        *before, last = self.mask_pattern.split(text)
        parts = [part.rstrip(" ") if self.tokens_include_space else part for part in before] + [last]
        prefix = self.tokenizer.special_tokens.prefix
        encoded = self.tokenizer.encode_batch([parts[0], *(part.removeprefix(prefix) for part in parts[1:])])
        ids: list[int] = []
        for i, (part, part_ids) in enumerate(zip(parts, encoded, strict=True)):
            ids += [*([self.mask_id] if i else []), *(part_ids if part else [])]
        return ids

    def append_token(self, before: str, token_id: int) -> str:
        """Append the token predicted for a mask to the text before the mask."""
        token = self.tokenizer.token(token_id)
        if token.startswith(CONTINUATION):
            return before.rstrip(" ") + token.removeprefix(CONTINUATION)
        if self.tokens_include_space:
            before = before.rstrip(" ")
            return before + (" " if before and self.tokenizer.starts_word(token_id) else "") + token.strip(" ")
        return before + token

    def fill_masks(self, text: str, token_ids: Sequence[int | None]) -> str:
        """Replace the i-th mask of a text by the token `token_ids[i]`, unless that is None or missing."""
        parts, masks = self.mask_pattern.split(text), self.mask_pattern.findall(text)
        filled = parts[0]
        for i, (mask, part) in enumerate(zip(masks, parts[1:], strict=True)):
            token_id = token_ids[i] if i < len(token_ids) else None
            filled = (filled + mask if token_id is None else self.append_token(filled, token_id)) + part
        return filled

    def predict_masks(
        self, texts: Sequence[str], top_k: int = 5, warn: Warn = python_warning
    ) -> list[list[list[MaskPrediction]]]:
        """Predict the `top_k` most probable tokens for each mask of each text, best first.

        Masks beyond the maximum length have no predictions; `warn` is called with the index of such a text.
        """
        rows: list[tuple[list[int], list[int]]] = []
        limit = self.config.max_len - 2
        for i, text in enumerate(texts):
            ids = self.encode_masked(text)
            if text.strip() and self.mask_id not in ids:
                warn(i, f"no mask: the text stays as it is. A mask is written {self.masks[0]}")
            if len(ids) > limit:
                warn(i, f"longer than the maximum length of {limit} tokens: its end was cut off")
            rows.append((ids[:limit], []))
        predictions: list[list[list[MaskPrediction]]] = [[] for _ in texts]
        encoder = self.encoder
        for indices, hidden in self.hidden(rows):
            for index, states in zip(indices, hidden, strict=True):
                is_mask = np.array([False, *(i == self.mask_id for i in rows[index][0]), False])
                probs = softmax(encoder.outputs(states[is_mask])) if is_mask.any() else np.empty((0, 1), np.float32)
                best = [[(float(row[i]), i) for i in best_of(row, top_k)] for row in probs]
                for n_before, pairs in enumerate(best):
                    unfilled: list[int | None] = [None] * n_before
                    predictions[index].append(
                        [
                            MaskPrediction(
                                self.tokenizer.token(i), i, score, self.fill_masks(texts[index], [*unfilled, i])
                            )
                            for score, i in pairs
                        ]
                    )
        return predictions

    def fill_mask(self, text: str, top_k: int = 5) -> list[list[MaskPrediction]]:
        """Predict the `top_k` most probable tokens for each mask of a text, best first."""
        return self.predict_masks([text], top_k)[0]

    @overload
    def __call__(self, texts: str, *extra: object) -> str: ...
    @overload
    def __call__(self, texts: list[str], *extra: object) -> list[str]: ...
    def __call__(self, texts: str | list[str], *extra: object) -> str | list[str]:
        """Replace each mask (`<mask>`) of a text, or of each text of a list, by the most probable token.

        Raises:
            TypeError: neither a text nor a list of texts.
        """
        results = self.run(check_texts(self, texts, *extra))
        return results[0] if isinstance(texts, str) else results

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        return [
            self.output_line(line, predictions)
            for line, predictions in zip(lines, self.predict_masks(lines, 1, warn), strict=True)
        ]

    def output_line(self, line: str, predictions: Sequence[Sequence[MaskPrediction]]) -> str:
        """A line with its masks replaced by the most probable tokens."""
        # A token may be a newline, but each line has one output line.
        filled = self.fill_masks(line, [best[0].token_id for best in predictions]).replace("\n", " ")
        return filled if line.strip() else ""

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[MaskedLMRecord]:
        """For each line its text with the masks filled, and the most probable tokens for each mask."""
        return [
            {
                "input": line,
                "output": self.output_line(line, predictions),
                "predictions": [[asdict(prediction) for prediction in best] for best in predictions],
            }
            for line, predictions in zip(lines, self.predict_masks(lines, warn=warn), strict=True)
        ]


class BertPretraining(MaskedLM):
    """BERT pretraining: masked language modeling on pairs of lines, and next-sentence prediction.

    The second line of a pair follows the first with probability 0.5; otherwise it is sampled at random.

    Source: Devlin et al. 2018, section 3.1, task 2.
    """

    name = "bert-pretraining"
    head_config = {"head": "mlm", "pooler": True}

    @classmethod
    def n_labels(cls, labels: Sequence[str]) -> int:
        return 2

    def rows(self, examples: Sequence[Document]) -> list[Row]:
        lines = [[line for line in example.text.split("\n") if line.strip()] for example in examples]
        texts = [self.tokenizer.encode_batch(text) for text in lines if text]
        all_lines = [line for text in texts for line in text]
        rng = random.Random(SEED)
        rows: list[Row] = []
        for text in texts:
            for first, following in pairwise(text):
                is_random = rng.random() < 0.5
                rows.append(
                    (
                        *self.truncate_pair([*first], [*(rng.choice(all_lines) if is_random else following)]),
                        [int(is_random)],
                    )
                )
        return rows

    def masked_batch(self, rows: Sequence[Row]) -> "MaskedLMBatch":
        import torch

        nsp_labels = torch.tensor([label for _, _, (label,) in rows])
        return replace(self.mask([(first, second) for first, second, _ in rows]), nsp_labels=nsp_labels)

    def batch_sums(self, batch: "MaskedLMBatch") -> dict[str, float]:
        assert batch.nsp_labels is not None
        predicted = self.model.label_logits(self.model(batch.ids, batch.token_type_ids), batch.ids).argmax(-1)
        return {
            **super().batch_sums(batch),
            "nsp_correct": int((predicted == batch.nsp_labels).sum()),
            "pairs": len(predicted),
        }

    def metrics_of(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**super().metrics_of(sums), "nsp_accuracy": sums["nsp_correct"] / max(1, sums["pairs"])}
