"""Where tags and placeholders of a source belong in its translation.

A model that was trained with codes (train --inline-codes) is asked: a code is put where it makes the translation most
probable, given the source with the code; each code, or pair of tags, without the others. Of tags, the word alignment
has a say as well. For other models, it alone decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from glassformer.corpora.lines import chunks
from glassformer.decode_config import Precision
from glassformer.documents.codes import ALONE, CLOSE, OPEN
from glassformer.documents.inline import Detached, Position, aligned_positions, put_at, tag_pairs
from glassformer.documents.words import unit_spans
from glassformer.tasks.translated import Translation
from glassformer.tokens.codes import code_ids, encode_with_codes

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

AGREEMENT = 6.0
"""What a link of the word alignment counts that a pair of tags agrees with, in nats: both its words are between the
tags, or none. Chosen on the dev set of benchmarks.inline_codes: tags are right more often than by either alone."""

SENTENCES_TOGETHER = 64
"""Number of sentences whose codes are considered at once, for the memory that it takes."""

WINDOW = 12
"""Number of units on each side of the position that the alignment says, at which a code is tried."""


@dataclass(slots=True)
class Code:
    """A code, or a pair of tags, whose position is sought."""

    detached: Detached
    """The sentence with this code only."""
    output: str
    indices: tuple[int, ...]
    """Which of the spans of the whole sentence it is."""
    positions: list[Position]
    """Where it is so far."""
    source: str
    """The sentence with the code."""
    links: Sequence[tuple[int, int]]
    """The word alignment."""
    tried: dict[str, tuple[float, list[Position]]] = field(default_factory=dict)
    """Score of each text that was tried, and the positions in it."""

    def text(self, positions: Sequence[Position]) -> str:
        """The translation with the code."""
        return put_at(self.detached, self.output, positions)

    def best(self, others: Sequence["Code"] = ()) -> list[Position]:
        """The best positions that were tried: of a pair of tags, those that are beside, within or around other pairs as
        in the source. If there are none, the positions so far.
        """
        fitting = [(score, positions) for score, positions in self.tried.values() if self.fits(positions, others)]
        return max(fitting, key=lambda found: found[0])[1] if fitting else self.positions

    def fits(self, positions: Sequence[Position], others: Sequence["Code"]) -> bool:
        """Whether tags at some positions are nested with other pairs as in the source."""
        if len(positions) == 1:
            return True
        own = positions[0][0], positions[1][0]
        for other in others:
            if len(other.indices) == 1:
                continue
            ends, in_source = (other.positions[0][0], other.positions[1][0]), relation(self.indices, other.indices)
            if own != ends and relation(own, ends) != in_source:
                return False
            if own == ends and in_source == "beside":
                return False
        return True

    def agreement(self, positions: Sequence[Position]) -> int:
        """Number of links of the alignment that agree with a pair of tags at some positions; 0 for a code alone."""
        if len(positions) == 1:
            return 0
        begin, end = (span.unit for span in self.detached.inner)
        first, last = positions[0][0], positions[1][0]
        return sum((begin <= s < end) == (first <= t < last) for s, t in self.links)

    def candidates(self, round_: int) -> list[list[Position]]:
        """Positions to try next."""
        n = len(unit_spans(self.output))
        if len(self.indices) == 1:
            ((position, _),) = self.positions
            near = range(max(0, position - WINDOW), min(n, position + WINDOW) + 1)
            return [[(at, closes)] for at in near for closes in (False, True) if at or not closes]
        (first, _), (last, _) = self.positions
        if round_ == 0:
            near = range(max(-first, -WINDOW), min(n - last, WINDOW) + 1)
            return [[(first + move, False), (last + move, True)] for move in near]
        if round_ == 1:
            return [[(first, False), (at, True)] for at in range(first + 1, min(n, last + WINDOW) + 1)]
        return [[(at, False), (last, True)] for at in range(max(0, first - WINDOW), last)]


def relation(first: Sequence[int], second: Sequence[int]) -> str:
    """How two spans lie, each from a begin to an end: beside each other, within the other, around it, or crossed."""
    if first[1] <= second[0] or second[1] <= first[0]:
        return "beside"
    if second[0] <= first[0] and first[1] <= second[1]:
        return "within"
    return "around" if first[0] <= second[0] and second[1] <= first[1] else "crossed"


N_ROUNDS = 3
"""A pair of tags is moved as a whole, then its end, then its beginning."""


def code_positions(
    task: "TextToTextTask[Any]",
    sentences: Sequence[Detached],
    translations: Sequence[Translation],
    alignments: Sequence[Sequence[tuple[int, int]]],
    precision: Precision,
) -> list[list[Position]]:
    """Where the spans of sentences belong in their translations.

    Args:
        precision: arithmetic of the model.
    """
    results = [
        aligned_positions(sentence, translation.text, alignment)
        for sentence, translation, alignment in zip(sentences, translations, alignments, strict=True)
    ]
    if not any(results) or not code_ids(task.tokenizer):
        return results
    for group in chunks(iter(range(len(sentences))), SENTENCES_TOGETHER):
        codes: dict[int, list[Code]] = {}
        for i in group:
            if not translations[i].is_untranslated:
                source, output = in_known_case(task, translations[i], sentences[i].core)
                sentence = replace(sentences[i], core=source)
                codes[i] = list(codes_of(sentence, output, results[i], alignments[i]))
        for round_ in range(N_ROUNDS):
            several = chain.from_iterable(codes.values())
            move(task, [code for code in several if round_ == 0 or len(code.indices) > 1], round_, precision)
        for i, of_sentence in codes.items():
            for k, code in enumerate(of_sentence):
                code.positions = code.best(of_sentence[:k])
                for index, position in zip(code.indices, code.positions, strict=True):
                    results[i][index] = position
    return results


def in_known_case(task: "TextToTextTask[Any]", translation: Translation, source: str) -> tuple[str, str]:
    """A source and its translation for word alignment: in the case that the model knows, if it was given this."""
    texts = source, "" if translation.is_untranslated else translation.text
    return (task.recased(texts[0]), task.recased(texts[1], 1)) if translation.recased else texts


def codes_of(
    sentence: Detached, output: str, positions: Sequence[Position], links: Sequence[tuple[int, int]]
) -> Iterator[Code]:
    """The codes of a sentence whose translation has words, each with the position that it has so far."""
    n_source, n_target = len(unit_spans(sentence.core)), len(unit_spans(output))
    if not n_source or not n_target:
        return
    diagonal = [(i, i) for i in range(n_source)]
    own = aligned_positions(sentence, sentence.core, diagonal)
    partner = dict(tag_pairs([span.text for span in sentence.inner]))
    ends = set(partner.values())
    for i in range(len(sentence.inner)):
        indices = (i, partner[i]) if i in partner else (i,)
        if i in ends:
            continue
        marks = (OPEN, CLOSE) if len(indices) > 1 else (ALONE,)
        inner = tuple(replace(sentence.inner[k], text=mark) for k, mark in zip(indices, marks, strict=True))
        alone = Detached("", sentence.core, "", inner)
        if len(indices) > 1 and own[indices[0]][0] >= own[indices[1]][0]:
            continue  # no words between them
        begin = [positions[k] for k in indices]
        if len(indices) > 1 and begin[0][0] >= begin[1][0]:
            first = min(begin[0][0], n_target - 1)
            begin = [(first, False), (first + 1, True)]
        yield Code(alone, output, indices, begin, put_at(alone, sentence.core, [own[k] for k in indices]), links)


def move(task: "TextToTextTask[Any]", codes: Sequence[Code], round_: int, precision: Precision) -> None:
    """Move codes to the best of the positions that a round tries."""
    eos, limit = task.tokenizer.eos_id, task.config.max_len - 1
    tried = [{code.text(positions): positions for positions in code.candidates(round_)} for code in codes]
    new = [(k, text) for k, texts in enumerate(tried) for text in texts if text not in codes[k].tried]
    sources = encode_with_codes(task.tokenizer, [code.source for code in codes])
    targets = encode_with_codes(task.tokenizer.targets, [text for _, text in new])
    fits = [max(len(target), len(sources[k])) < limit for (k, _), target in zip(new, targets, strict=True)]
    used = [(k, text, [*ids, eos]) for (k, text), ids, fit in zip(new, targets, fits, strict=True) if fit]
    log_probs = task.log_probs(
        [[*ids[: limit - 1], eos] for ids in sources], [ids for *_, ids in used], [k for k, *_ in used], precision
    )
    for (k, text, _), of_tokens in zip(used, log_probs, strict=True):
        positions = tried[k][text]
        codes[k].tried[text] = sum(of_tokens) + AGREEMENT * codes[k].agreement(positions), positions
    for code in codes:
        code.positions = code.best()
