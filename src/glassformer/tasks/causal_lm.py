"""Causal language modeling with decoder-only models: text completion and generation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.corpora.jsonl import invalid_text_reason, outline, read_objects
from glassformer.corpora.lines import check_readable, chunks, read_lines
from glassformer.corpora.pair_formats import format_of
from glassformer.corpora.read_options import DETECT, ReadOptions, parse_keys
from glassformer.data.batch import Batch, flat_positions, pad
from glassformer.data.dataset import IDS, Dataset, Row
from glassformer.errors import CorpusError
from glassformer.generate.engine import decode
from glassformer.generate.processors import sampling_processors, search_processors
from glassformer.generate.sample import sample_steps
from glassformer.metrics import Score
from glassformer.metrics.likelihood import bits_per_byte, perplexity
from glassformer.models.base import Kind
from glassformer.objectives.loss import linear_cross_entropy
from glassformer.tasks.base import Log, Task, check_texts, map_nonblank, no_op

TOKEN_SELECTION_OPTIONS = {"beam", "temperature", "top_k", "top_p"}
"""Decoding options that select the search or sampling method."""

DEFAULT_MAX_NEW_TOKENS = 256
"""Maximum number of generated tokens, unless `max_length` is given."""

LINES_PER_CHUNK = 64
"""Number of lines of a plain text file that form one document, for reading, encoding and holding out."""

MAX_VALIDATED = 20_000
"""Approximate number of dev tokens used in a validation during training; `evaluate` uses all."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text, or a chunk of lines of a text that continues in the next document of the same file."""

    text: str
    is_whole: bool
    """The document is a complete text, not a chunk of a longer one."""
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class CausalLMBatch(Batch):
    """Padded sequences of decoder input ids, with targets and the loss weight of each target."""

    ids: Int[Tensor, "batch length"]
    targets: Int[Tensor, "batch length"]
    weights: Float[Tensor, "batch length"]
    target_positions: Int[Tensor, " targets"]
    """Indices of the targets with a weight greater than 0, in the flattened `targets`."""
    segments: Int[Tensor, "batch length"] | None = None
    """Index of the text that each token belongs to, if several texts are packed into a sequence."""


