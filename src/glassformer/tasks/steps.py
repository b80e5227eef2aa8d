"""The steps of a translation, in order: check the options, look into the memory, take out what stays, repair typing
errors, change capitals, split, decode, decode again what repeats itself, put in terms, join, use similar texts of the
memory, confidence, put back capitals and what stays, alignment.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.corpora.memory import Match, Memory
from glassformer.corpora.repetition import may_repeat, repeats
from glassformer.corpora.terms import unmet
from glassformer.decode_config import DecodeConfig, Precision
from glassformer.documents.inline import Detached, put_at
from glassformer.errors import ConfigError
from glassformer.generate.request import Decoding, Sources
from glassformer.generate.search import Hypothesis
from glassformer.tasks.alignment import align
from glassformer.tasks.base import AnyTask
from glassformer.tasks.casing import is_capitals, upper
from glassformer.tasks.code_positions import code_positions, in_known_case
from glassformer.tasks.confidence import word_features, words_in, words_of
from glassformer.tasks.joining import join
from glassformer.tasks.memories import memory_of
from glassformer.tasks.repair import from_similar, may_be_output, without_spans
from glassformer.tasks.reranking import by_risk
from glassformer.tasks.splitting import split
from glassformer.tasks.terms import Output, Part, Terms, meet_requirements
from glassformer.tasks.texts import Warn
from glassformer.tasks.translated import Translation
from glassformer.tokens.tags import tags_of

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

REPEATED_NGRAMS = (3, 2)
"""Size of the n-grams that occur once only in translations that are decoded again because they repeat themselves; the
second if the first is not sufficient."""


@dataclass(slots=True)
class Line:
    """A text to translate, and its translations so far."""

    original: str
    mark: str
    """What the text begins with that stays, such as the dash of a list."""
    text: str
    """The text without it and without the white space around it."""
    detached: Detached | None
    """The protected spans of the text; None if it has none."""
    is_kept: bool = False
    """The model is not given the text, which stays as it is or is in the memory."""
    match: Match | None = None
    """The equal text of the memory."""
    read_as: tuple[tuple[str, str], ...] = ()
    """See `Translation.read_as`."""
    model_text: str = ""
    """What the model is given, unless the text is kept: without protected spans, in the case that the model knows."""
    translations: list[Translation] = field(default_factory=list)

    @property
    def core(self) -> str:
        """The text without protected spans."""
        return self.detached.core if self.detached else self.text

    def change(self, changed: Callable[[Translation], Translation]) -> None:
        """Replace each translation."""
        self.translations = [changed(translation) for translation in self.translations]


def translated(
    task: "TextToTextTask[Any]",
    texts: Sequence[str],
    options: DecodeConfig,
    max_new_tokens: Callable[[int], int] | None,
    warn: Warn,
    terms: Terms | None,
) -> Decoding[list[list[Translation]]]:
    """The `nbest` translations of texts, as `TextToTextTask.translate` returns them."""
    check_options(task, options)
    tag, limit = tag_of(task, options), task.config.max_len
    memory = memory_of(task, options)
    lines = [line_of(task, text, options, terms, memory) for text in texts]
    parts = [
        part
        for index, line in enumerate(lines)
        if not line.is_kept
        for part in parts_of(task, index, line.model_text, tag, terms, partial(warn, index), task.n_sentences)
    ]
    decoded, repeated = yield from decode(task, parts, options, max_new_tokens)
    outputs = [[output_of(task, hypothesis) for hypothesis in nbest] for nbest in decoded]
    if any(part.required for part in parts):
        yield from meet_requirements(task, parts, outputs, options, options.prefix or "")
    join_parts(task, lines, parts, outputs, repeated, options.nbest)
    if memory:
        use_similar(task, lines, memory, options, terms, tag)
    for line in lines:
        if line.is_kept:
            line.change(partial(with_kept_text, line, terms))
        if options.confidence or options.min_confidence is not None:
            line.change(partial(with_confidence, task))
        if line.model_text != line.core:
            line.change(partial(with_case_of, line.core, task.language(1)))
    put_back_spans(task, lines, options.precision)
    for line in lines:
        line.change(partial(with_mark, line.mark))
        if options.min_confidence is not None:
            line.change(partial(or_source, line.original.strip(), options.min_confidence))
    if options.align:
        add_alignment(task, [line.translations for line in lines])
    for index, line in enumerate(lines):
        line.change(partial(with_space_of, line.original))
        best = line.translations[0]
        if line.read_as:
            line.change(partial(replace, read_as=line.read_as))
            read = ", ".join(f"{written!r} as {word!r}" for written, word in line.read_as)
            warn(index, f"words that the training text does not have were read as known ones: {read}")
        if best.missing:
            warn(index, f"not in the translation: {', '.join(best.missing)}")
        if best.is_untranslated:
            warn(index, f"not translated: confidence {best.confidence:.2f}")
        elif best.is_truncated and max_new_tokens is None and (options.max_length or limit) >= limit:
            warn(index, "the translation was cut off at the maximum length: its end is missing")
    return [line.translations for line in lines]


def check_options(task: "TextToTextTask[Any]", options: DecodeConfig) -> None:
    """Check that the task has the options, and the model what they need.

    Raises:
        ConfigError: it has not.
    """
    task.check_options(options)
    if options.shortlist and task.shortlist is None:
        raise ConfigError(
            "this model has no vocabulary shortlist.\n"
            "  Add it: glassformer shortlist FOLDER --src train.en --ref train.fr"
        )
    if options.shortlist and task.others:
        raise ConfigError("shortlist: cannot be used with an ensemble.\n  Leave out --shortlist or --ensemble.")
    if options.shortlist and not task.uses_shortlist(options.precision):
        raise ConfigError("shortlist: is used in int8 on a CPU only.\n  Add --precision int8.")
    if (options.confidence or options.min_confidence is not None) and task.confidence is None:
        raise ConfigError(
            "this model has no confidence.\n  Add it: glassformer calibrate FOLDER --src dev.en --ref dev.fr"
        )
    tag_of(task, options)


def tag_of(task: AnyTask, options: DecodeConfig) -> list[int]:
    """The token of the tag before each source, if there is one.

    Raises:
        ConfigError: the model does not have the tag.
    """
    if not options.tag:
        return []
    known = tags_of(task.tokenizer)
    if options.tag not in known:
        advice = f"Its tags: {', '.join(known)}; without one" if known else "It has none; without a tag"
        raise ConfigError(
            f"tag {options.tag!r}: the model was not trained with it (train --tags).\n"
            f"  {advice} it translates like the text that had none."
        )
    return [known[options.tag]]


def line_of(
    task: "TextToTextTask[Any]", original: str, options: DecodeConfig, terms: Terms | None, memory: Memory | None
) -> Line:
    """A text, without what stays as it is, and what the memory has of it."""
    stripped = original.strip()
    mark = "" if options.prefix else task.list_mark(stripped)
    text = stripped.removeprefix(mark)
    for begin, rest in dict.fromkeys((("", stripped), (mark, text))):
        if memory and (match := memory.exact(rest)) and may_be_output(match.target, options):
            return Line(original, begin, rest, None, is_kept=True, match=match, model_text=rest)
    line = Line(original, mark, text, terms.take_out(text) if terms else None)
    line.is_kept = not (options.prefix or task.is_translated(line.core, terms))
    if line.is_kept:
        line.detached = None  # its protected spans stay where they are
    else:
        core, line.read_as = repaired(task, line.core, options, terms)
        if line.detached:
            line.detached = replace(line.detached, core=core)
        else:
            line.text = core
    stays = line.is_kept or options.prefix or options.ban  # their case does not change
    line.model_text = line.core if stays else with_terms_of(line.core, task.recased(line.core), terms)
    return line


def repaired(
    task: "TextToTextTask[Any]", text: str, options: DecodeConfig, terms: Terms | None
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A text without its typing errors; and the words that had one, each with the word that replaced it."""
    readings = [] if options.keep_spelling else task.readings(text, terms)
    for reading in readings:
        text = reading.in_text(text)
    return text, tuple((reading.written, reading.word) for reading in readings[::-1])


