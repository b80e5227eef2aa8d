"""`glassformer similar`"""

import json as json_module
from pathlib import Path

from glassformer.cli.options import Count


def similar(model: Path, word: str, /, *, n: Count = 10, json: bool = False) -> None:
    """List the words whose embeddings are nearest to the embedding of a word, with cosine similarities.

    Of a subword vocabulary, only tokens that begin a word are listed.

    Example:  glassformer train text.txt --task skip-gram --out vectors && glassformer similar vectors king

    Args:
        model: Model folder of a skip-gram model, or of any model with an embedding table.
        word: Word to compare with.
        n: Number of words to list.
        json: Print one JSON object for each word.
    """
    from glassformer.tasks.embeddings import nearest_tokens
    from glassformer.tasks.registry import load

    for token, cosine in nearest_tokens(load(model, device="cpu"), word, n):
        print(json_module.dumps({"token": token, "cosine": cosine}) if json else f"{cosine:.4f}  {token}")
