"""Which units of a model's embedding table stand near one another."""

from typing import Any

import torch
import torch.nn.functional as F

from glassformer.errors import UserError
from glassformer.tasks.base import Task


def nearest_tokens(task: Task, word: str, n: int = 10) -> list[tuple[str, float]]:
    """The n units nearest to a word, with the cosines; a word of several units stands for their mean.

    Raises:
        UserError: the model does not know the word, or has no embedding table.
    """
    table: Any = getattr(getattr(task.model, "embedding", None), "weight", None)
    if table is None:
        raise UserError("this model has no table of embeddings.")
    ids = task.tokenizer.encode(word)
    unknown = task.tokenizer.unk_id
    if not ids or (unknown is not None and unknown in ids):
        raise UserError(f"{word!r}: not a word that the model knows.")
    with torch.no_grad():
        cosines = F.normalize(table, dim=-1) @ F.normalize(table[ids].mean(0), dim=0)
        cosines[ids] = -torch.inf
        best = cosines.topk(min(n, len(cosines) - len(ids)))
    return [
        (task.tokenizer.token(i), value) for value, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]


def init_embeddings(task: Task, vectors: Task) -> int:
    """Give the embedding table of a task the vectors of another for the units that both have; how many these are.

    The vectors are scaled to the table's own spread: a model expects embeddings as large as its own.

    Raises:
        UserError: vectors of another width.
    """
    ours, theirs = task.model.embedding.weight, vectors.model.embedding.weight
    if ours.size(1) != theirs.size(1):
        raise UserError(
            f"the vectors have {theirs.size(1)} numbers each, the model d_model = {ours.size(1)}.\n"
            f"  Use --d-model {theirs.size(1)}, or train vectors with --d-model {ours.size(1)}."
        )
    rows = {vectors.tokenizer.token(i).strip(): i for i in range(vectors.tokenizer.vocab_size)}
    n_shared = 0
    with torch.no_grad():
        scaled = theirs / theirs.std() * ours.std()
        for i in range(task.tokenizer.vocab_size):
            unit = task.tokenizer.token(i).strip()
            if unit in rows and i != task.tokenizer.pad_id:
                ours[i] = scaled[rows[unit]]
                n_shared += 1
    return n_shared
