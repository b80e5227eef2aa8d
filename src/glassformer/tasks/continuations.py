"""Translations that begin with a given text: alternatives for a person who writes a translation with the machine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from glassformer.corpora.terms import matches
from glassformer.decode_config import DecodeConfig
from glassformer.documents.inline import Detached, detach, put_back
from glassformer.documents.words import UNSPACED_SIGN, unit_spans
from glassformer.errors import ConfigError
from glassformer.generate.request import Decoding, Sources
from glassformer.tasks.alignment import align
from glassformer.tasks.casing import is_capitals, upper
from glassformer.tasks.code_positions import in_known_case
from glassformer.tasks.joining import join
from glassformer.tasks.steps import (
    add_alignment,
    output_of,
    parts_of,
    repaired,
    tag_of,
    with_confidence,
    with_terms_of,
)
from glassformer.tasks.terms import Terms, meet_requirements
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation

MAX_BEAM = 64
"""Largest beam size."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A text whose translation has begun, without its protected spans."""

    source: str
    """The text without protected spans."""
    prefix: str
    """The beginning of the translation without protected spans."""
    written: str
    """The beginning with them."""
    detached: Detached | None
    """The protected spans that are not in the beginning; None if there are none."""

    @classmethod
    def of(cls, text: str, prefix: str, terms: Terms | None) -> "Begun":
        """Take the protected spans out of a text and of the beginning of its translation."""
        if terms is None or terms.protect is None or terms.take_out(text) is None:
            return cls(text, prefix, prefix, None)
        written = Counter(prefix[a:b] for a, b in matches(terms.protect, prefix))
        done = []
        for a, b in matches(terms.protect, text):
            if written[text[a:b]]:
                written[text[a:b]] -= 1
                done.append((a, b))
        text = detach(text, done, extends=False).core if done else text
        detached = terms.take_out(text)
        bare = terms.protect.sub("", prefix)
        return cls(detached.core if detached else text, " ".join(bare.split()), prefix, detached)

    @property
    def needs_alignment(self) -> bool:
        """Whether protected spans are to be placed by word alignment."""
        return bool(self.detached and self.detached.inner)

    def put_back(self, translation: str, alignment: Sequence[tuple[int, int]]) -> str:
        """The translation with the protected spans, those that are not in its beginning after it.

        Args:
            translation: it begins with `prefix`.
            alignment: pairs of a unit of `source` and a unit of the translation.
        """
        rest = translation[len(self.prefix) :]
        if self.detached:
            n = len(unit_spans(self.prefix))
            space = rest[: len(rest) - len(rest.lstrip())]
            rest = space + put_back(self.detached, rest, [(word, max(0, target - n)) for word, target in alignment])
        return self.written + rest


def begins_word(prefix: str, rest: str) -> bool:
    """Whether what follows a prefix does not change its last word, as a token without a space before it does; letters
    of scripts without spaces need none."""
    return rest[0].isspace() or bool(UNSPACED_SIGN.match(prefix[-1]) or UNSPACED_SIGN.match(rest))


def continuations(
    task: TextToTextTask[Any], text: str, prefix: str, n: int, options: DecodeConfig, terms: Terms | None = None
) -> Decoding[list[Translation]]:
    """Translations of a line that begin with a prefix and continue with different words, the most probable word
    first. A decoding, which an engine of the task computes.

    Args:
        task: the text-to-text task.
        n: maximum number of translations.
        terms: terms and protected spans.

    Raises:
        ConfigError: the line has to be translated in parts.
    """
    whole, mark = text, task.list_mark(text)
    is_mark = prefix.strip() in ("", mark.strip())
    if mark and (is_mark or prefix.startswith(mark)):
        text, prefix = text.removeprefix(mark), "" if is_mark else prefix.removeprefix(mark)
    else:
        mark = ""
    begun = Begun.of(text, prefix, terms)
    text, _ = repaired(task, begun.source, options, terms)
    prefix = begun.prefix
    model_text = with_terms_of(text, task.recased(text), terms)
    if model_text != text and is_capitals(text):
        prefix = task.recased(prefix, 1)
    parts = list(parts_of(task, 0, model_text, tag_of(task, options), terms, no_op))
    if not parts:
        return []
    if len(parts) > 1:
        raise ConfigError(
            f"the text is longer than the {task.config.max_len - 1} tokens that the model reads at once: there"
            " are no translations that begin with a given text.\n  Divide it."
        )
    (part,) = parts
    if not task.is_translated(text, terms):
        return [replace(join(task, whole, 0, []), text=whole)] if whole.startswith(begun.written) else []
    before = task.tokenizer.targets.encode(prefix) if prefix.strip() else []
    n_tokens = min(2 * n, MAX_BEAM)
    next_token = options.model_copy(update={"beam": n_tokens, "nbest": n_tokens})
    (hypotheses,) = yield Sources([part.ids], next_token, [1], prefix=before)
    found: dict[str, Translation] = {}
    for hypothesis in hypotheses:
        if len(found) == n or len(hypothesis.ids) <= len(before):
            continue
        ((best, *_),) = yield Sources([part.ids], options, prefix=hypothesis.ids)
        output = task.text_of(best)
        rest = output[len(prefix) :]
        if output.startswith(prefix) and rest.strip() and (not prefix.strip() or begins_word(prefix, rest)):
            start, end = unit_spans(rest)[0]
            word = rest[start:end]
            if word in found:
                continue
            outputs = [[output_of(task, best)]]
            if part.required:
                until = output[: len(prefix) + rest.index(word) + len(word)]
                yield from meet_requirements(task, [part], outputs, options, until)
            found[word] = join(task, text, 0, [(part, outputs[0])])
    results = [[translation] for translation in found.values()]
    if options.confidence:
        results = [[with_confidence(task, translation)] for (translation,) in results]
    for result in results:
        translation = replace(result[0], recased=model_text != text)
        if translation.recased and is_capitals(text):
            n = len(prefix)  # what is written stays
            rest = upper(translation.text[n:], task.language(1))
            translation = replace(translation, text=translation.text[:n] + rest)
        pair = in_known_case(task, translation, text)
        alignment = align(task, *([side] for side in pair))[0] if begun.needs_alignment else []
        result[0] = replace(translation, source=whole, text=mark + begun.put_back(translation.text, alignment))
    if options.align:
        add_alignment(task, results)
    return [translation for (translation,) in results]
