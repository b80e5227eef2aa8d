"""Text to text: the encoder-decoder as a translator."""

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.corpora.corpus import Example, read_pairs
from glassformer.corpora.doctor import PairChecker
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.data.batch import PairBatch, make_batch
from glassformer.data.dataset import Row
from glassformer.generate.engine import batches_by_length, decode
from glassformer.generate.search import Hypothesis
from glassformer.metrics import Score, bleu, translation_scores
from glassformer.metrics.score import MetricFn
from glassformer.metrics.translation import bleu_from, bleu_statistics
from glassformer.model_config import TransformerConfig
from glassformer.models.transformer import Transformer
from glassformer.objectives.loss import projected_cross_entropy
from glassformer.tasks.base import Log, Task, check_texts, no_op
from glassformer.tokens.tokenizer import Tokenizer

# The end of a sentence: closing punctuation, perhaps a quote or bracket, then space; or full-width punctuation.
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text."""

    source: str
    text: str
    score: float
    """Sum of log_probs divided by the length penalty; 0 is certain. Of a text in parts, the sum over its parts."""
    tokens: list[str]
    log_probs: list[float]
    """Natural log-probability of each token, given the source and the tokens before it."""


class Translator(Task):
    """A trained encoder-decoder with its tokenizer: raw text in, raw text out."""

    name = "translation"
    families: ClassVar[tuple[str, ...]] = ("transformer", "t5", "rnn")
    example_type: ClassVar[Any] = Example
    examples_name = "pairs"
    metric = "bleu"
    validation_decodes = True

    def __init__(
        self, model: Any, tokenizer: Tokenizer, device: torch.device | str = "cpu", labels: Sequence[str] = ()
    ) -> None:
        super().__init__(model, tokenizer, device, labels)
        self.model_bf16: Any = None

    @classmethod
    def build(cls, config: TransformerConfig, tokenizer: Tokenizer, device: torch.device | str = "cpu") -> Self:
        """An untrained translator; torch's random state decides its weights."""
        return cls(Transformer(config), tokenizer, device)

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Any]:
        """The pairs with text on both sides; `log` is told what else is wrong with them."""
        checker = PairChecker(n_shown=1) if log else None
        for example in read_pairs(src, tgt, format=options.format, keys=options.keys):
            if checker:
                checker.check(example)
            if example.src.strip() and example.tgt.strip():
                yield example
        if log and checker:
            for kind, _, n, place, meaning in checker.diagnosis().rows():
                left_out = ", left out" if kind in ("blank-side", "blank-both") else ""
                log(f"warning: {kind}: {n:,}{left_out}: {meaning} ({place})")
            if checker.diagnosis().counts:
                log("`glassformer doctor` names every such line and can mend most.")

    @classmethod
    def texts(cls, example: Example) -> Sequence[str]:
        return example.src, example.tgt

    def encode(self, examples: Sequence[Example]) -> tuple[list[Row], list[Example]]:
        src = self.tokenizer.encode_batch([example.src for example in examples])
        tgt = self.tokenizer.encode_batch([example.tgt for example in examples])
        limit = self.model.config.max_len
        rows: list[Row] = list(zip(src, tgt, strict=True))
        fits = [max(map(len, row)) < limit for row in rows]
        return list(compress(rows, fits)), [e for e, fit in zip(examples, fits, strict=True) if not fit]

    @overload
    def __call__(self, texts: str, *extra: Any, **options: Any) -> str: ...
    @overload
    def __call__(self, texts: Sequence[str], *extra: Any, **options: Any) -> list[str]: ...
    def __call__(self, texts: str | Sequence[str], *extra: Any, **options: Any) -> str | list[str]:
        """The best translation of a text, or of each text of a list. Lines inside a text are translated one by one.

        Args:
            options: fields of `DecodeConfig`: beam, length_penalty, max_length, batch_tokens.

        Raises:
            TypeError: neither a text nor a list of texts.
        """
        lines = [text.split("\n") for text in check_texts(self, texts, *extra)]
        flat = self.translate([line for text in lines for line in text], DecodeConfig.resolve(options))
        best = iter(translations[0].text for translations in flat)
        joined = ["\n".join(next(best) for _ in text) for text in lines]
        return joined[0] if isinstance(texts, str) else joined

    def translate(
        self,
        texts: Sequence[str],
        options: DecodeConfig | None = None,
        *,
        max_new_tokens: Callable[[int], int] | None = None,
        progress: Callable[[int], None] = no_op,
        warn: Callable[[int, str], None] = no_op,
    ) -> list[list[Translation]]:
        """The nbest translations of each text, best first. A blank text is given back as an empty one.

        Args:
            longest: of a source's length in tokens, the most tokens to give; default: what `options` say.
            progress: told how many more parts are done.
            warn: told the index of a text that was too long, and what was done about it.
        """
        options = options or DecodeConfig()
        parts, owner = [], []
        for index, text in enumerate(texts):
            if text.strip():
                for ids in self.split(text, lambda what, index=index: warn(index, what)):  # type: ignore[misc]
                    parts.append([*ids, self.tokenizer.eos_id])
                    owner.append(index)
        hypotheses = decode(
            self.in_precision(options.precision),
            parts,
            options,
            max_new_tokens=max_new_tokens,
            pad_id=self.tokenizer.pad_id,
            eos_id=self.tokenizer.eos_id,
            banned_ids=(self.tokenizer.pad_id, self.tokenizer.bos_id),
            max_len=self.model.config.max_len,
            device=self.device,
            progress=progress,
        )
        per_text: list[list[list[Hypothesis]]] = [[] for _ in texts]
        for index, best in zip(owner, hypotheses, strict=True):
            per_text[index].append(best)
        return [
            [self.join(text, rank, found) for rank in range(options.nbest)]
            for text, found in zip(texts, per_text, strict=True)
        ]

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        return [best[0].text for best in self.translate(lines, options, warn=warn)]

    def records(
        self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op
    ) -> list[dict[str, Any]]:
        """Of each line its translation with score, tokens and log-probabilities, and the others if asked for."""
        return [record_of(best) for best in self.translate(lines, options, warn=warn)]

    def in_precision(self, precision: str) -> Any:
        """The model; for bf16 a copy, made once."""
        if precision == "fp32":
            return self.model
        if self.model_bf16 is None:
            self.model_bf16 = copy.deepcopy(self.model).bfloat16()
        return self.model_bf16

    def join(self, source: str, rank: int, parts: Sequence[Sequence[Hypothesis]]) -> Translation:
        """The translation of a text from those of its parts; a part with fewer hypotheses gives its last."""
        chosen = [part[min(rank, len(part) - 1)] for part in parts]
        texts = [self.tokenizer.decode(hypothesis.ids).replace("\n", " ") for hypothesis in chosen]
        return Translation(
            source=source,
            text=" ".join(texts),
            score=sum(hypothesis.score for hypothesis in chosen),
            tokens=[self.tokenizer.token(i) for hypothesis in chosen for i in hypothesis.ids],
            log_probs=[p for hypothesis in chosen for p in hypothesis.log_probs],
        )

    def split(self, text: str, warn: Callable[[str], None]) -> list[list[int]]:
        """Ids of a text in as few parts as the model's longest sentence asks for, cut at ends of sentences,
        or of words where one sentence is too long.
        """
        limit = self.model.config.max_len - 1
        ids = self.tokenizer.encode(text)
        if len(ids) <= limit:
            return [ids]
        parts: list[list[int]] = []
        cut_inside = False
        for sentence in split_text(SENTENCE_END, text):
            first, *others = self.split_ids(self.tokenizer.encode(sentence), limit)
            if parts and len(parts[-1]) + len(first) <= limit:
                parts[-1] += first
            else:
                parts.append(first)
            parts += others
            cut_inside |= bool(others)
        where = "inside a sentence, which is longer than that" if cut_inside else "at ends of sentences"
        warn(f"longer than the model's {limit} tokens: translated in {len(parts)} parts, cut {where}")
        return parts

    def split_ids(self, ids: list[int], limit: int) -> Iterator[list[int]]:
        """Ids in stretches of at most `limit`, cut before a word if there is one in the second half of a stretch."""
        while len(ids) > limit:
            words = (i for i in range(limit, limit // 2, -1) if self.tokenizer.starts_word(ids[i]))
            at = next(words, limit)
            yield ids[:at]
            ids = ids[at:]
        yield ids

    def score(self, sources: Sequence[str], targets: Sequence[str], *, batch_tokens: int = 2048) -> list[list[float]]:
        """Natural log-probability of each target token, end of sentence included, given its source.

        A pair longer than the model's longest sentence is scored on what fits.
        """
        limit = self.model.config.max_len - 1
        pairs = [
            (src[:limit], tgt[:limit])
            for src, tgt in zip(self.tokenizer.encode_batch(sources), self.tokenizer.encode_batch(targets), strict=True)
        ]
        results: list[list[float]] = [[] for _ in pairs]
        for rows in batches_by_length([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
            batch = self.batch([pairs[i] for i in rows]).to(self.device)
            with torch.inference_mode():
                logits = self.model.logits(self.model(batch.src, batch.tgt_in))
                found = logits.log_softmax(-1).gather(-1, batch.tgt_out[..., None])[..., 0]
            for i, row in zip(rows, found.tolist(), strict=True):
                results[i] = row[: len(pairs[i][1]) + 1]
        return results

    def scores(
        self,
        examples: Sequence[Example],
        options: DecodeConfig | None = None,
        *,
        tokenize: str = "13a",
        lowercase: bool = False,
        progress: Callable[[int], None] = no_op,
    ) -> tuple[list[str], list[Score]]:
        """Translations, and BLEU, chrF and TER of them, and the share that equals its reference."""
        found = self.translate([example.src for example in examples], options, progress=progress)
        hypotheses, references = [best[0].text for best in found], [example.tgt for example in examples]
        exact = Score("exact", sum(map(str.__eq__, hypotheses, references)) / len(references))
        scores = translation_scores(hypotheses, references, tokenize=tokenize, lowercase=lowercase)
        return hypotheses, [*scores, exact]

    @classmethod
    def bootstrap_statistics(
        cls, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[NDArray[np.float64], MetricFn]]:
        return {"BLEU": (bleu_statistics(outputs, [example.tgt for example in examples]), bleu_from)}

    def validate(self, examples: Sequence[Example], n_decoded: int | None = None) -> dict[str, float]:
        """BLEU of greedy translations, and the mean negative log-probability of a reference token in nats.

        Args:
            n_decoded: translate this many of the examples, evenly spaced; the loss is that of all. Default: all.
        """
        sources, references = [example.src for example in examples], [example.tgt for example in examples]
        decoded = evenly_spaced(examples, n_decoded)
        options = DecodeConfig(beam=1, batch_tokens=4096)
        # A model that has not learned to stop yet should not hold up its training.
        translations = self.translate(
            [example.src for example in decoded], options, max_new_tokens=lambda n_tokens: 2 * n_tokens + 10
        )
        log_probs = [p for row in self.score(sources, references) for p in row]
        return {
            "bleu": bleu([nbest[0].text for nbest in translations], [example.tgt for example in decoded]),
            "loss": -sum(log_probs) / len(log_probs),
        }

    def batch(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> PairBatch:
        """A training batch of pairs of ids."""
        t = self.tokenizer
        return make_batch(pairs, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def loss(self, batch: PairBatch, *, label_smoothing: float = 0.0) -> Tensor:
        """Summed label-smoothed cross-entropy over the target tokens of a batch, in nats."""
        hidden = self.model(batch.src, batch.tgt_in)
        words = batch.tgt_out != self.tokenizer.pad_id
        return projected_cross_entropy(
            hidden[words],
            self.model.output_weight,
            batch.tgt_out[words],
            label_smoothing=label_smoothing,
            bias=self.model.output_bias,
        )


def evenly_spaced(items: Sequence[Any], n: int | None) -> Sequence[Any]:
    """n items in order, evenly spaced: a sample of text that is sorted, by length for instance. None: all."""
    return items if n is None or n >= len(items) else [items[i * len(items) // n] for i in range(n)]


def record_of(best: Sequence[Translation]) -> dict[str, Any]:
    """The translations of one text, best first, for programs."""
    rows = [{"text": t.text, "score": t.score, "tokens": t.tokens, "log_probs": t.log_probs} for t in best]
    return {"source": best[0].source, **rows[0], **({"nbest": rows} if len(rows) > 1 else {})}


def split_text(separator: re.Pattern[str], text: str) -> Iterator[str]:
    """The stretches of a text between separators, without the space around them."""
    start = 0
    for match in separator.finditer(text):
        if piece := text[start : match.end()].strip():
            yield piece
        start = match.end()
    if piece := text[start:].strip():
        yield piece
