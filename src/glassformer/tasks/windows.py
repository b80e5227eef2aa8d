"""Overlapping windows of texts that are longer than the maximum length."""

from collections.abc import Iterator


def windows(n: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Windows [start, end) of at most `size` that cover n positions. Consecutive windows overlap by `overlap`."""
    start = 0
    while True:
        yield start, min(n, start + size)
        if start + size >= n:
            return
        start += size - overlap
