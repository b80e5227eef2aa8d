"""Batches of sources of similar length."""

from collections.abc import Iterator, Sequence

from glassformer.generate.protocol import PAD_TO_MULTIPLE_OF


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
