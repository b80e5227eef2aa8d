"""Sources of tests."""

from torch import Tensor


def unpadded(src: Tensor, pad_id: int) -> list[list[int]]:
    """The rows of a batch without padding."""
    return [row[row != pad_id].tolist() for row in src]
