"""Initialization of embeddings from another model."""

import torch

from glassformer.errors import UserError
from glassformer.tasks.base import AnyTask


def init_embeddings(task: AnyTask, vectors: AnyTask) -> int:
    """Copy the embeddings of another model for all tokens that both vocabularies have. Returns their number, without
    special tokens.

    The vectors are scaled to the standard deviation of the model's own embeddings.

    Raises:
        UserError: the vectors have another dimension than the embeddings.
    """
    ours, theirs = task.model.embedding.weight, vectors.model.embedding.weight
    if ours.size(1) != theirs.size(1):
        raise UserError(
            f"the vectors have {theirs.size(1)} dimensions, the model has d_model = {ours.size(1)}.\n"
            f"  Use --d-model {theirs.size(1)}, or train vectors with --d-model {ours.size(1)}."
        )
    rows = {vectors.tokenizer.token(i).strip(): i for i in range(vectors.tokenizer.vocab_size)}
    special = task.tokenizer.backend.get_added_tokens_decoder()
    n_shared = 0
    with torch.no_grad():
        scaled = (theirs / theirs.std()).to(ours.device) * ours.std()
        for i in range(task.tokenizer.vocab_size):
            token = task.tokenizer.token(i).strip()
            if token in rows and i != task.tokenizer.pad_id:
                ours[i] = scaled[rows[token]]
                n_shared += i not in special
    return n_shared
