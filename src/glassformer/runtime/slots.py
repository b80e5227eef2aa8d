"""Caches of keys and values whose slots are assigned to tokens one by one."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glassformer.kernels.program import Array, aligned, padded

Ints = NDArray[np.int32]
Indices = NDArray[np.intp]


class SlotCaches:
    """Keys and values in slots: one for each token and hypothesis, for all layers."""

    def __init__(self, widths: Sequence[int], dtype: type[np.floating] = np.float16) -> None:
        """
        Args:
            widths: number of features of the keys of each cache.
            dtype: half precision or fp32.
        """
        self.widths, self.dtype = widths, dtype
        self.capacity = 0
        self.arrays: list[tuple[Array, Array]] = []
        self.free: list[Ints] = []
        self.n_free = 0
        self.lock = threading.RLock()

    def take(self, n: int) -> Ints:
        """Take n slots."""
        taken: list[Ints] = []
        with self.lock:
            missing = n
            while missing > 0:
                if not self.free:
                    self.grow(missing)
                slots = self.free.pop()
                taken.append(slots[:missing])
                if len(slots) > missing:
                    self.free.append(slots[missing:])
                missing -= len(taken[-1])
            self.n_free -= n
        return taken[0] if len(taken) == 1 else np.concatenate([np.empty(0, np.int32), *taken])

    def release(self, slots: Sequence[Ints]) -> None:
        """Give slots back."""
        with self.lock:
            self.free += slots
            self.n_free += sum(map(len, slots))
            if self.n_free == self.capacity:
                self.free = [np.arange(self.capacity, dtype=np.int32)]  # one array again, in order

    def grow(self, n: int) -> None:
        """Add at least n slots."""
        capacity = max(1024, 2 * self.capacity, self.capacity + n)
        grown = []
        for i, width in enumerate(self.widths):
            pair = aligned((capacity, padded(width)), self.dtype), aligned((capacity, padded(width)), self.dtype)
            if self.capacity:
                for new, old in zip(pair, self.arrays[i], strict=True):
                    new[: self.capacity] = old
            grown.append(pair)
        self.arrays = grown
        self.free.append(np.arange(self.capacity, capacity, dtype=np.int32))
        self.n_free += capacity - self.capacity
        self.capacity = capacity
