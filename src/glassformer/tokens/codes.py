"""Special tokens for codes in a text, such as tags and placeholders: what they are does not matter, only where."""

import re
from collections.abc import Sequence
from itertools import chain

from glassformer.documents.codes import ALONE, CLOSE, OPEN
from glassformer.tokens.tokenizer import Tokenizer

CODE_TOKENS = ("<x>", "</x>", "<x/>")
"""The special tokens of an opening tag, a closing tag, and a code without a partner."""

CODE = re.compile(f"([{OPEN}{CLOSE}{ALONE}])")


def code_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """The ids of the tokens by these characters; empty if the vocabulary does not have them."""
    ids = {token.content: i for i, token in tokenizer.backend.get_added_tokens_decoder().items()}
    found = {character: ids.get(token) for character, token in zip((OPEN, CLOSE, ALONE), CODE_TOKENS, strict=True)}
    return {character: i for character, i in found.items() if i is not None}


def encode_with_codes(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of texts with codes, whose white space is not encoded."""
    ids = code_ids(tokenizer)
    if not ids or not any(map(CODE.search, texts)):
        return tokenizer.encode_batch(texts)
    parts = [CODE.split(text) if CODE.search(text) else [text] for text in texts]
    plain = [part.strip() if len(several) > 1 else part for several in parts for part in several[::2]]
    encoded = iter(tokenizer.encode_batch(plain))
    return [
        list(chain.from_iterable([ids[part]] if i % 2 else next(encoded) for i, part in enumerate(several)))
        for several in parts
    ]
