"""Texts longer than a model reads, in stretches that overlap."""

from collections.abc import Iterator


def windows(n: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Stretches [start, end) of at most `size` that cover n places, each sharing `overlap` with the one before."""
    start = 0
    while True:
        yield start, min(n, start + size)
        if start + size >= n:
            return
        start += size - overlap
