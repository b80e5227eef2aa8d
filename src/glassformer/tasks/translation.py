"""Text to text: the encoder-decoder as a translator."""

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, overload

import torch
from pydantic import ValidationError
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import DecodeConfig, describe
from glassformer.data.batch import Batch, make_batch
from glassformer.errors import CheckpointError
from glassformer.generate.engine import batches_by_length, decode
from glassformer.generate.search import Hypothesis
from glassformer.metrics import Score, translation_scores
from glassformer.models.transformer import Transformer
from glassformer.objectives.loss import projected_cross_entropy
from glassformer.sizes import TransformerConfig
from glassformer.tokens.tokenizer import Tokenizer

# The end of a sentence: closing punctuation, perhaps a quote or bracket, then space; or full-width punctuation.
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")

IGNORE: Callable[..., None] = lambda *_: None  # noqa: E731


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


class Translator:
    """A trained encoder-decoder with its tokenizer: raw text in, raw text out."""

    name = "translation"

    def __init__(self, model: Transformer, tokenizer: Tokenizer, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.model = model.to(self.device).eval()
        self.model_bf16: Transformer | None = None
        self.tokenizer = tokenizer

    @classmethod
    def build(cls, config: TransformerConfig, tokenizer: Tokenizer, device: torch.device | str = "cpu") -> Self:
        """An untrained translator; torch's random state decides its weights."""
        return cls(Transformer(config), tokenizer, device)

    @classmethod
    def from_folder(cls, folder: Path, config: dict[str, Any], device: torch.device) -> Self:
        """The translator in a verified folder, given what its config.json says."""
        tokenizer = Tokenizer.from_json((folder / "tokenizer.json").read_text(encoding="utf-8"))
        try:
            sizes = TransformerConfig.model_validate({k: v for k, v in config.items() if k != "model_type"})
        except ValidationError as error:
            raise CheckpointError(f"{folder / 'config.json'}: {describe(error, {})}") from None
        if tokenizer.vocab_size != sizes.vocab_size:
            raise CheckpointError(
                f"{folder}: tokenizer.json has {tokenizer.vocab_size} units, config.json says {sizes.vocab_size}."
            )
        tensors = checkpoint.read_tensors(folder / "model.safetensors")
        return cls(Transformer.from_tensors(sizes, tensors), tokenizer, device)

    def contents(self, tensors: dict[str, Tensor] | None = None) -> dict[str, str | dict[str, Tensor]]:
        """The files of a model folder that `load` turns into this translator again.

        Args:
            tensors: weights to write in place of the model's own.
        """
        return {
            "config.json": checkpoint.to_json(
                {"task": self.name, "model_type": "glassformer-transformer", **self.model.config.model_dump()}
            ),
            "tokenizer.json": self.tokenizer.to_json(),
            "model.safetensors": tensors or self.model.state_dict(),
        }

    @overload
    def __call__(self, texts: str, **options: Any) -> str: ...
    @overload
    def __call__(self, texts: Sequence[str], **options: Any) -> list[str]: ...
    def __call__(self, texts: str | Sequence[str], **options: Any) -> str | list[str]:
        """The best translation of a text, or of each text of a list. Lines inside a text are translated one by one.

        Args:
            options: those of `DecodeConfig`: beam, length_penalty, max_length, batch_tokens.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        lines = [text.split("\n") for text in several]
        flat = self.translate([line for text in lines for line in text], DecodeConfig.resolve(options))
        best = iter(translations[0].text for translations in flat)
        joined = ["\n".join(next(best) for _ in text) for text in lines]
        return joined[0] if isinstance(texts, str) else joined

    def translate(
        self,
        texts: Sequence[str],
        options: DecodeConfig | None = None,
        *,
        longest: Callable[[int], int] | None = None,
        progress: Callable[[int], None] = IGNORE,
        warn: Callable[[int, str], None] = IGNORE,
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
            longest=longest,
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

    def in_precision(self, precision: str) -> Transformer:
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
        for sentence in pieces(SENTENCE_END, text):
            first, *others = self.cut(self.tokenizer.encode(sentence), limit)
            if parts and len(parts[-1]) + len(first) <= limit:
                parts[-1] += first
            else:
                parts.append(first)
            parts += others
            cut_inside |= bool(others)
        where = "inside a sentence, which is longer than that" if cut_inside else "at ends of sentences"
        warn(f"longer than the model's {limit} tokens: translated in {len(parts)} parts, cut {where}")
        return parts

    def cut(self, ids: list[int], limit: int) -> Iterator[list[int]]:
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

    def evaluate(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        options: DecodeConfig | None = None,
        *,
        tokenize: str = "13a",
        lowercase: bool = False,
        progress: Callable[[int], None] = IGNORE,
    ) -> tuple[list[str], list[Score]]:
        """The translations of the sources, and BLEU, chrF and TER of them against the references."""
        hypotheses = [best[0].text for best in self.translate(sources, options, progress=progress)]
        return hypotheses, translation_scores(hypotheses, references, tokenize=tokenize, lowercase=lowercase)

    def batch(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Batch:
        """A training batch of pairs of ids."""
        t = self.tokenizer
        return make_batch(pairs, pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id)

    def loss(self, batch: Batch, *, label_smoothing: float) -> Tensor:
        """Summed label-smoothed cross-entropy over the target tokens of a batch, in nats."""
        hidden = self.model(batch.src, batch.tgt_in)
        words = batch.tgt_out != self.tokenizer.pad_id
        return projected_cross_entropy(
            hidden[words], self.model.embedding.weight, batch.tgt_out[words], label_smoothing=label_smoothing
        )


def pieces(separator: re.Pattern[str], text: str) -> Iterator[str]:
    """The stretches of a text between separators, without the space around them."""
    start = 0
    for match in separator.finditer(text):
        if piece := text[start : match.end()].strip():
            yield piece
        start = match.end()
    if piece := text[start:].strip():
        yield piece
