"""What a model says: translations, summaries, any text to text, and what follows a text."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from glassformer.config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.models.families import family_of
from glassformer.pipelines.base import Pipeline, warn_cut
from glassformer.pipelines.decoding import continuations
from glassformer.pipelines.generation_config import (
    TEXT_GENERATION_DEFAULTS,
    TEXT_TO_TEXT_DEFAULTS,
    GenerateOptions,
    native_decode_config,
    resolve_generation_config,
    seed_of,
    task_specific_params,
)
from glassformer.pipelines.source import Source
from glassformer.tasks.causal_lm import DecoderTask


class GenerationPipeline(Pipeline):
    """What pipelines share whose models say something.

    A folder of transformers says what it says there: same search, same order of arguments, model's files and usual
    values. A folder of ours says what `glassformer.load(folder)` says.
    """

    options_type = GenerateOptions
    default_arguments: ClassVar[Mapping[str, Any]]
    """Arguments unless the model's files or the caller say otherwise."""

    def prefix(self, options: GenerateOptions) -> str:
        """What stands before every text."""
        if options.prefix is not None:
            return options.prefix
        return str(task_specific_params(self.source, self.task).get("prefix") or self.source.config.get("prefix") or "")

    def generate_native(self, texts: Sequence[str], options: GenerateOptions) -> list[list[str]]:
        """What a task of ours says of each text, num_return_sequences times."""
        task, n = self.model, options.num_return_sequences or 1
        c = native_decode_config(options, task.options(None) if isinstance(task, DecoderTask) else DecodeConfig())
        if c.nbest > 1 and isinstance(task, DecoderTask):
            raise ConfigError(f"num_return_sequences = {n}: this model says several with do_sample=True alone.")
        copies = n if c.do_sample else 1
        several = [text for text in texts for _ in range(copies)]

        def warn(index: int, what: str) -> None:
            if not options.cuts:
                warnings.warn(f"{several[index]:.40}: {what}", UserWarning, stacklevel=2)

        if isinstance(task, DecoderTask):
            found = [[text] for text in task.complete(several, c, warn)]
        else:
            found = self.translated(several, c, warn)
        return [[text for said in found[i : i + copies] for text in said] for i in range(0, len(found), copies)]

    def translated(self, texts: Sequence[str], c: DecodeConfig, warn: Callable[[int, str], None]) -> list[list[str]]:
        """The nbest translations of each text, line by line, as the task's own call gives them."""
        lines = [(index, line) for index, text in enumerate(texts) for line in text.split("\n")]
        found: list[list[list[str]]] = [[] for _ in texts]
        of_lines = self.model.translate([line for _, line in lines], c, warn=lambda i, what: warn(lines[i][0], what))
        for (index, _), best in zip(lines, of_lines, strict=True):
            found[index].append([translation.text for translation in best])
        return [["\n".join(parts) for parts in zip(*several, strict=True)] for several in found]

    def generate_hf(
        self, prompts: Sequence[Sequence[int]], options: GenerateOptions, *, reads_prompt: bool
    ) -> list[list[list[int]]]:
        """What a model of transformers says of each text, as ids."""
        rules = resolve_generation_config(self.source, self.task, self.default_arguments, self.stopping(options))
        return continuations(
            self.model.model, prompts, rules, seed=seed_of(options) if rules.do_sample else 0,
            pad_id=self.tokenizer.pad_token_id, device=self.device, reads_prompt=reads_prompt,
            room=self.tokenizer.room + 1,  # a place for every token but the last
        )  # fmt: skip

    def stopping(self, options: GenerateOptions) -> GenerateOptions:
        """The arguments with stop_sequence as tokens."""
        if options.stop_sequence is None:
            return options
        ids = self.tokenizer.read(options.stop_sequence, special_tokens=False)[0].ids
        given = options.model_dump(exclude_unset=True)
        return type(options).resolve({**given, "eos_token_id": self.ends(ids)}, environment={})

    def ends(self, stop: list[int]) -> list[int]:
        """Of the tokens of stop_sequence those that stop."""
        return stop[:1]


class TextToText(GenerationPipeline):
    """{"generated_text"} of a text, by an encoder-decoder."""

    tasks: ClassVar[tuple[str, ...]] = ("translation", "multitask", "summarization")
    default_arguments = TEXT_TO_TEXT_DEFAULTS
    key: ClassVar[str] = "generated"

    def each(self, inputs: Any, options: Mapping[str, Any]) -> Any:
        found = super().each(inputs, options)
        if isinstance(inputs, list) and all(len(records) == 1 for records in found):
            return [records[0] for records in found]
        return found

    def run(self, inputs: list[Any], options: GenerateOptions) -> list[Any]:
        texts = [self.prefix(options) + self.text(given) for given in inputs]
        if self.source.is_ours:
            return [
                [{f"{self.key}_text": text} for text in several] for several in self.generate_native(texts, options)
            ]
        sources = [self.read(text, options) for text in texts]
        found = self.generate_hf(sources, options, reads_prompt=False)
        return [[self.record(ids, options) for ids in several] for several in found]

    def read(self, text: str, options: GenerateOptions) -> list[int]:
        """What the encoder reads."""
        limit, end = self.tokenizer.limit(cuts=options.cuts), self.tokenizer.eos_token_id
        ids = self.tokenizer.read(text)[0].ids
        ids = ids if ids and ids[-1] == end else [*ids, end]
        if len(ids) <= limit:
            return ids
        if not options.cuts:
            warn_cut(limit, "end")
        return [*ids[: limit - 1], end]

    def record(self, ids: list[int], options: GenerateOptions) -> dict[str, Any]:
        if options.return_tensors:
            start = options.decoder_start_token_id
            start = self.model.model.config.bos_id if start is None else start
            return {f"{self.key}_token_ids": torch.tensor([start, *ids])}
        clean = bool(options.clean_up_tokenization_spaces)
        return {f"{self.key}_text": self.tokenizer.decode(ids, skip_special_tokens=True, clean=clean)}


