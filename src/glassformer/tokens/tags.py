"""Special tokens in a source text. Before it: the domain of the text, or that a model has written it. After it: that
the translation of a similar text follows.

Sources: Kobus et al. 2017 for domains; Caswell et al. 2019 for translations by a model; Bulté and Tezcan 2019 for
translations of similar texts.
"""

import re
from collections.abc import Sequence

from glassformer.tokens.tokenizer import Tokenizer

TOKEN = re.compile(r"<tag:(.+)>")

MATCH = "<match>"
"""What the translation of a similar text follows."""


def tag_token(tag: str) -> str:
    """The special token of a tag."""
    return f"<tag:{tag}>"


def tags_of(tokenizer: Tokenizer) -> dict[str, int]:
    """The tags of a vocabulary, and the ids of their tokens."""
    found = {}
    for token_id, token in tokenizer.backend.get_added_tokens_decoder().items():
        if match := TOKEN.fullmatch(token.content):
            found[match[1]] = token_id
    return found


def match_id(tokenizer: Tokenizer) -> int | None:
    """The id of `MATCH`; None if the vocabulary does not have it."""
    found = tokenizer.backend.get_added_tokens_decoder().items()
    return next((token_id for token_id, token in found if token.content == MATCH), None)


def with_match(ids: Sequence[int], translation: Sequence[int], match: int, limit: int) -> list[int]:
    """A source text with the translation of a similar text, of which the end is cut off if both are too long.

    Args:
        ids: the source.
        match: the id of `MATCH`.
        limit: maximum number of tokens.
    """
    return [*ids, match, *translation][: max(limit, len(ids))]


def without_match(ids: Sequence[int], match: int | None) -> Sequence[int]:
    """The source text of `with_match`; one without a translation of a similar text as it is."""
    return ids[: list(ids).index(match)] if match is not None and match in ids else ids
