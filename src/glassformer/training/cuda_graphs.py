"""Training steps as CUDA graphs: a GPU runs their many kernels without waiting for Python."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from glassformer.data.batch import Batch

N_WARM_UPS = 1
"""Steps of a shape that run without a graph before one is captured: they compile and load kernels."""

MAX_GRAPHS = 32
"""Maximum number of graphs. Steps of other shapes run without."""

ALIGNMENT = 16
"""Tensors of a batch begin at a multiple of this number of bytes."""


class CudaGraphs:
    """Functions of batches as CUDA graphs, one for each function and frequent combination of shapes.

    The functions return nothing: they change tensors that stay where they are, such as weights. They must not wait for
    the GPU, and must not depend on numbers in a batch. On a CPU a function is called instead of a graph.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.n_seen: Counter[int] = Counter()
        """Number of calls by hash of the function and the shapes."""
        self.graphs: dict[Hashable, tuple[BatchesInPlace, Callable[[], None]]] = {}
        self.memory: Any = None
        """Memory pool that all graphs share: only one runs at a time."""

    def clear(self) -> None:
        """Delete all graphs."""
        self.graphs.clear()
        self.n_seen.clear()
        self.memory = None

    def __call__(self, function: Callable[..., None], *batches: Batch) -> None:
        """Call a function with batches that are still in CPU memory."""
        key = function, tuple((name, x.shape, x.dtype) for batch in batches for name, x in batch.tensors().items())
        if key not in self.graphs:
            self.n_seen[hash(key)] += 1
            if self.n_seen[hash(key)] <= N_WARM_UPS or len(self.graphs) == MAX_GRAPHS:
                function(*(batch.to(self.device) for batch in batches))
                return
            self.graphs[key] = self.capture(function, *batches)
        static, run = self.graphs[key]
        static.fill(batches)
        run()

    def capture(self, function: Callable[..., None], *batches: Batch) -> tuple["BatchesInPlace", Callable[[], None]]:
        """A graph of a function, and the batches in place that it reads."""
        static = BatchesInPlace(batches, self.device)
        if self.device.type != "cuda":
            return static, lambda: function(*static.batches)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self.memory, capture_error_mode="thread_local"):
            function(*static.batches)
        self.memory = graph.pool()
        return static, graph.replay


class BatchesInPlace:
    """Batches on a device whose tensors stay where they are, in one buffer: a single copy fills it."""

    def __init__(self, batches: Sequence[Batch], device: torch.device) -> None:
        """
        Args:
            batches: batches of the same shapes as those to come.
        """
        sizes = [value.nbytes for batch in batches for value in batch.tensors().values()]
        self.offsets = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]
        self.buffer = torch.empty(self.offsets[-1], dtype=torch.uint8, device=device)
        views = self.views(self.buffer, batches)
        self.batches: list[Batch] = []
        for batch in batches:
            own: dict[str, Any] = {name: next(views) for name in batch.tensors()}
            self.batches.append(replace(batch, **own))

    def views(self, buffer: Tensor, batches: Sequence[Batch]) -> Iterator[Tensor]:
        """The tensors of the batches in a buffer."""
        values = (value for batch in batches for value in batch.tensors().values())
        for value, offset in zip(values, self.offsets, strict=False):
            yield buffer[offset : offset + value.nbytes].view(value.dtype).view(value.shape)

    def fill(self, batches: Sequence[Batch]) -> None:
        """Copy batches in CPU memory to the device, without waiting for it."""
        staging = torch.empty(len(self.buffer), dtype=torch.uint8, pin_memory=self.buffer.is_cuda)
        values = (value for batch in batches for value in batch.tensors().values())
        for view, value in zip(self.views(staging, batches), values, strict=True):
            view.copy_(value)
        self.buffer.copy_(staging, non_blocking=True)
