"""Causal language modeling with decoder-only models: text completion and generation."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import ClassVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.data.ragged import Row
from glassformer.decode_config import COMPLETION, DecodeConfig, DecodeOptions, SamplingConfig
from glassformer.errors import ConfigError
from glassformer.generate.request import Sources
from glassformer.metrics import Score
from glassformer.metrics.likelihood import bits_per_byte, perplexity
from glassformer.model_config import Kind
from glassformer.tasks.base import ExampleT, Record, Task
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.generation import GeneratesText
from glassformer.tasks.texts import Warn, check_texts, map_nonblank, python_warning
from glassformer.tokens.tokenizer import Tokenizer

TOKEN_SELECTION_OPTIONS = {"beam", *SamplingConfig.model_fields} - {"seed"}
"""Decoding options that select the search or sampling method."""

DEFAULT_MAX_NEW_TOKENS = 256
"""Maximum number of generated tokens, unless `max_length` is given."""


class DecoderTask(GeneratesText, Task[ExampleT]):
    """Base class of tasks by decoder-only models: generation of text after a prompt."""

    kind: ClassVar[Kind] = "decoder"
    option_groups = COMPLETION
    streams: ClassVar[bool] = False
    """Print the output of a line on a terminal as it is generated."""
    decoding_defaults: ClassVar[JsonObject] = {}
    """Default decoding options of the task."""
    longest_trained_output = 0
    """Number of tokens of the longest output of the training set, with its end token; 0 if it is not known."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens that end a text besides that of the tokenizer: those of the Hugging Face folder that it comes from."""
        known = range(self.config.vocab_size)
        return tuple(i for i in self.origin.end_ids if i in known and i != self.tokenizer.eos_id) if self.origin else ()

    def prompt(self, text: str) -> list[int]:
        """Token ids of the prompt for a text."""
        t = self.tokenizer
        ids = t.encode(text)
        # Published GPT-2 models have one token for start and end, and read texts without a start token.
        return [t.bos_id, *ids] if t.bos_id != t.eos_id or not ids else ids

    def truncate_prompt(self, ids: list[int], max_new_tokens: int, warn: Callable[[str], None]) -> list[int]:
        """Keep the start token, if there is one, and the end of a prompt: as many tokens as leave `max_new_tokens`
        positions free, but at least half of the maximum length.
        """
        max_len = self.config.max_len
        n_kept = max(max_len - max_new_tokens, max_len // 2)
        if len(ids) <= n_kept:
            return ids
        warn(f"longer than the maximum prompt length of {n_kept} tokens: its beginning was cut off")
        start = ids[:1] if self.tokenizer.bos_id != self.tokenizer.eos_id else []
        return [*start, *ids[len(ids) - n_kept + len(start) :]]

    def with_default_options(self, options: DecodeConfig | None) -> DecodeConfig:
        """Complete the explicit options with the defaults of the task.

        If any option of TOKEN_SELECTION_OPTIONS is explicit, no default of these options applies.

        Raises:
            ConfigError: an option that the task does not have.
        """
        options = options or DecodeConfig()
        if options.nbest > 1:
            raise ConfigError(
                f"{self.name}: nbest: only for translation.\n  Sample several outputs with seed=1, seed=2, …"
            )
        self.check_options(options)
        explicit = options.model_dump(include=options.model_fields_set)
        decoding_defaults = {
            name: value
            for name, value in self.decoding_defaults.items()
            if name not in TOKEN_SELECTION_OPTIONS or not TOKEN_SELECTION_OPTIONS & explicit.keys()
        }
        return DecodeConfig(**{**decoding_defaults, **explicit})

    def complete(
        self,
        texts: Sequence[str],
        options: DecodeConfig | None,
        warn: Warn = python_warning,
        *,
        after_prompt: bool = False,
    ) -> list[str]:
        """Generate a continuation of each text.

        Args:
            after_prompt: begin with the space, if any, that separates the continuation from the prompt.
        """
        c = self.with_default_options(options)
        prompts = [self.limited_prompt(text, c, partial(warn, i)) for i, text in enumerate(texts)]
        sources = Sources([ids for ids, _ in prompts], c, [limit for _, limit in prompts])
        hypotheses = self.engine(c).decode(sources)
        results = []
        for (prompt, _), nbest in zip(prompts, hypotheses, strict=True):
            output = TextStream(self.tokenizer, c.stop, prompt[-1:] if after_prompt else ())
            results.append(output.add(nbest[0].ids) + output.end())
        return results

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
        max_len = self.config.max_len
        usual = max(min(DEFAULT_MAX_NEW_TOKENS, max_len // 2), (options.min_length or 0) + 1)
        return min(options.max_length or usual, max_len - 1)

    def stream(
        self, text: str, options: DecodeConfig | None = None, *, warn: Callable[[str], None] | None = None
    ) -> Iterator[str]:
        """Generate a continuation of a text and yield it in parts as tokens are generated.

        The concatenated parts equal the output of `complete`.

        Args:
            warn: called with a description of what was cut from a text that was too long. Default: a Python warning.
        """
        c = self.with_default_options(options)
        prompt, limit = self.limited_prompt(text, c, warn or partial(python_warning, 0))
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
        limit = min(max_new_tokens, self.config.max_len - len(prompt))
        if limit < (options.max_length or self.longest_trained_output):
            warn(f"the output has at most {limit} tokens: the model has {self.config.max_len} positions")
        return prompt, limit

    def begins_text(self, before: int | None, token: int) -> bool:
        """Whether a token begins a text within a sequence.

        Args:
            before: the token before it; None: none.
        """
        return False

    def negative_log_probs(self, sequences: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """For each sequence the negative log-probability of each token but the first, given those of its text, in
        nats, in fp32."""
        inputs: list[Sequence[int]] = []
        targets: list[Sequence[int]] = []
        for ids in sequences:
            starts = [i for i in range(1, len(ids) - 1) if self.begins_text(ids[i - 1], ids[i])]
            for start, end in pairwise([0, *starts, len(ids) - 1]):
                inputs.append(ids[start:end])
                targets.append(ids[start + 1 : end + 1])
        scores = iter(self.source.in_fp32.score(inputs, targets))
        results = []
        for ids in sequences:
            nll: list[float] = []
            while len(nll) < len(ids) - 1:
                nll += next(scores)
            results.append(-np.array(nll, np.float32))
        return results


class LanguageModel(DocumentTask, DecoderTask[Document]):
    """Causal language model: text completion.

    A plain text file is one stream of tokens, split into windows of the maximum length, each with a start token;
    training samples the window boundaries anew in each epoch. In JSONL {"text": …} every line is a separate text;
    several texts are packed into a window and do not attend to one another.
    """

    name = "causal-lm"
    pipeline_tag = "text-generation"
    pipelines = ("text-generation",)
    streams = True
    decoding_defaults: ClassVar = {"temperature": 0.8, "top_k": 40}

    def rows(self, examples: Sequence[Document]) -> list[Row]:
        t, size = self.tokenizer, self.config.max_len
        rows: list[Row] = []
        for is_whole, group in groupby(examples, key=lambda e: e.is_whole):
            stream: list[int] = []
            for ids in t.encode_batch([e.text for e in group]):
                stream += [t.bos_id, *ids, t.eos_id] if is_whole else ids
            if is_whole:
                # Each window begins with the last token of the previous one, so that every token is predicted once.
                rows += [(stream[i : i + size + 1],) for i in range(0, max(1, len(stream) - 1), size)]
            else:
                # Twice the window size: training samples a window of the row, `row_nlls` uses the first window.
                rows += [([t.bos_id, *stream[i : i + 2 * size]],) for i in range(0, len(stream), size)]
        return [row for row in rows if len(row[0]) > 1]

    def run(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> list[str]:
        """Generate a continuation of each line: its first line that is not empty."""

        def first_lines(nonblank: list[str], warn: Warn) -> list[str]:
            return [text.lstrip("\n").split("\n")[0] for text in self.complete(nonblank, options, warn)]

        return map_nonblank(lines, first_lines, warn)

    def records(
        self, lines: Sequence[str], options: DecodeConfig | None = None, *, warn: Warn = python_warning
    ) -> Sequence[Record]:
        """For each line its continuation, with all of its lines."""

        def continuations(nonblank: list[str], warn: Warn) -> list[str]:
            return list(self.complete(nonblank, options, warn))

        outputs = map_nonblank(lines, continuations, warn)
        return [{"input": line, "output": output} for line, output in zip(lines, outputs, strict=True)]

    def begins_text(self, before: int | None, token: int) -> bool:
        t = self.tokenizer
        return token == t.bos_id if t.bos_id != t.eos_id else before == t.eos_id

    def row_nlls(self, rows: Sequence[Row]) -> list[tuple[float, int]]:
        """Negative log-likelihood in nats, and number of tokens, of the first window of each row."""
        windows = [ids[: self.config.max_len + 1] for (ids,) in rows]
        return [(float(nll.sum()), len(nll)) for nll in self.negative_log_probs(windows)]

    def nll_sums(self, examples: Sequence[Document]) -> tuple[float, int, int]:
        """Negative log-likelihood in nats, number of tokens, and number of bytes of the texts."""
        losses = self.row_nlls(self.rows(examples))
        return sum(x for x, _ in losses), sum(n for _, n in losses), sum(len(e.text.encode()) for e in examples)

    def evaluate(
        self, examples: Sequence[Document], options: DecodeConfig | None = None
    ) -> tuple[list[str], list[Score]]:
        nll, n_tokens, n_bytes = self.nll_sums(examples)
        return [], [
            Score("loss", nll / n_tokens, "nats:token"),
            Score("perplexity", perplexity(nll, n_tokens)),
            Score("bits per byte", bits_per_byte(nll, n_bytes)),
        ]


class TextStream:
    """Text of tokens that are generated one after another, in parts. The parts together are the text up to a stop
    text.

    Args:
        stop: texts that end the output.
        before: tokens before, after which the text is shown: a space between both belongs to it.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], before: Sequence[int] = ()) -> None:
        self.tokenizer, self.stop, self.before = tokenizer, stop, list(before)
        self.n_before = len(tokenizer.decode(self.before)) if before else 0
        self.ids: list[int] = []
        self.emitted = ""
        self.is_stopped = False

    def add(self, tokens: Sequence[int]) -> str:
        """Add tokens. Returns the next part of the text, which may be empty."""
        self.ids += tokens
        text = self.tokenizer.decode_stable_prefix([*self.before, *self.ids])[self.n_before :]
        if truncate_at_stop(text, self.stop) != text:
            self.is_stopped = True
            return ""
        # Hold back characters that may be the beginning of a stop text.
        return self.emit(text[: max(0, len(text) - max([1, *map(len, self.stop)]) + 1)])

    def end(self) -> str:
        """The last part."""
        text = self.tokenizer.decode([*self.before, *self.ids])[self.n_before :]
        return self.emit(truncate_at_stop(text, self.stop))

    def emit(self, text: str) -> str:
        """What follows the text that was emitted before."""
        part = text[len(self.emitted) :]
        self.emitted += part
        return part


def truncate_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text up to the first occurrence of a stop text."""
    ends = [index for stop_text in stop if stop_text and (index := text.find(stop_text)) >= 0]
    return text[: min(ends)] if ends else text
