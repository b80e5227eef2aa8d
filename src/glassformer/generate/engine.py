"""Batched decoding. Sources are sorted by padded length; each result is independent of the batch it is decoded in."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.sample import sample
from glassformer.generate.search import Hypothesis, beam_search
from glassformer.models.base import PAD_TO_MULTIPLE_OF, Decodable


def padded_length(n_tokens: int, pad_to_multiple_of: int = PAD_TO_MULTIPLE_OF) -> int:
    """Length to which a source of `n_tokens` is padded."""
    return -(-n_tokens // pad_to_multiple_of) * pad_to_multiple_of


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, pad_to_multiple_of: int = PAD_TO_MULTIPLE_OF
) -> Iterator[list[int]]:
    """Batches of item indices: equal padded length, longest first, at most `batch_tokens` tokens or one item."""
    padded_lengths = [padded_length(length, pad_to_multiple_of) for length in lengths]
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-padded_lengths[i], i)):
        length = padded_lengths[i]
        if batch and (length != padded_lengths[batch[0]] or length * (len(batch) + 1) > batch_tokens):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def pad_sources(
    sources: Sequence[Sequence[int]], pad_id: int, device: torch.device, pad_to_multiple_of: int = PAD_TO_MULTIPLE_OF
) -> Int[Tensor, "sentences src"]:
    """Pad sources to the same length, a multiple of `pad_to_multiple_of`."""
    src = torch.full((len(sources), padded_length(max(map(len, sources)), pad_to_multiple_of)), pad_id)
    for row, ids in zip(src, sources, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    return src.to(device)


def decode(
    model: Decodable,
    sources: Sequence[Sequence[int]],
    options: DecodeConfig,
    *,
    max_new_tokens: Callable[[int], int] | None = None,
    pad_id: int,
    eos_id: int,
    max_len: int,
    banned_ids: Sequence[int] = (),
    device: torch.device,
    progress: Callable[[int], None] = lambda n: None,
) -> list[list[Hypothesis]]:
    """Decode the best hypotheses of each source, in the order of the sources.

    Args:
        model: the model.
        sources: token ids of each source, including the end-of-sentence token.
        options: decoding options.
        max_new_tokens: maximum number of generated tokens as a function of the source length; default: from `options`.
        pad_id: id of the padding token.
        eos_id: id of the end-of-sentence token.
        max_len: maximum target length of the model, in tokens.
        banned_ids: ids of tokens that are never generated, such as padding.
        device: device of the model.
        progress: called after each batch with its number of sentences.

    Raises:
        NonFiniteError: the outputs of the model are not finite.
    """
    max_new_tokens = max_new_tokens or (lambda n_tokens: options.max_length or n_tokens + 50)
    results: list[list[Hypothesis]] = [[] for _ in sources]
    for batch in batches_by_length([len(ids) for ids in sources], options.batch_tokens, model.pad_to_multiple_of):
        limits = [min(max_len, max_new_tokens(len(sources[i]))) for i in batch]
        src = pad_sources([sources[i] for i in batch], pad_id, device, model.pad_to_multiple_of)
        common: dict[str, Any] = {
            "eos_id": eos_id,
            "banned_ids": banned_ids,
            "no_repeat_ngram_size": options.no_repeat_ngram_size,
        }
        if options.do_sample:
            hypotheses = sample(
                model,
                src,
                limits,
                temperature=options.temperature or 1.0,
                top_k=options.top_k,
                top_p=options.top_p,
                seed=options.seed,
                indices=batch,
                **common,
            )
        else:
            hypotheses = beam_search(
                model, src, limits, beam=options.beam, alpha=options.length_penalty, nbest=options.nbest, **common
            )
        for i, best in zip(batch, hypotheses, strict=True):
            if not best:  # no token has a finite probability
                raise NonFiniteError(NON_FINITE)
            results[i] = best
        progress(len(batch))
    return results
