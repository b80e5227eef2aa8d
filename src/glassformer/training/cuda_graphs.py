"""Training steps as CUDA graphs: a GPU runs their many kernels without waiting for Python."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch

from glassformer.data.batch import Batch

N_WARM_UPS = 1
"""Steps of a shape that run without a graph before one is captured: they compile and load kernels."""

MAX_GRAPHS = 32
"""Maximum number of graphs. Steps of other shapes run without."""


class CudaGraphs:
    """Functions of batches as CUDA graphs, one for each function and frequent combination of shapes.

    The functions return nothing: they change tensors that stay where they are, such as weights. They must not wait for
    the GPU, and must not depend on numbers in a batch. On a CPU a function is called instead of a graph.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.n_seen: Counter[int] = Counter()
        """Number of calls by hash of the function and the shapes."""
        self.graphs: dict[Hashable, tuple[Sequence[Batch], Callable[[], None]]] = {}
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
        for batch, target in zip(batches, static, strict=True):
            copy_tensors(batch, target)
        run()

    def capture(self, function: Callable[..., None], *batches: Batch) -> tuple[Sequence[Batch], Callable[[], None]]:
        """A graph of a function, and the batches in place that it reads."""
        static = [copied(batch, self.device) for batch in batches]
        if self.device.type != "cuda":
            return static, lambda: function(*static)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self.memory, capture_error_mode="thread_local"):
            function(*static)
        self.memory = graph.pool()
        return static, graph.replay


def copied(batch: Batch, device: torch.device) -> Batch:
    """A copy of a batch on a device."""
    copies: dict[str, Any] = {name: value.to(device, copy=True) for name, value in batch.tensors().items()}
    return replace(batch, **copies)


def copy_tensors(batch: Batch, target: Batch) -> None:
    """Copy the tensors of a batch in CPU memory without waiting for the device."""
    for (_, source), (_, value) in zip(batch.tensors().items(), target.tensors().items(), strict=True):
        value.copy_(source.pin_memory() if value.is_cuda else source, non_blocking=True)