def with_kept_text(line: Line, terms: Terms | None, translation: Translation) -> Translation:
    """The translation of a text that the model is not given."""
    if not line.match:
        return replace(translation, text=line.core)
    lacking = unmet(terms.required(line.text), line.match.target) if terms else ()
    missing = tuple("|".join(term.targets) for term in lacking)
    return replace(translation, text=line.match.target, missing=missing, match=line.match)


def use_similar(
    task: "TextToTextTask[Any]",
    lines: Sequence[Line],
    memory: Memory,
    options: DecodeConfig,
    terms: Terms | None,
    tag: Sequence[int],
) -> None:
    """Replace the best translation of each line by that of a similar text of the memory, if it is better."""
    found = [
        (line, match)
        for line in lines
        if not line.is_kept and line.model_text == line.core and (match := memory.similar(line.text, options.min_match))
    ]
    given = [(line.core, line.translations[0], without_spans(match, terms)) for line, match in found]
    for (line, match), translation in zip(found, from_similar(task, given, options, terms, tag), strict=True):
        used = translation.match is not None and translation.match.used
        line.translations[0] = replace(translation, match=replace(match, used=used))  # with its protected spans


def with_terms_of(text: str, recased: str, terms: Terms | None) -> str:
    """A text in another case, in which the terms of the text are found as well: one that is not keeps its case."""
    if terms is None or recased == text:
        return recased
    found = {(term.start, term.end) for term in terms.required(recased)}
    for term in terms.required(text):
        if (term.start, term.end) not in found:
            recased = recased[: term.start] + text[term.start : term.end] + recased[term.end :]
    return recased


