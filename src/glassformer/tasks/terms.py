"""Terms of a glossary in translations.

What a translation lacks is put in by the edit that the model finds most probable: the term replaces words that are
aligned to it in the source, or is inserted beside them. Constrained beam search, the general method, finds worse
translations with small models, because what follows a forced word is often bad.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.corpora.lines import chunks
from glassformer.corpora.protected import take_out
from glassformer.corpora.terms import Glossary, Required, Term, protect_pattern, unmet
from glassformer.decode_config import DecodeConfig
from glassformer.documents.inline import Detached
from glassformer.documents.words import UNSPACED, UNSPACED_SIGN, space_between, unit_spans
from glassformer.errors import ConfigError
from glassformer.generate.policy import length_penalty
from glassformer.generate.request import Decoding, Sources
from glassformer.generate.search import Hypothesis
from glassformer.runtime.graph import Floats
from glassformer.tasks.alignment import word_weights

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

MAX_WORDS = 16
"""Number of words of an output at which edits are tried if no word is known to be aligned to the term."""

EDITED_TOGETHER = 32
"""Number of outputs whose edits are compared at once."""

MAX_EDITS = 8
"""Number of edits of a translation."""

OPENING, CLOSING = "([{¿¡«“„‘\"'（「『", ".,;:!?…)]}»”’\"'。、，！？；：）」』"
"""Punctuation before and after a word."""

MAX_LETTERS = 4
"""Number of letters of a script without spaces that are replaced by a term."""

MIN_WEIGHT = 0.85
"""A word with at least this part of its weights on a term is a translation of the term."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A glossary and the pattern of protected spans."""

    glossary: Glossary | None
    protect: re.Pattern[str] | None

    def take_out(self, text: str) -> Detached | None:
        """The text without protected spans; None if it has none."""
        return take_out(text, self.protect) if self.protect else None

    def required(self, text: str) -> list[Required]:
        """The terms in a text."""
        return list(self.glossary.find(text)) if self.glossary else []


def terms_of(options: DecodeConfig, languages: Sequence[str] = ()) -> Terms | None:
    """The terms of the options; None if there are none. A glossary is read again when its file has changed.

    Args:
        languages: source and target language, if they are known.

    Raises:
        ConfigError: an unsuitable regular expression, or a term whose translation is banned.
        CorpusError: the glossary cannot be read.
    """
    if options.glossary is None and not options.protect:
        return None
    path = options.glossary
    glossary = read_glossary(path, modified_at(path), tuple(languages)) if path else None
    if glossary and options.ban:
        glossary = without_banned(glossary, options.ban)
    return Terms(glossary, protect_pattern(options.protect))


def without_banned(glossary: Glossary, ban: Sequence[str]) -> Glossary:
    """The glossary without the translations that contain a banned text.

    Raises:
        ConfigError: a term has no other translation.
    """
    terms = []
    for term in glossary.terms:
        targets = tuple(form for form in term.targets if not any(text in form for text in ban))
        if not targets:
            raise ConfigError(
                f"the translation {'|'.join(term.targets)!r} of {'|'.join(term.sources)!r} in the glossary is banned.\n"
                "  Change --ban or the glossary."
            )
        terms.append(Term(term.sources, targets))
    return Glossary(terms)


@lru_cache(maxsize=8)
def read_glossary(path: Path, modified: float, languages: tuple[str, ...]) -> Glossary:
    """The glossary of a file."""
    return Glossary.read(path, languages)


def modified_at(path: Path) -> float:
    """Time of the last change of a file; 0 if there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A text, or a part of one that is too long."""

    text: int
    """Index of the text."""
    space: str
    """White space between the part before it and this part."""
    source: str
    ids: list[int]
    """Token ids, with the end-of-sentence token."""
    required: list[Required]
    """What the translation must contain."""


@dataclass(frozen=True, slots=True)
class Output:
    """A translation of a part."""

    text: str
    hypothesis: Hypothesis
    forced: tuple[str, ...] = ()
    """Forms of the terms that were put in."""
    is_truncated: bool = False
    """The text has no end: it has the maximum length. To put in a term, more of its last words are left out."""


def meet_requirements(
    task: "TextToTextTask[Any]",
    parts: Sequence[Part],
    outputs: list[list[Output]],
    options: DecodeConfig,
    prefix: str = "",
) -> Decoding[None]:
    """Replace the outputs that lack something that is required, as far as edits put it in.

    It yields no sources, but now and then, so that other decodings of the engine go on.

    Args:
        task: the text-to-text task.
        outputs: the nbest outputs of each part.
        prefix: text that the outputs of the first part of each text begin with, which stays.
    """
    positions = [(i, rank) for i, part in enumerate(parts) if part.required for rank in range(len(outputs[i]))]
    for group in chunks(positions, EDITED_TOGETHER):
        for _ in range(MAX_EDITS):
            if not edit_once(task, parts, outputs, group, options, prefix):
                break
            yield Sources([], options)


