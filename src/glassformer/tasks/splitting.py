"""Division of texts into sentences, and of those that are longer than the maximum length of a model."""

import re
from collections.abc import Callable, Iterable, Iterator

from glassformer.documents.codes import ABBREVIATIONS
from glassformer.documents.words import continues_letter
from glassformer.tokens.tokenizer import Tokenizer

# End of a sentence: closing punctuation, optional closing quotes or brackets, then space; or full-width punctuation,
# unless the sentence goes on with the Japanese particle of a quotation.
SENTENCE_END = re.compile(
    r"(?<=[.!?…।॥؟۔])[\"'”’»)\]]*\s+|(?<=[。！？])[」』”’）〉》】]*(?![。！？」』”’）〉》】]|と|って)"
)

ABBREVIATED = re.compile(rf"(?<!(?!_)\w)(?:[^\W\d_]|\d{{1,2}}|{'|'.join(ABBREVIATIONS)})\.$")
"""Text before a point that probably ends no sentence: a letter, an ordinal, or a frequent abbreviation."""
MAX_ABBREVIATION = 10

MAX_TOKENS_OF_LETTER = 4
"""Maximum number of tokens of a character: those of its bytes in UTF-8."""

EQUAL_FRACTION = 0.8
"""Fraction of the pairs with several source sentences that have as many target sentences, from which on a text is
translated sentence by sentence, which is better even if the training has such pairs (benchmarks/NOTES.md)."""
USUAL_FRACTION = 0.98
"""Otherwise: fraction of the sources of the training that have no more sentences than are translated at once."""

CLAUSE_ENDS = (",", ";", ":", "，", "、", "；", "：", "،", "؛")
"""After which a sentence is cut that is too long and has no spaces."""


def sentences_at_once(pairs: Iterable[tuple[str, str]]) -> int:
    """The number of sentences of a text that a model trained on these pairs should be given at once."""
    numbers = sorted((n_sentences_of(source), n_sentences_of(target)) for source, target in pairs)
    several = [source == target for source, target in numbers if source > 1]
    if sum(several) >= EQUAL_FRACTION * len(several):
        return 1
    return numbers[int(USUAL_FRACTION * (len(numbers) - 1))][0] or 1


def n_sentences_of(text: str) -> int:
    """Number of sentences of a text."""
    return sum(1 for _ in split_text(SENTENCE_END, text, is_end))


def split(
    text: str, tokenizer: Tokenizer, limit: int, warn: Callable[[str], None], n_sentences: int = 0
) -> list[tuple[str, list[int]]]:
    """Split a text into parts of at most `limit` tokens, at sentence ends, or at word ends within longer sentences.

    Returns the white space between sentences before each part, and its token ids.

    Args:
        n_sentences: maximum number of sentences of a part. 0: any number.
    """
    ids = tokenizer.encode(text)
    is_too_long = len(ids) > limit
    if not is_too_long and (not n_sentences or n_sentences_of(text) <= n_sentences):
        return [("", ids)]
    n = len(tokenizer.first_ids)  # each part begins with them
    limit -= n

    def encoded(text: str) -> list[int]:
        return tokenizer.encode(text)[n:]

    inner = tokenizer.for_words()  # with the space before a sentence, if the vocabulary has it in its tokens
    parts: list[tuple[str, list[int]]] = []
    begin: int | None = None  # of the last part in the text, if it is that of a sentence
    end, cut_inside, n_joined = 0, False, 0
    for space, sentence in sentences(text, lambda sentence: len(encoded(sentence)) <= limit):
        start, end = end + len(space), end + len(space) + len(sentence)
        first, *rest = split_ids(encoded(sentence), tokenizer, limit)
        joined = [*parts[-1][1], *inner.encode(sentence)[n:]] if parts else []
        if begin is not None:
            joined = encoded(text[begin:end])
        if parts and not rest and len(joined) <= limit and n_joined != n_sentences:
            parts[-1] = parts[-1][0], joined
            n_joined += 1
            continue
        parts += [(space if parts else "", first), *(("", ids) for ids in rest)]
        begin, n_joined = None if rest else start, 1
        cut_inside |= bool(rest)
    if is_too_long:
        where = "within a sentence that is too long" if cut_inside else "at sentence ends"
        warn(f"longer than the maximum length of {limit + n} tokens: translated in {len(parts)} parts, split {where}")
    return [(space, [*tokenizer.first_ids, *ids]) for space, ids in parts]


def split_ids(ids: list[int], tokenizer: Tokenizer, limit: int) -> Iterator[list[int]]:
    """Split token ids into parts of at most `limit`: in the second half of the part before a word start, after the end
    of a clause, or else not within a letter.
    """
    while len(ids) > limit:
        ends = range(limit, limit // 2, -1)
        end = next((i for i in ends if tokenizer.starts_word(ids[i])), 0)
        end = end or next((i for i in ends if tokenizer.decode(ids[:i]).endswith(CLAUSE_ENDS)), 0)
        end = end or next((i for i in ends if is_between_letters(ids, i, tokenizer)), limit)
        yield ids[:end]
        ids = ids[end:]
    yield ids


def is_between_letters(ids: list[int], position: int, tokenizer: Tokenizer) -> bool:
    """Whether a position in token ids is not within a letter, nor between it and its marks."""
    before, after = tokenizer.decode(ids[:position]), tokenizer.decode(ids[position : position + MAX_TOKENS_OF_LETTER])
    return not before.endswith("\ufffd") and not continues_letter(before[-1:] + after[:1], 1)


def sentences(text: str, fits: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The sentences of a text, each with the white space before it. One that does not fit also ends after what is
    probably an abbreviation.
    """
    for space, sentence in split_text(SENTENCE_END, text, is_end):
        inner = [("", sentence)] if fits(sentence) else split_text(SENTENCE_END, sentence)
        yield from ((within if i else space, part) for i, (within, part) in enumerate(inner))


def is_end(match: re.Match[str]) -> bool:
    """Whether a sentence ends there, and not an abbreviation."""
    text, start = match.string, match.start()
    if text[start - 1] != ".":
        return True
    following = text[match.end() : match.end() + 1]
    is_abbreviation = ABBREVIATED.search(text[max(0, start - MAX_ABBREVIATION) : start])
    return not (following.islower() or following.isdecimal() or is_abbreviation)


def split_text(
    separator: re.Pattern[str], text: str, is_end: Callable[[re.Match[str]], bool] = lambda match: True
) -> Iterator[tuple[str, str]]:
    """Parts of a text that end with a match of `separator`, each with the white space before it."""
    end = 0
    for stop in [*(match.end() for match in separator.finditer(text) if is_end(match)), len(text)]:
        if part := text[end:stop].strip():
            start = text.index(part, end)
            yield text[end:start], part
            end = start + len(part)
