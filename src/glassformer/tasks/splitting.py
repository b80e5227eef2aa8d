"""Splitting of texts that are longer than the maximum length of a model."""

import re
from collections.abc import Callable, Iterator

from glassformer.tokens.tokenizer import Tokenizer

# End of a sentence: closing punctuation, optional closing quotes or brackets, then space; or full-width punctuation,
# unless the sentence goes on with the Japanese particle of a quotation.
SENTENCE_END = re.compile(
    r"(?<=[.!?…।॥؟۔])[\"'”’»)\]]*\s+|(?<=[。！？])[」』”’）〉》】]*(?![。！？」』”’）〉》】]|と|って)"
)

CLAUSE_ENDS = (",", ";", ":", "，", "、", "；", "：", "،", "؛")
"""After which a sentence is cut that is too long and has no spaces."""


def split(text: str, tokenizer: Tokenizer, limit: int, warn: Callable[[str], None]) -> list[tuple[str, list[int]]]:
    """Split a text into parts of at most `limit` tokens, at sentence ends, or at word ends within longer sentences.

    Returns the white space between sentences before each part, and its token ids.
    """
    ids = tokenizer.encode(text)
    if len(ids) <= limit:
        return [("", ids)]
    n = len(tokenizer.first_ids)  # each part begins with them
    limit -= n
    inner = tokenizer.for_words()  # with the space before a sentence, if the vocabulary has it in its tokens
    parts: list[tuple[str, list[int]]] = []
    cut_inside = False
    for space, sentence in split_text(SENTENCE_END, text):
        first, *rest = split_ids(tokenizer.encode(sentence)[n:], tokenizer, limit)
        following = first if inner is tokenizer or rest else inner.encode(sentence)[n:]
        if parts and len(parts[-1][1]) + len(following) <= limit:
            parts[-1][1].extend(following)
        else:
            parts.append((space if parts else "", first))
        parts += [("", ids) for ids in rest]
        cut_inside |= bool(rest)
    where = "within a sentence that is too long" if cut_inside else "at sentence ends"
    warn(f"longer than the maximum length of {limit + n} tokens: translated in {len(parts)} parts, split {where}")
    return [(space, [*tokenizer.first_ids, *ids]) for space, ids in parts]


def split_ids(ids: list[int], tokenizer: Tokenizer, limit: int) -> Iterator[list[int]]:
    """Split token ids into parts of at most `limit`: in the second half of the part before a word start, after the end
    of a clause, or else not within a character.
    """
    while len(ids) > limit:
        ends = range(limit, limit // 2, -1)
        end = next((i for i in ends if tokenizer.starts_word(ids[i])), 0)
        end = end or next((i for i in ends if tokenizer.decode(ids[:i]).endswith(CLAUSE_ENDS)), 0)
        end = end or next((i for i in ends if not tokenizer.decode(ids[:i]).endswith("\ufffd")), limit)
        yield ids[:end]
        ids = ids[end:]
    yield ids


def split_text(separator: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Parts of a text that end with a match of `separator`, each with the white space before it."""
    end = 0
    for stop in [*(match.end() for match in separator.finditer(text)), len(text)]:
        if part := text[end:stop].strip():
            start = text.index(part, end)
            yield text[end:start], part
            end = start + len(part)
