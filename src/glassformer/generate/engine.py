"""Batched decoding. Sources are sorted by padded length; each result is independent of the batch it is decoded in."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.data.batch import pad
from glassformer.errors import NON_FINITE, NonFiniteError
from glassformer.generate.processors import sampling_processors, search_processors
from glassformer.generate.sample import sample
from glassformer.generate.search import Hypothesis, beam_search
from glassformer.models.decoding import PAD_TO_MULTIPLE_OF, Decodable


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


def source_batches(
    model: Decodable, sources: Sequence[Sequence[int]], batch_tokens: int, pad_id: int, device: torch.device
) -> Iterator[tuple[list[int], Int[Tensor, "sentences src"]]]:
    """Batches of sources of equal padded length, longest first: the indices of the sources, and the padded batch."""
    for indices in batches_by_length([len(ids) for ids in sources], batch_tokens, model.pad_to_multiple_of):
        yield indices, pad([sources[i] for i in indices], pad_id, model.pad_to_multiple_of).to(device)


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
        max_new_tokens: maximum number of generated tokens as a function of the source length. Default:
            `options.max_length`, else the source length + 50.
        pad_id: id of the padding token.
        eos_id: id of the end-of-sentence token.
        max_len: maximum target length of the model, in tokens.
        banned_ids: ids of tokens that are never generated, such as padding.
        device: device of the model.
        progress: called after each batch with its number of sentences.

    Raises:
        NonFiniteError: the outputs of the model are not finite.
    """
    length_limit = max_new_tokens or (lambda n_tokens: options.max_length or n_tokens + 50)
    processors = search_processors(banned_ids, options.no_repeat_ngram_size)
    warpers = sampling_processors(options)
    results: list[list[Hypothesis]] = [[] for _ in sources]
    for batch, src in source_batches(model, sources, options.batch_tokens, pad_id, device):
        limits = [min(max_len, length_limit(len(sources[i]))) for i in batch]
        if options.do_sample:
            hypotheses = sample(
                model, src, limits, eos_id=eos_id, processors=processors, warpers=warpers, seed=options.seed,
                indices=batch,
            )  # fmt: skip
        else:
            hypotheses = beam_search(
                model, src, limits, eos_id=eos_id, processors=processors, beam=options.beam,
                alpha=options.length_penalty, nbest=options.nbest,
            )  # fmt: skip
        for i, best in zip(batch, hypotheses, strict=True):
            if not best:  # no token has a finite probability
                raise NonFiniteError(NON_FINITE)
            results[i] = best
        progress(len(batch))
    return results
