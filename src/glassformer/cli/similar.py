"""`glassformer similar`"""

import json as json_module
from pathlib import Path

from glassformer.cli.options import Int


def similar(model: Path, word: str, /, *, n: Int = 10, json: bool = False) -> None:
    """The units of a model's vocabulary whose vectors stand nearest to a word's.

    Example:  glassformer train text.txt --task skip-gram --out vectors && glassformer similar vectors king

    Args:
        model: folder of word vectors, or of any model with an embedding table.
        word: the word.
        n: how many.
        json: one JSON object a line.
    """
    from glassformer.tasks.embeddings import nearest_tokens
    from glassformer.tasks.registry import load

    for unit, cosine in nearest_tokens(load(model, device="cpu"), word, n):
        print(json_module.dumps({"unit": unit, "cosine": cosine}) if json else f"{cosine:.4f}  {unit}")