def edit_once(
    task: "TextToTextTask[Any]",
    parts: Sequence[Part],
    outputs: list[list[Output]],
    positions: Sequence[tuple[int, int]],
    options: DecodeConfig,
    prefix: str,
) -> bool:
    """Make the best edit for the first requirement that an output lacks. Returns whether there was any.

    Args:
        positions: part and rank of the outputs to edit.
    """
    lacking = [
        (i, rank, missing) for i, rank in positions if (missing := unmet(parts[i].required, outputs[i][rank].text))
    ]
    if not lacking:
        return False
    sources = [parts[i].source for i, _, _ in lacking]
    targets = [outputs[i][rank].text for i, rank, _ in lacking]
    weights_of_words = word_weights(task, sources, targets)
    edited: list[str] = []
    token_ids: list[list[int]] = []
    forced: list[tuple[str, ...]] = []
    owners: list[tuple[int, int]] = []
    for (i, rank, missing), weights in zip(lacking, weights_of_words, strict=True):
        own = prefix if not i or parts[i - 1].text != parts[i].text else ""
        for text, ids in edited_texts(task, parts[i], outputs[i][rank], missing, weights, own, options.ban):
            forced.append((*outputs[i][rank].forced, *missing[0].forms))
            edited.append(text)
            token_ids.append([*ids, task.tokenizer.eos_id])
            owners.append((i, rank))
    best: dict[tuple[int, int], Output] = {}
    used = {i: k for k, i in enumerate(dict.fromkeys(i for i, _ in owners))}
    sources_of = [used[i] for i, _ in owners]
    log_probs = task.log_probs([parts[i].ids for i in used], token_ids, sources_of, options.precision)
    for owner, text, ids, forms, of_tokens in zip(owners, edited, token_ids, forced, log_probs, strict=True):
        score = sum(of_tokens) / length_penalty(len(of_tokens), options.length_penalty)
        if owner not in best or score > best[owner].hypothesis.score:
            best[owner] = Output(text, Hypothesis(ids, of_tokens, score), forms)
    for (i, rank), output in best.items():
        outputs[i][rank] = replace(output, is_truncated=outputs[i][rank].is_truncated)
    return bool(best)


def edited_texts(
    task: "TextToTextTask[Any]",
    part: Part,
    output: Output,
    missing: Sequence[Required],
    weights: Floats,
    prefix: str,
    ban: Sequence[str],
) -> list[tuple[str, list[int]]]:
    """The texts of an output, and their token ids, with an edit that meets the first requirement which it lacks.

    The edits are made at the word that is aligned to the term; if none fits there, at the MAX_WORDS words that are as
    far from the beginning as the term in the source.

    Args:
        missing: what the output lacks.
        weights: weight of each source word for each word of the output; none for words beyond the maximum length.
        prefix: text that the output begins with, which stays.
        ban: texts that must not occur.
    """
    spans, term = unit_spans(part.source), missing[0]
    words = [word for word, (a, b) in enumerate(spans) if a < term.end and term.start < b]
    begin, rest = output.text[: len(prefix)], output.text[len(prefix) :]
    begin += " " if begin and (rest[:1].isspace() or (not rest and not UNSPACED_SIGN.match(begin[-1]))) else ""
    limit = task.config.max_len - 1

    def fitting(at_words: Iterable[int], is_translation: bool) -> list[tuple[str, list[int]]]:
        positions = sorted({max(0, word - len(unit_spans(begin))) for word in at_words})
        results = (edits(rest, term, word, is_translation, begins_text=not begin) for word in positions)
        texts = list(dict.fromkeys(begin + text for text in chain.from_iterable(results)))
        found = []
        for text, ids in zip(texts, task.tokenizer.targets.encode_batch(texts), strict=True):
            if len(ids) > limit and output.is_truncated:
                ids = ids[:limit]
                text = task.tokenizer.decode(ids)
            is_banned = any(banned in text for banned in ban)
            if len(unmet(part.required, text)) < len(missing) and len(ids) <= limit and not is_banned:
                found.append((text, ids))
        return found

    if len(weights):
        to_term = weights[:, words].sum(1)
        word = int(to_term.argmax())
        if found := fitting([word], bool(to_term[word] >= MIN_WEIGHT * weights[word].sum())):
            return found
    n_words = len(unit_spans(output.text))
    middle = n_words * (words[0] if words else 0) // max(1, len(spans))
    first = max(0, min(middle - MAX_WORDS // 2, n_words - MAX_WORDS))
    return fitting(range(first, min(first + MAX_WORDS, max(1, n_words))), False)


def edits(
    text: str, required: Required, word: int, is_translation: bool = False, *, begins_text: bool = True
) -> Iterator[str]:
    """The text with a form that meets the requirement in place of no, one or two words, or in a script without spaces
    of up to MAX_LETTERS letters.

    Args:
        word: index of the word (`unit_spans`) at or beside which the edit is made.
        is_translation: the word is a translation of the term, which the form replaces.
        begins_text: nothing is before the text, so that its first word may begin with an upper-case letter.
    """
    text = text.strip()
    bounds = unit_spans(text)
    words = [text[a:b] for a, b in bounds]
    spans = [(word, word + 1), (word, word + 2), (word - 1, word + 1)]
    if any(map(UNSPACED.search, words[word : word + 1])):
        lengths = range(1, MAX_LETTERS + 1)
        spans = [(word - k, word - k + length) for length in lengths for k in range(length)]
    for start, end in spans if is_translation else [(word, word), (word + 1, word + 1), *spans]:
        if not 0 <= start <= end <= len(words):
            continue
        first, last = (words[start], words[end - 1]) if end > start else ("", "")
        before = text[: bounds[start][0]] if start < len(words) else text
        after = text[bounds[end - 1][1] :] if end > start else text[len(before) :]
        opening, closing = first[: len(first) - len(first.lstrip(OPENING))], last[len(last.rstrip(CLOSING)) :]
        for form in required.forms if start == 0 and begins_text else required.targets:
            new = f"{opening}{form}{closing}"
            if end == start:
                new = f"{space_between(before, new)}{new}{space_between(new, after)}"
            yield before + new + after
