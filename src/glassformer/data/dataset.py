"""Tokenized examples in memory-mapped files, for corpora larger than memory."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.corpora.lines import chunks
from glassformer.data.ragged import Ragged, Row, Rows
from glassformer.errors import CheckpointError

IDS, INTS, FLOATS = "ids", "counts", "floats"
"""Field types: token ids (below the vocabulary size), other non-negative integers, floats."""

WRITTEN_TOGETHER = 4096
"""Number of examples in memory while a dataset is written."""
READ_TOGETHER = 1 << 16
"""Number of end offsets in memory while all of them are read."""


class FieldFile:
    """Memory-mapped sequences of one field: `NAME.DTYPE` has the concatenated values, `NAME.ends` their end offsets."""

    def __init__(self, folder: Path, name: str) -> None:
        dtype = next(dtype for dtype in ("u2", "u4", "f4") if (folder / f"{name}.{dtype}").exists())
        self.values = memory_map(folder / f"{name}.{dtype}", dtype)
        self.ends_path = folder / f"{name}.ends"
        self.ends: NDArray[np.int64] = memory_map(self.ends_path, "i8")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> list[Any]:
        return self.values[self.ends[index - 1] if index else 0 : self.ends[index]].tolist()

    def take(self, indices: NDArray[np.int64]) -> Ragged:
        """The sequences with these indices. Faster than one at a time."""
        ends = self.ends[indices]
        lengths = ends - np.where(indices > 0, self.ends[indices - 1], 0)
        return Ragged(self.values[np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())], lengths)

    @property
    def lengths(self) -> NDArray[np.int64]:
        lengths = np.empty(len(self), np.int64)
        for start, ends in self.blocks():
            lengths[start : start + len(ends) - 1] = np.diff(ends)
        return lengths

    def is_complete(self) -> bool:
        """Whether the end offsets ascend to the number of values."""
        last = 0
        for _, ends in self.blocks():
            if np.any(ends[1:] < ends[:-1]):
                return False
            last = int(ends[-1])
        return last == len(self.values)

    def blocks(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Blocks of end offsets, each after the end offset before it, with the index of its first sequence. They are
        read, since pages of a memory-mapped file count as memory of the process."""
        start, last = 0, np.zeros(1, np.int64)
        with open(self.ends_path, "rb") as file:
            while len(ends := np.fromfile(file, "<i8", READ_TOGETHER)):
                yield start, np.concatenate([last, ends])
                start, last = start + len(ends), ends[-1:]


def memory_map(path: Path, dtype: str) -> NDArray[Any]:
    """Memory-map a little-endian file as an array. Empty files cannot be mapped and give an empty array."""
    return np.asarray(np.memmap(path, dtype=f"<{dtype}", mode="r")) if path.stat().st_size else np.empty(0, f"<{dtype}")


class Dataset:
    """Memory-mapped examples, each a tuple of fields, without special tokens."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        try:
            self.fields = {name: FieldFile(folder, name) for name in names}
            is_complete = len({len(field) for field in self.fields.values()}) == 1 and all(
                field.is_complete() for field in self.fields.values()
            )
        except (StopIteration, ValueError, OSError):
            is_complete = False
        if not is_complete:
            raise CheckpointError(f"{folder}: damaged.\n  Delete this folder: training writes it again from the text.")

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def __getitem__(self, index: int) -> Row:
        return tuple(field[index] for field in self.fields.values())

    def rows(self, indices: NDArray[np.int64]) -> Rows:
        """The examples with these indices."""
        return Rows([field.take(indices) for field in self.fields.values()])

    @property
    def side_lengths(self) -> NDArray[np.int64]:
        """Length of each field of each example in tokens, plus one special token [examples, fields]."""
        return np.stack([field.lengths for field in self.fields.values()], axis=1) + 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each example in tokens: its longest field plus one special token."""
        longest, *others = (field.lengths for field in self.fields.values())
        for lengths in others:
            np.maximum(longest, lengths, out=longest)
        longest += 1
        return longest

    @classmethod
    def write(cls, folder: Path, rows: Iterable[Row], field_types: Mapping[str, str], vocab_size: int) -> "Dataset":
        """Write examples to a folder, WRITTEN_TOGETHER at a time, and open it.

        Args:
            folder: the folder; created if necessary.
            rows: the examples.
            field_types: type of each field by name: IDS, INTS or FLOATS.
            vocab_size: determines the number of bytes per id.

        Raises:
            TypeError: a row has another number of fields, or a field of integers has other values.
        """
        folder.mkdir(parents=True, exist_ok=True)
        dtype_of = {IDS: "u2" if vocab_size <= 1 << 16 else "u4", INTS: "u4", FLOATS: "f4"}
        dtypes = [dtype_of[field_type] for field_type in field_types.values()]
        for name in field_types:
            for dtype in ("u2", "u4", "f4"):
                (folder / f"{name}.{dtype}").unlink(missing_ok=True)
        with ExitStack() as stack:
            files = [
                [stack.enter_context(open(folder / f"{name}.{suffix}", "wb")) for suffix in (dtype, "ends")]
                for name, dtype in zip(field_types, dtypes, strict=True)
            ]
            ends = [0] * len(files)
            for chunk in chunks(rows, WRITTEN_TOGETHER):
                check_row(chunk[0], field_types)
                columns = zip(*chunk, strict=True)
                for i, (column, dtype, (values_file, ends_file)) in enumerate(zip(columns, dtypes, files, strict=True)):
                    column_ends = ends[i] + np.cumsum([len(values) for values in column], dtype="<i8")
                    n_values = int(column_ends[-1]) - ends[i]
                    values_file.write(np.fromiter(chain.from_iterable(column), f"<{dtype}", n_values).tobytes())
                    ends_file.write(column_ends.tobytes())
                    ends[i] += n_values
            for file in (file for pair in files for file in pair):
                file.flush()
                os.fsync(file.fileno())
        return cls(folder, field_types)


def check_row(row: Row, field_types: Mapping[str, str]) -> None:
    """Check that a row has values for the fields, integers in those of integers.

    Raises:
        TypeError: it has not.
    """
    if len(row) != len(field_types):
        raise TypeError(f"a row has {len(row)} fields, and not those of Objective.fields: {', '.join(field_types)}")
    for values, (name, field_type) in zip(row, field_types.items(), strict=True):
        if field_type != FLOATS and len(values) and np.asarray(values).dtype.kind not in "iub":
            raise TypeError(f"field {name} of Objective.fields has integers, but a row has {values[0]!r}")
