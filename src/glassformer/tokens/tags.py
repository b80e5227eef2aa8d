"""Special tokens before a source text: the domain of the text, or that a model has written it.

Sources: Kobus et al. 2017 for domains; Caswell et al. 2019 for translations by a model.
"""

import re

from glassformer.tokens.tokenizer import Tokenizer

TOKEN = re.compile(r"<tag:(.+)>")


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
