"""Sequences of different lengths in one array."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

Row = tuple[Sequence[Any], ...]
"""An example: the numbers of each field, integers or in a field of type FLOATS floats."""


class Ragged(NamedTuple):
    """Sequences of numbers, one after another."""

    values: NDArray[Any]
    """The values of all sequences."""
    lengths: NDArray[np.int64]
    """Number of values of each sequence."""

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Ragged":
        """The sequences of a list."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        return cls(np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum())), lengths)

    def lists(self) -> list[list[Any]]:
        """The sequences as a list."""
        values, stops = self.values.tolist(), np.cumsum(self.lengths).tolist()
        return [values[stop - length : stop] for stop, length in zip(stops, self.lengths.tolist(), strict=True)]

    def indices(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of each value in a row of positions in which sequence i begins at `starts[i]`."""
        return np.repeat(starts - np.cumsum(self.lengths) + self.lengths, self.lengths) + np.arange(len(self.values))


class Rows(Sequence[Row]):
    """Examples as a sequence of rows, of which each field is also at hand as a whole."""

    def __init__(self, fields: Sequence[Ragged]) -> None:
        self.fields = fields

    def __len__(self) -> int:
        return len(self.fields[0].lengths)

    def __iter__(self) -> Iterator[Row]:
        return zip(*(field.lists() for field in self.fields), strict=True)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return list(self)[index]


def fields_of(rows: Sequence[Row]) -> Sequence[Ragged]:
    """The fields of rows of token ids."""
    return rows.fields if isinstance(rows, Rows) else [Ragged.of(column) for column in zip(*rows, strict=True)]
