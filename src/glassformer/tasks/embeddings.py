"""Nearest neighbors in an embedding table."""

import numpy as np

from glassformer.errors import UserError
from glassformer.generate.scores import best_of
from glassformer.tasks.base import AnyTask
from glassformer.tasks.skip_gram import EMBEDDING
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.tokens.wordpiece import CONTINUATION


def nearest_tokens(task: AnyTask, word: str, n: int = 10) -> list[tuple[str, float]]:
    """The n tokens with the highest cosine similarity to a word, best first.

    The embedding of a word of several tokens is their mean. Special tokens and tokens inside a word are left out.

    Raises:
        UserError: the word is not in the vocabulary, or the model has no embedding table.
    """
    if EMBEDDING not in task.source.weights:
        raise UserError("this model has no embedding table.")
    table = task.source.array(EMBEDDING)
    tokenizer = task.tokenizer.for_words()
    ids = tokenizer.encode(word)[len(tokenizer.first_ids) :]
    unknown = task.tokenizer.unk_id
    if not ids or (unknown is not None and unknown in ids):
        raise UserError(f"{word!r}: not in the vocabulary of the model.")
    mean = table[ids].mean(0)
    norms = np.maximum(np.linalg.norm(table, axis=1), 1e-12)
    cosines = table @ mean / norms / max(float(np.linalg.norm(mean)), 1e-12)
    is_candidate = np.zeros(len(table), bool)
    is_candidate[word_initial_ids(task.tokenizer)] = True
    is_candidate[ids] = False
    cosines[~is_candidate] = -np.inf
    return [(task.tokenizer.token(i), float(cosines[i])) for i in best_of(cosines, min(n, int(is_candidate.sum())))]


def word_initial_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids of the tokens that can begin a word; all tokens but special ones if the vocabulary marks no word starts."""
    added = tokenizer.backend.get_added_tokens_decoder()
    tokens = {i: tokenizer.backend.id_to_token(i) or "" for i in range(tokenizer.vocab_size) if i not in added}
    if any(token.startswith(CONTINUATION) for token in tokens.values()):
        return [i for i, token in tokens.items() if not token.startswith(CONTINUATION)]
    return [i for i in tokens if tokenizer.starts_word(i)] or list(tokens)
