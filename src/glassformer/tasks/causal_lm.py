"""Causal language modeling with decoder-only models: text completion and generation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import ClassVar, Unpack, overload

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from glassformer.config import DecodeConfig, JsonObject
from glassformer.data.batch import Batch, extend, extend_positions, flat_positions, pad
from glassformer.data.dataset import Dataset
from glassformer.data.ragged import Row
from glassformer.errors import ConfigError
from glassformer.generate.request import Sources
from glassformer.keyword_options import DecodeOptions
from glassformer.metrics import Score
from glassformer.metrics.likelihood import bits_per_byte, perplexity
from glassformer.model_config import Kind
from glassformer.objectives.loss import linear_cross_entropy
from glassformer.tasks.base import ExampleT, Task
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.generation import GeneratesText
from glassformer.tasks.texts import Warn, check_texts, map_nonblank, no_op
from glassformer.tokens.tokenizer import Tokenizer

TRANSLATION_OPTIONS = {"glossary", "protect", "align", "confidence", "min_confidence", "prefix", "shortlist"}
"""Options of decoding that language models do not have."""

TOKEN_SELECTION_OPTIONS = {"beam", "temperature", "top_k", "top_p", "min_p", "typical_p"}
"""Decoding options that select the search or sampling method."""

DEFAULT_MAX_NEW_TOKENS = 256
"""Maximum number of generated tokens, unless `max_length` is given."""

MAX_VALIDATED = 20_000
"""Approximate number of dev tokens used in a validation during training; `evaluate` uses all."""


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

    def pad_to(self, n_rows: int, length: int, pad_id: int) -> "CausalLMBatch":
        shape = n_rows, length - 1  # the last token of a row is a target only
        weights = extend(self.weights, *shape, 0)
        weights[len(self.weights) :] = 0.0
        return replace(
            self,
            ids=extend(self.ids, *shape, pad_id),
            targets=extend(self.targets, *shape, pad_id),
            weights=weights,
            target_positions=extend_positions(
                self.target_positions, self.weights.size(1), weights, filler=int(weights.argmin())
            ),
            segments=None if self.segments is None else extend(self.segments, *shape, -1),
        )


class DecoderTask(GeneratesText, Task[ExampleT, CausalLMBatch]):
    """Base class of tasks by decoder-only models: generation of text after a prompt."""

    kind: ClassVar[Kind] = "decoder"
    streams: ClassVar[bool] = False
    """Print the output of a line on a terminal as it is generated."""
    static_shapes = True
    decoding_defaults: ClassVar[JsonObject] = {}
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

        Raises:
            ConfigError: an option that only translation has.
        """
        explicit = options.model_dump(include=options.model_fields_set) if options else {}
        if explicit.get("nbest", 1) > 1:
            raise ConfigError(
                f"{self.name}: nbest: only for translation.\n  Sample several outputs with seed=1, seed=2, …"
            )
        if given := TRANSLATION_OPTIONS & explicit.keys():
            raise ConfigError(f"{self.name}: {', '.join(sorted(given))}: only for models with an encoder.")
        decoding_defaults = {
            name: value
            for name, value in self.decoding_defaults.items()
            if name not in TOKEN_SELECTION_OPTIONS or not TOKEN_SELECTION_OPTIONS & explicit.keys()
        }
        return DecodeConfig(**{**decoding_defaults, **explicit})

    def complete(self, texts: Sequence[str], options: DecodeConfig | None, warn: Warn = no_op) -> list[str]:
        """Generate a continuation of each text."""
        c = self.with_default_options(options)
        prompts = [self.limited_prompt(text, c, partial(warn, i)) for i, text in enumerate(texts)]
        sources = Sources([ids for ids, _ in prompts], c, [limit for _, limit in prompts])
        hypotheses = self.engine(c).decode(sources)
        return [truncate_at_stop(self.tokenizer.decode(nbest[0].ids), c.stop) for nbest in hypotheses]

    @overload
    def __call__(self, texts: str, *extra: object, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def __call__(self, texts: list[str], *extra: object, **options: Unpack[DecodeOptions]) -> list[str]: ...
    def __call__(self, texts: str | list[str], *extra: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Generate an output for a text, or for each text of a list.

        Args:
            options: fields of `DecodeConfig`: temperature, top_k, top_p, seed, max_length, stop, beam. Sampling is
                reproducible for a `seed`.

        Raises:
            TypeError: neither a text nor a list of texts.
        """
        results = self.complete(
            check_texts(self, texts, *extra), DecodeConfig.resolve(options, environment={}) if options else None
        )
        return results[0] if isinstance(texts, str) else results

    def max_new_tokens(self, options: DecodeConfig) -> int:
        """Maximum number of tokens to generate: `max_length`, else half of the maximum length of the model, at most
        DEFAULT_MAX_NEW_TOKENS.
        """
        max_len = self.model.config.max_len
        return min(options.max_length or min(DEFAULT_MAX_NEW_TOKENS, max_len // 2), max_len - 1)

    def stream(
        self, text: str, options: DecodeConfig | None = None, *, warn: Callable[[str], None] = no_op
    ) -> Iterator[str]:
        """Generate a continuation of a text and yield it in parts as tokens are generated.

        The concatenated parts equal the output of `complete`.

        Args:
            warn: called with a description of what was cut from a text that was too long.
        """
        c = self.with_default_options(options)
        prompt, limit = self.limited_prompt(text, c, warn)
        engine = self.engine(c)
        engine.submit(prompt, c, max_new_tokens=limit)
        output = TextStream(self.tokenizer, c.stop)
        while engine.n_unfinished and not output.is_stopped:
            for event in engine.step():
                if part := output.add(event.tokens):
                    yield part
        if rest := output.end():
            yield rest

    def limited_prompt(self, text: str, options: DecodeConfig, warn: Callable[[str], None]) -> tuple[list[int], int]:
        """Token ids of the prompt for a text, truncated if it is too long, and the maximum number of new tokens."""
        max_new_tokens = self.max_new_tokens(options)
        prompt = self.truncate_prompt(self.prompt(text), max_new_tokens, warn)
        return prompt, min(max_new_tokens, self.model.config.max_len - len(prompt))

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


class LanguageModel(DocumentTask[CausalLMBatch], DecoderTask[Document]):
    """Causal language model: text completion.

    A plain text file is one stream of tokens, split into windows of the maximum length, each with a start token;
    training samples the window boundaries anew in each epoch. In JSONL {"text": …} every line is a separate text;
    several texts are packed into a window and do not attend to one another.
    """

    name = "causal-lm"
    pipeline_tag = "text-generation"
    pipelines = ("text-generation",)
    metric = "loss"
    add_prefix_space = False
    streams = True
    decoding_defaults: ClassVar = {"temperature": 0.8, "top_k": 40}

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

    def batch(self, rows: Sequence[Row]) -> CausalLMBatch:
        t = self.tokenizer
        rows = [(self.sample_window(row),) for (row,) in rows]
        ids = pad([row[:-1] for (row,) in rows], t.pad_id)
        is_start = (ids == t.bos_id) if t.bos_id != t.eos_id else (ids == t.eos_id).roll(1, dims=1)
        segments = is_start.cumsum(-1)
        lengths = [len(row) - 1 for (row,) in rows]
        weights = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).float()
        return CausalLMBatch(
            n_targets=sum(lengths),
            ids=ids,
            targets=pad([row[1:] for (row,) in rows], t.pad_id),
            weights=weights,
            target_positions=flat_positions(weights > 0),
            segments=segments if bool((segments != segments[:, :1]).any()) else None,
        )

    def run(self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = no_op) -> list[str]:
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
        losses = self.map_parts(
            lambda part: [(float((nll * w).sum()), float(w.sum())) for nll, w in self.negative_log_probs(part)], rows
        )
        n_bytes = sum(len(e.text.encode()) for e in examples)
        return sum(x for x, _ in losses), round(sum(n for _, n in losses)), n_bytes

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        nll, n_tokens, n_bytes = self.nll_sums(examples)
        return [], [
            Score("loss", nll / n_tokens, "nats:token"),
            Score("perplexity", perplexity(nll, n_tokens)),
            Score("bits per byte", bits_per_byte(nll, n_bytes)),
        ]

    def validate(self, examples: Sequence[Document]) -> dict[str, float]:
        nll, n_tokens, _ = self.nll_sums(examples, MAX_VALIDATED)
        return {"loss": nll / n_tokens}


class TextStream:
    """Text of tokens that are generated one after another, in parts. The parts together are the text up to a stop
    text.

    Args:
        stop: texts that end the output.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        self.tokenizer, self.stop = tokenizer, stop
        self.ids: list[int] = []
        self.emitted = ""
        self.is_stopped = False

    def add(self, tokens: Sequence[int]) -> str:
        """Add tokens. Returns the next part of the text, which may be empty."""
        self.ids += tokens
        text = self.tokenizer.decode_stable_prefix(self.ids)
        if truncate_at_stop(text, self.stop) != text:
            self.is_stopped = True
            return ""
        # Hold back characters that may be the beginning of a stop text.
        return self.emit(text[: max(0, len(text) - max([1, *map(len, self.stop)]) + 1)])

    def end(self) -> str:
        """The last part."""
        return self.emit(truncate_at_stop(self.tokenizer.decode(self.ids), self.stop))

    def emit(self, text: str) -> str:
        """What follows the text that was emitted before."""
        part = text[len(self.emitted) :]
        self.emitted += part
        return part


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text up to the first occurrence of a stop text."""
    ends = [index for stop_text in stop if stop_text and (index := text.find(stop_text)) >= 0]
    return text[: min(ends)] if ends else text