class DecoderTask(Task):
    """Base class of tasks by decoder-only models: generation of text after a prompt."""

    kind: ClassVar[Kind] = "decoder"
    decoding_defaults: ClassVar[Mapping[str, Any]] = {}
    """Default decoding options of the task."""

    def prompt(self, text: str) -> list[int]:
        """Token ids of the prompt for a text."""
        t = self.tokenizer
        ids = t.encode(text)
        # Published GPT-2 models have one token for start and end, and read texts without a start token.
        return [t.bos_id, *ids] if t.bos_id != t.eos_id or not ids else ids

    def truncate_prompt(self, ids: list[int], max_new_tokens: int, warn: Callable[[str], None]) -> list[int]:
        """Keep the end of a prompt: as many tokens as leave `max_new_tokens` positions free, but at least half of the
        maximum length.
        """
        max_len = self.model.config.max_len
        n_kept = max(max_len - max_new_tokens, max_len // 2)
        if len(ids) > n_kept:
            warn(f"longer than the maximum prompt length of {n_kept} tokens: its beginning was cut off")
        return ids[-n_kept:]

    def with_default_options(self, options: DecodeConfig | None) -> DecodeConfig:
        """Complete the explicit options with the defaults of the task.

        If any option of TOKEN_SELECTION_OPTIONS is explicit, no default of these options applies.
        """
        explicit = options.model_dump(include=options.model_fields_set) if options else {}
        decoding_defaults = {
            name: value
            for name, value in self.decoding_defaults.items()
            if name not in TOKEN_SELECTION_OPTIONS or not TOKEN_SELECTION_OPTIONS & explicit.keys()
        }
        return DecodeConfig(**{**decoding_defaults, **explicit})

    def complete(
        self, texts: Sequence[str], options: DecodeConfig | None, warn: Callable[[int, str], None] = no_op
    ) -> list[str]:
        """Generate a continuation of each text."""
        c = self.with_default_options(options)
        max_new_tokens = self.max_new_tokens(c)
        prompts = [
            self.truncate_prompt(self.prompt(text), max_new_tokens, lambda what, i=i: warn(i, what))  # type: ignore[misc]
            for i, text in enumerate(texts)
        ]
        t = self.tokenizer
        hypotheses = decode(
            self.model,
            prompts,
            c,
            max_new_tokens=lambda n: min(max_new_tokens, self.model.config.max_len - n),
            pad_id=t.pad_id,
            eos_id=t.eos_id,
            banned_ids=self.banned_ids,
            max_len=max_new_tokens,
            device=self.device,
        )
        return [truncate_at_stop(t.decode(nbest[0].ids), c.stop) for nbest in hypotheses]

    def max_new_tokens(self, options: DecodeConfig) -> int:
        """Maximum number of tokens to generate: `max_length`, else half of the maximum length of the model, at most
        DEFAULT_MAX_NEW_TOKENS.
        """
        max_len = self.model.config.max_len
        return min(options.max_length or min(DEFAULT_MAX_NEW_TOKENS, max_len // 2), max_len - 1)

    @property
    def banned_ids(self) -> tuple[int, ...]:
        """Special tokens that are never generated."""
        t = self.tokenizer
        return tuple({t.pad_id, t.bos_id} - {t.eos_id})

    def stream(
        self, text: str, options: DecodeConfig | None = None, *, warn: Callable[[str], None] = no_op
    ) -> Iterator[str]:
        """Generate a continuation of a text and yield it in parts as tokens are generated.

        The concatenated parts equal the output of `complete`.

        Args:
            warn: called with a description of what was cut from a text that was too long.
        """
        c = self.with_default_options(options)
        max_new_tokens = self.max_new_tokens(c)
        prompt = self.truncate_prompt(self.prompt(text), max_new_tokens, warn)
        steps = sample_steps(
            self.model,
            torch.tensor([prompt], device=self.device),
            [min(max_new_tokens, self.model.config.max_len - len(prompt))],
            eos_id=self.tokenizer.eos_id,
            processors=search_processors(self.banned_ids, c.no_repeat_ngram_size),
            warpers=sampling_processors(c),
            seed=c.seed,
        )
        ids: list[int] = []
        emitted = ""
        for _, token, _ in steps:
            ids.append(token)
            text = self.tokenizer.decode_stable_prefix(ids)
            if truncate_at_stop(text, c.stop) != text:
                break
            # Hold back characters that may be the beginning of a stop text.
            ready = text[: max(0, len(text) - max([1, *map(len, c.stop)]) + 1)]
            if len(ready) > len(emitted):
                yield ready[len(emitted) :]
                emitted = ready
        rest = truncate_at_stop(self.tokenizer.decode(ids), c.stop)[len(emitted) :]
        if rest:
            yield rest

    def loss(self, batch: CausalLMBatch, *, label_smoothing: float = 0.0) -> Tensor:
        hidden = self.model(batch.ids, batch.segments)
        positions = batch.target_positions
        return linear_cross_entropy(
            hidden.flatten(0, 1).index_select(0, positions),
            self.model.output_weight,
            batch.targets.flatten().index_select(0, positions),
            label_smoothing=label_smoothing,
            token_weights=batch.weights.flatten().index_select(0, positions),
        )

    def negative_log_probs(self, rows: Sequence[Row]) -> Iterator[tuple[Tensor, Tensor]]:
        """For each row the negative log-probabilities of its targets in nats, and the weights of the targets."""
        for start in range(0, len(rows), 16):
            batch = self.batch(rows[start : start + 16]).to(self.device)
            with torch.inference_mode():
                logits = self.model.logits(self.model(batch.ids, batch.segments)).float()
                nll = -logits.log_softmax(-1).gather(-1, batch.targets[..., None])[..., 0]
            yield from zip(nll.cpu(), batch.weights.cpu(), strict=True)


class LanguageModel(DecoderTask):
    """Causal language model: text completion.

    A plain text file is one stream of tokens, split into windows of the maximum length, each with a start token;
    training samples the window boundaries anew in each epoch. In JSONL {"text": …} every line is a separate text;
    several texts are packed into a window and do not attend to one another.
    """

    name = "causal-lm"
    example_type = Document
    examples_name = "texts"
    fields = {"ids": IDS}
    metric = "loss"
    rows_are_examples = False
    add_prefix_space = False
    streams = True
    decoding_defaults: ClassVar = {"temperature": 0.8, "top_k": 40}

    @classmethod
    def read(
        cls, src: Sequence[Path], tgt: Sequence[Path], options: ReadOptions = DETECT, log: Log | None = None
    ) -> Iterator[Document]:
        check_readable(*src, by_content=options.format is None)
        keys = parse_keys(options.keys)
        for path in src:
            is_jsonl = (options.format or format_of(path)) == "jsonl"
            yield from documents(path, keys) if is_jsonl else text_chunks(path)

    @classmethod
    def texts(cls, example: Document) -> Sequence[str]:
        return (example.text,)

    @classmethod
    def held_out_mask(cls, hashes: NDArray[np.uint64], path: Path) -> NDArray[np.bool_]:
        """Hold out the last 5% of the documents: context from both sides of a held-out part would be in training."""
        if len(hashes) < 2:
            raise CorpusError(
                f"{path}: too short to hold out a dev set.\n  Give a longer text, or a dev set: --dev FILE."
            )
        is_held_out = np.zeros(len(hashes), dtype=np.bool_)
        is_held_out[-max(1, len(hashes) // 20) :] = True
        return is_held_out

    def encode(self, examples: Sequence[Document]) -> tuple[list[Row], list[Document]]:
        t, size = self.tokenizer, self.model.config.max_len
        rows: list[Row] = []
        for is_whole, group in groupby(examples, key=lambda e: e.is_whole):
            stream: list[int] = []
            for ids in t.encode_batch([e.text for e in group]):
                stream += [t.bos_id, *ids, t.eos_id] if is_whole else ids
            if is_whole:
                # Each window begins with the last token of the previous one, so that every token is predicted once.
                rows += [(stream[i : i + size + 1],) for i in range(0, max(1, len(stream) - 1), size)]
            else:
                # Twice the window size: `batch` samples a window of the row, `nll_sums` uses the first window.
                rows += [([t.bos_id, *stream[i : i + 2 * size]],) for i in range(0, len(stream), size)]
        return [row for row in rows if len(row[0]) > 1], []

    def lengths(self, data: Dataset) -> NDArray[np.int64]:
        return data.fields["ids"].lengths.clip(max=self.model.config.max_len + 1)

    def n_tokens(self, data: Dataset) -> list[int]:
        return [int(self.lengths(data).sum())]

    def sample_window(self, row: Sequence[int]) -> Sequence[int]:
        """Sample a window of the maximum length from a longer row, with torch's random state."""
        n_excess = len(row) - 1 - self.model.config.max_len
        if n_excess <= 0:
            return row
        start = int(torch.randint(n_excess + 1, ()))
        return [row[0], *row[start + 1 : len(row) - n_excess + start]]

    def batch(self, rows: Sequence[Any]) -> Batch:
        t = self.tokenizer
        rows = [(self.sample_window(row),) for (row,) in rows]
        ids = pad([row[:-1] for (row,) in rows], t.pad_id)
        is_start = (ids == t.bos_id) if t.bos_id != t.eos_id else (ids == t.eos_id).roll(1, dims=1)
        segments = is_start.cumsum(-1)
        lengths = [len(row) - 1 for (row,) in rows]
        weights = torch.tensor([[float(i < n) for i in range(max(lengths))] for n in lengths])
        return CausalLMBatch(
            n_targets=sum(lengths),
            ids=ids,
            targets=pad([row[1:] for (row,) in rows], t.pad_id),
            weights=weights,
            target_positions=flat_positions(weights > 0),
            segments=segments if bool((segments != segments[:, :1]).any()) else None,
        )

    def __call__(self, texts: str | Sequence[str], *extra: Any, **options: Any) -> str | list[str]:
        """Generate a continuation of a text, or of each text of a list.

        Args:
            options: fields of `DecodeConfig`: temperature, top_k, top_p, seed, max_length, stop, beam.

        Raises:
            TypeError: neither a text nor a list of texts.
        """
        results = self.complete(
            check_texts(self, texts, *extra), DecodeConfig.resolve(options, environment={}) if options else None
        )
        return results[0] if isinstance(texts, str) else results

    def run(self, lines: Sequence[str], options: Any = None, *, warn: Callable[[int, str], None] = no_op) -> list[str]:
        """Generate a continuation of each line, up to the first newline."""
        return map_nonblank(
            lines, lambda nonblank, warn: [text.split("\n")[0] for text in self.complete(nonblank, options, warn)], warn
        )

    def nll_sums(self, examples: Sequence[Document], max_tokens: int | None = None) -> tuple[float, int, int]:
        """Negative log-likelihood in nats, number of tokens, and number of bytes of the texts.

        Args:
            max_tokens: use about this many tokens, in evenly spaced windows; the bytes are those of all texts.
        """
        size = self.model.config.max_len
        rows = [(ids[: size + 1],) for (ids,) in self.encode(examples)[0]]
        if max_tokens:
            rows = rows[:: max(1, len(rows) * size // max_tokens)]
        losses = [(float((nll * w).sum()), float(w.sum())) for nll, w in self.negative_log_probs(rows)]
        n_bytes = sum(len(e.text.encode()) for e in examples)
        return sum(x for x, _ in losses), round(sum(n for _, n in losses)), n_bytes

    def evaluate(self, examples: Sequence[Document], options: Any = None) -> tuple[list[str], list[Score]]:
        nll, n_tokens, n_bytes = self.nll_sums(examples)
        return [], [
            Score("loss", nll / n_tokens, "nats:token"),
            Score("perplexity", perplexity(nll, n_tokens)),
            Score("bits per byte", bits_per_byte(nll, n_bytes)),
        ]

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        nll, n_tokens, _ = self.nll_sums(examples, MAX_VALIDATED)
        return {"loss": nll / n_tokens}


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text up to the first occurrence of a stop text."""
    ends = [index for stop_text in stop if stop_text and (index := text.find(stop_text)) >= 0]
    return text[: min(ends)] if ends else text


def text_chunks(path: Path) -> Iterator[Document]:
    """Read a plain text file in chunks of LINES_PER_CHUNK lines."""
    for i, chunk in enumerate(chunks(read_lines(path), LINES_PER_CHUNK)):
        yield Document("\n".join(chunk) + "\n", False, str(path), i * LINES_PER_CHUNK + 1)


def documents(path: Path, keys: Mapping[str, str]) -> Iterator[Document]:
    """Read the texts of a file of JSONL {"text": …}.

    Raises:
        CorpusError: a line has no text.
    """
    for number, record in read_objects(path, keys):
        text = record.get("text")
        if not isinstance(text, str) or (reason := invalid_text_reason(text)):
            problem = reason if isinstance(text, str) else f'expected {{"text": …}}, found {outline(record)}'
            raise CorpusError(f"{path}:{number}: {problem}.\n  Fix or delete the line.")
        if text.strip():
            yield Document(text, True, str(path), number)
