"""Sentence pairs as ids in memory-mapped files, so that a corpus may exceed memory."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[int]


class IdsFile:
    """Sequences of ids: `NAME.ids` holds them end to end, `NAME.ends` where each one ends."""

    def __init__(self, path: Path) -> None:
        dtype = np.dtype("<u4") if path.with_suffix(".u4").exists() else np.dtype("<u2")
        self.ends: NDArray[np.int64] = mapped(path.with_suffix(".ends"), np.dtype("<i8"))
        self.ids = mapped(path.with_suffix(".ids"), dtype)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> list[int]:
        return self.ids[self.ends[index - 1] if index else 0 : self.ends[index]].tolist()

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)


def mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A file as an array; an empty file cannot be mapped."""
    return np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.empty(0, dtype)


class PairDataset:
    """Source and target ids, pair by pair, neither side with special tokens."""

    def __init__(self, folder: Path) -> None:
        self.src, self.tgt = IdsFile(folder / "src"), IdsFile(folder / "tgt")

    def __len__(self) -> int:
        return len(self.src)

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[tuple[Ids, Ids]], vocab_size: int) -> "PairDataset":
        """Write pairs into a folder as they come."""
        folder.mkdir(parents=True, exist_ok=True)
        dtype = np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")
        ends = [0, 0]
        with (
            open(folder / "src.ids", "wb") as src_ids,
            open(folder / "tgt.ids", "wb") as tgt_ids,
            open(folder / "src.ends", "wb") as src_ends,
            open(folder / "tgt.ends", "wb") as tgt_ends,
        ):
            for pair in pairs:
                for side, (ids, ids_file, ends_file) in enumerate(
                    zip(pair, (src_ids, tgt_ids), (src_ends, tgt_ends), strict=True)
                ):
                    ends[side] += len(ids)
                    ids_file.write(np.asarray(ids, dtype=dtype).tobytes())
                    ends_file.write(np.int64(ends[side]).astype("<i8").tobytes())
            for file in (src_ids, tgt_ids, src_ends, tgt_ends):
                file.flush()
                os.fsync(file.fileno())
        for side_name in ("src", "tgt"):
            marker = folder / f"{side_name}.u4"
            marker.touch() if dtype.itemsize == 4 else marker.unlink(missing_ok=True)
        return cls(folder)