def parts_of(
    task: "TextToTextTask[Any]",
    index: int,
    text: str,
    tag: Sequence[int],
    terms: Terms | None,
    warn: Callable[[str], None],
    n_sentences: int = 0,
) -> Iterator[Part]:
    """The parts of a text, of at most the maximum length; none for a blank text.

    Args:
        tag: tokens before each part.
        n_sentences: maximum number of sentences of a part. 0: any number.
    """
    if not text.strip():
        return
    several = split(text, task.tokenizer, task.config.max_len - 1 - len(tag), warn, n_sentences)
    for space, ids in several:
        source = text if len(several) == 1 else task.tokenizer.decode(ids)
        yield Part(index, space, source, [*tag, *ids, task.tokenizer.eos_id], terms.required(source) if terms else [])


def decode(
    task: "TextToTextTask[Any]",
    parts: Sequence[Part],
    options: DecodeConfig,
    max_new_tokens: Callable[[int], int] | None,
) -> Decoding[tuple[list[list[Hypothesis]], set[int]]]:
    """The best hypotheses of each part, and the texts of which some repeated themselves and were decoded again."""
    prefix = task.tokenizer.targets.encode(options.prefix) if options.prefix else []
    if len(prefix) >= (limit := task.config.max_len - 1):
        raise ConfigError(
            f"--prefix: {len(prefix):,} tokens, and a translation of this model has at most {limit:,}.\n"
            "  Give a shorter one."
        )
    limits = [max_new_tokens(len(part.ids)) for part in parts] if max_new_tokens else []
    # A sample depends on the position of its text, not on other texts: not on how many parts they have or which of them
    # are decoded again.
    numbers = Counter[int]()
    indices_of_parts = []
    for part in parts:
        indices_of_parts.append(part.text + (numbers[part.text] << 32))
        numbers[part.text] += 1

    def best(
        indices: Sequence[int], options: DecodeConfig, limits: Sequence[int] = ()
    ) -> Decoding[list[list[Hypothesis]]]:
        searched = options.model_copy(update={"nbest": options.beam}) if options.rerank else options
        # With a prefix begins only the first part of each text.
        begins = [not prefix or not i or parts[i - 1].text != parts[i].text for i in indices]
        found: dict[int, list[Hypothesis]] = {}
        for is_first in dict.fromkeys(begins):
            group = [i for i, begin in zip(indices, begins, strict=True) if begin == is_first]
            ids = [parts[i].ids for i in group]
            own = [limits[i] for i in group] if limits else []
            own_indices = [indices_of_parts[i] for i in group]
            results = yield Sources(ids, searched, own, prefix=prefix if is_first else [], indices=own_indices)
            found |= zip(group, results, strict=True)
        if options.rerank:
            found = {i: by_risk(list(map(task.text_of, nbest)), nbest)[: options.nbest] for i, nbest in found.items()}
        return [found[i] for i in indices]

    decoded = yield from best(range(len(parts)), options, limits)
    repeated: set[int] = set()
    for n in REPEATED_NGRAMS if options.no_repeat_ngram_size is None and max_new_tokens is None else ():
        repeating = [
            i
            for i, (part, nbest) in enumerate(zip(parts, decoded, strict=True))
            if any(repeats(task.text_of(hypothesis)) for hypothesis in nbest) and not may_repeat(part.source)
        ]
        if not repeating:
            break
        repeated |= {parts[i].text for i in repeating}
        other = options.model_copy(update={"no_repeat_ngram_size": n})
        again = yield from best(repeating, other)
        for i, nbest in zip(repeating, again, strict=True):
            decoded[i] = nbest
    return decoded, repeated