class Summarization(TextToText):
    """{"summary_text"} of a text."""

    key = "summary"

    @classmethod
    def supports(cls, source: Source) -> bool:
        if source.task.name == "translation":
            return family_of(source.task.model) == "t5" or source.config.get("model_type") == "pegasus"
        return super().supports(source)


class TranslateOptions(GenerateOptions):
    """Arguments of translation."""

    src_lang: str | None = None
    tgt_lang: str | None = None
    """Of no effect: the models that this version knows translate one way."""


class Translation(TextToText):
    """{"translation_text"} of a text."""

    tasks = ("translation", "multitask")
    options_type = TranslateOptions
    key = "translation"


class TextGenerationOptions(GenerateOptions):
    """Arguments of text-generation."""

    return_full_text: bool | None = None
    """Give the prompt too, before what follows; default: yes."""
    handle_long_generation: str | None = None
    """"hole": of a prompt that leaves no room for max_new_tokens the end alone is read."""
    skip_special_tokens: bool | None = None


class TextGeneration(GenerationPipeline):
    """{"generated_text"} of a prompt: it, and what a decoder makes follow."""

    tasks = ("causal-lm",)
    options_type = TextGenerationOptions
    default_arguments = TEXT_GENERATION_DEFAULTS

    def ends(self, stop: list[int]) -> list[int]:
        return stop

    def text(self, given: Any) -> str:
        if isinstance(given, (list, Mapping)):
            raise ConfigError(f"{self.task}: expected texts; chats are not for the models that this version knows.")
        return super().text(given)

    def run(self, inputs: list[Any], options: TextGenerationOptions) -> list[Any]:
        self.check(options)
        texts = [self.text(given) for given in inputs]
        whole = options.return_full_text is not False
        prefix = self.prefix(options)
        if self.source.is_ours:
            found = self.generate_native([prefix + text for text in texts], options)
            return [
                [{"generated_text": (text if whole else "") + said} for said in several]
                for text, several in zip(texts, found, strict=True)
            ]
        prompts = [self.read(prefix + text, options) for text in texts]
        several = self.generate_hf(prompts, options, reads_prompt=True)
        return [
            [self.record(text if whole else "", prompt, ids, options) for ids in sequences]
            for text, prompt, sequences in zip(texts, prompts, several, strict=True)
        ]

    def check(self, options: TextGenerationOptions) -> None:
        """Raise ConfigError for arguments that exclude one another."""
        if options.return_full_text is not None and (options.return_text or options.return_tensors):
            raise ConfigError("return_full_text excludes return_text and return_tensors.")
        if options.handle_long_generation not in (None, "hole"):
            raise ConfigError(f'handle_long_generation = {options.handle_long_generation!r}: None or "hole".')

    def read(self, text: str, options: TextGenerationOptions) -> list[int]:
        """Ids of a prompt; of nothing the token that begins."""
        limit = self.tokenizer.limit(cuts=options.cuts)
        ids = self.tokenizer.read(text)[0].ids or [self.model.tokenizer.bos_id]
        n_more = options.max_new_tokens or self.default_arguments["max_new_tokens"]
        if options.handle_long_generation:
            if n_more >= limit:
                raise ConfigError(f"max_new_tokens = {n_more}: the model holds {limit}, and the prompt is among them.")
            return ids[n_more - limit :]
        if len(ids) <= limit:
            return ids
        room = max(limit - n_more, limit // 2)
        if not options.cuts:
            warn_cut(room, "beginning")
        return ids[-room:]

    def record(self, text: str, prompt: list[int], ids: list[int], options: TextGenerationOptions) -> dict[str, Any]:
        """The text and what follows it, which is what the prompt with it makes longer."""
        if options.return_tensors:
            return {"generated_token_ids": [*prompt, *ids]}
        skip = options.skip_special_tokens is not False
        clean = options.clean_up_tokenization_spaces is not False
        decoded = [self.tokenizer.decode(i, skip_special_tokens=skip, clean=clean) for i in (prompt, [*prompt, *ids])]
        return {"generated_text": text + decoded[1][len(decoded[0]) :]}
