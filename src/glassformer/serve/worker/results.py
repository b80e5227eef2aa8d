"""Results of the model process as the server gets them."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glassformer.decode_config import DecodeConfig
from glassformer.documents.words import unit_spans
from glassformer.errors import UserError
from glassformer.pipelines.base import TRUNCATION_ADVICE, Pipeline
from glassformer.serve.messages import (
    Call,
    Called,
    Complete,
    Completed,
    Embed,
    Embedded,
    Inspect,
    Inspected,
    Translated,
    Usage,
)  # fmt: skip
from glassformer.tasks.base import AnyTask
from glassformer.tasks.causal_lm import DecoderTask, truncate_at_stop
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.summarization import Summarizer
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation
from glassformer.tokens.tokenizer import Tokenizer


def translated(lines: Sequence[Sequence[Translation]], ends: Sequence[str]) -> Translated:
    """The translation of a text from those of its lines, best first.

    Args:
        ends: the line ends between the lines.
    """
    n_best = max(len(nbest) for nbest in lines)
    texts = []
    for rank in range(n_best):
        parts = [nbest[min(rank, len(nbest) - 1)].text for nbest in lines]
        texts.append("".join(part + end for part, end in zip(parts, [*ends, ""], strict=True)))
    best = [nbest[0] for nbest in lines]
    untranslated = any(t.is_untranslated for t in best)
    alignment = words = confidence = None
    if all(t.alignment is not None for t in best):
        alignment, n_source, n_target = [], 0, 0
        for t in best:
            alignment += [(n_source + s, n_target + k) for s, k in t.alignment or ()]
            n_source, n_target = n_source + len(unit_spans(t.source)), n_target + len(unit_spans(t.text))
    if all(t.words is not None for t in best):
        words = [pair for t in best for pair in t.words or ()]
        confidence = sum(p for _, p in words) / len(words) if words else 1.0
    return Translated(
        text=texts[0], others=texts[1:], read_as=[pair for t in best for pair in t.read_as],
        missing=[term for t in best for term in t.missing],
        untranslated=untranslated, truncated=any(t.is_truncated and not t.is_untranslated for t in best),
        alignment=alignment,
        words=None if untranslated else words,  # they are those of the translation
        confidence=confidence,
        match=asdict(best[0].match) if len(best) == 1 and best[0].match else None,
    )  # fmt: skip


def continued(translations: list[Translation]) -> Translated:
    """Translations that continue a prefix."""
    found = [translated([[translation]], []) for translation in translations]
    texts = [translation.text for translation in found]
    return Translated(text=texts[0] if texts else "", others=texts[1:], continuations=found)


class ContextLengthError(UserError):
    """A prompt is too long for the model."""


def whole_prompt(task: DecoderTask[Any], text: str, options: DecodeConfig) -> tuple[list[int], int]:
    """Token ids of the prompt for a text, and the maximum number of new tokens, which a long prompt reduces.

    Raises:
        ContextLengthError: the prompt would have to be cut.
    """
    n_tokens, max_len = len(task.prompt(text)), task.config.max_len
    if not isinstance(task, Summarizer) and 0 < max_len - n_tokens < task.max_new_tokens(options):
        options = options.model_copy(update={"max_length": max_len - n_tokens})
    prompt, limit = task.limited_prompt(text, options, no_op)
    if len(prompt) < n_tokens:
        most = len(prompt) if isinstance(task, Summarizer) else max_len - 1
        raise ContextLengthError(f"the text has {n_tokens} tokens; the model reads at most {most}")
    return prompt, limit


def completed(tokenizer: Tokenizer, request: Complete, output: Translated) -> Completed:
    """The output of a text-to-text model within the limits of a request."""
    text, is_cut = output.text, output.truncated
    ids = tokenizer.targets.encode(text)
    if request.max_tokens is not None and len(ids) > request.max_tokens:
        text, is_cut = tokenizer.decode_stable_prefix(ids[: request.max_tokens]), True
    if (stopped := truncate_at_stop(text, request.stop)) != text:
        text, is_cut = stopped, False
    usage = Usage(
        prompt_tokens=len(tokenizer.encode(request.text)), completion_tokens=len(tokenizer.targets.encode(text))
    )
    return Completed(text=text, finish_reason="length" if is_cut else "stop", usage=usage)


def inspected(task: AnyTask, request: Inspect) -> Inspected:
    """The page of the inspection of a text."""
    from glassformer.inspection.inspect import inspect
    from glassformer.inspection.page import inspection_page, policy_of

    page = inspection_page(inspect(task, request.text, tag=request.tag).to_dict())
    return Inspected(page=page, policy=policy_of("inspection"))


def called(pipeline: Pipeline[Any], request: Call) -> Called:
    """The output of a pipeline."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        output = plain(pipeline(request.inputs, **request.parameters))
    notes = [str(each.message).removesuffix(TRUNCATION_ADVICE) for each in caught if each.category is UserWarning]
    return Called(output=output, notes=list(dict.fromkeys(notes)))


def embedded(task: SentenceEmbedder, request: Embed) -> Embedded:
    """Embeddings of texts."""
    notes: list[str] = []
    vectors = task(request.texts, lambda i, what: notes.append(f"text {i + 1}: {what}"))
    n_tokens = sum(len(ids) for ids in task.tokenizer.encode_batch(request.texts))
    return Embedded(vectors=vectors.tolist(), n_tokens=n_tokens, notes=notes)


def plain(value: Any) -> Any:
    """A result of a pipeline in types of JSON."""
    if hasattr(value, "tolist"):  # an array or a tensor
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