def output_of(task: "TextToTextTask[Any]", hypothesis: Hypothesis) -> Output:
    """The output of a hypothesis."""
    is_truncated = hypothesis.ids[-1:] != [task.tokenizer.eos_id]
    return Output(task.text_of(hypothesis), hypothesis, is_truncated=is_truncated)


def join_parts(
    task: "TextToTextTask[Any]",
    lines: Sequence[Line],
    parts: Sequence[Part],
    outputs: Sequence[list[Output]],
    repeated: set[int],
    nbest: int,
) -> None:
    """Make the translations of each line of the outputs of its parts."""
    of_line: list[list[tuple[Part, list[Output]]]] = [[] for _ in lines]
    for part, nbest_of_part in zip(parts, outputs, strict=True):
        of_line[part.text].append((part, nbest_of_part))
    for index, line in enumerate(lines):
        line.translations = [join(task, line.text, rank, of_line[index], index in repeated) for rank in range(nbest)]


def with_confidence(task: "TextToTextTask[Any]", translation: Translation) -> Translation:
    """The translation with the probability of each word that it is right: of terms 1; of words of a similar text of the
    memory how similar the text is, as the model did not choose them either."""
    assert task.confidence is not None
    words, owners = words_of(translation.ids, task.tokenizer)
    forced = words_in(translation.forced, words)
    match = translation.match if translation.match and translation.match.used else None
    of_memory = np.isin(words, match.target.split()) if match else np.zeros(len(words), bool)
    p = task.confidence.probabilities(word_features(words, translation.log_probs, owners, forced | of_memory))
    if match:
        p[of_memory] = match.similarity
    p[forced] = 1.0
    return replace(translation, words=tuple(zip(words, p.tolist(), strict=True)))


def with_case_of(text: str, language: str, translation: Translation) -> Translation:
    """The translation of a text whose capitals were changed for the model: in capitals if the text is."""
    output = upper(translation.text, language) if is_capitals(text) else translation.text
    return replace(translation, text=output, recased=True)


def put_back_spans(task: "TextToTextTask[Any]", lines: Sequence[Line], precision: Precision) -> None:
    """Put the protected spans of texts into their translations."""
    texts = [(line.detached, line, k) for line in lines if line.detached for k in range(len(line.translations))]
    inner = [(detached, line.translations[k]) for detached, line, k in texts if detached.inner]
    pairs = [in_known_case(task, translation, detached.core) for detached, translation in inner]
    alignments = align(task, *zip(*pairs, strict=True)) if pairs else []
    sentences, translations = [detached for detached, _ in inner], [translation for _, translation in inner]
    found = iter(code_positions(task, sentences, translations, alignments, precision))
    for detached, line, k in texts:
        text = put_at(detached, line.translations[k].text, next(found) if detached.inner else ())
        line.translations[k] = replace(line.translations[k], text=text)


def with_mark(mark: str, translation: Translation) -> Translation:
    """The translation with what the text begins with that stays."""
    return replace(translation, source=mark + translation.source, text=mark + translation.text)


def or_source(source: str, min_confidence: float, translation: Translation) -> Translation:
    """The translation, or the source in place of one that is less confident."""
    if (translation.confidence or 0) < min_confidence:
        return replace(translation, text=source, is_untranslated=True)
    return translation


def add_alignment(task: "TextToTextTask[Any]", results: Sequence[list[Translation]]) -> None:
    """Add the word alignment to translations: of their units (`unit_spans`), which words with spaces are."""
    positions = [(nbest, k) for nbest in results for k in range(len(nbest))]
    translations = [nbest[k] for nbest, k in positions]
    texts = [in_known_case(task, t, t.source) for t in translations]
    sources, targets = [source for source, _ in texts], [target for _, target in texts]
    alignments = align(task, sources, targets)
    for (nbest, k), pairs in zip(positions, alignments, strict=True):
        nbest[k] = replace(nbest[k], alignment=tuple(pairs))


def with_space_of(text: str, translation: Translation) -> Translation:
    """The translation of a text with the white space around the text; for a blank text, the text."""
    core = text.strip()
    return replace(translation, source=text, text=translation.text.join(text.split(core, 1)) if core else text)
