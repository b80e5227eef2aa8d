"""Forward and backward passes as CUDA graphs: a GPU runs their many kernels without waiting for Python."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.data.batch import Batch

N_WARM_UPS = 2
"""Batches of a shape that run without a graph before one is captured: they compile and choose kernels."""

MAX_GRAPHS = 24
"""Maximum number of graphs. Batches of other shapes run without."""


class CudaGraph:
    """A function of tensors that stay where they are, captured once. On a CPU the function is called instead."""

    def __init__(self, function: Callable[[], None], device: torch.device, pool: "CudaGraph | None" = None) -> None:
        """
        Args:
            pool: use the memory of this graph, which then must not be needed by both at a time.
        """
        self.run = function
        self.memory: Any = None
        if device.type == "cuda":
            graph = torch.cuda.CUDAGraph()
            torch.cuda.empty_cache()
            with torch.cuda.graph(graph, pool=pool.memory if pool else None):
                function()
            self.run, self.memory = graph.replay, graph.pool()


class GraphsByShape:
    """A function of a batch as CUDA graphs, one for each shape of batch that is frequent.

    The function returns nothing: it changes tensors that stay where they are, such as gradients. It must not wait for
    the GPU, and must not depend on numbers in the batch.
    """

    def __init__(self, function: Callable[[Batch], None], device: torch.device) -> None:
        self.function, self.device = function, device
        self.n_seen: Counter[Hashable] = Counter()
        self.graphs: dict[Hashable, tuple[Batch, CudaGraph]] = {}

    def __call__(self, batch: Batch) -> None:
        """Call the function with a batch that is still on the CPU."""
        shape = tuple((name, value.shape, value.dtype) for name, value in batch.tensors().items())
        if shape not in self.graphs:
            self.n_seen[shape] += 1
            if self.n_seen[shape] <= N_WARM_UPS or len(self.graphs) == MAX_GRAPHS:
                self.function(batch.to(self.device))
                return
            copies = {name: value.to(self.device, copy=True) for name, value in batch.tensors().items()}
            static = replace(batch, **copies)
            pool = next((graph for _, graph in self.graphs.values()), None)
            self.graphs[shape] = static, CudaGraph(lambda: self.function(static), self.device, pool)
        static, graph = self.graphs[shape]
        copy_tensors(batch.tensors(), static.tensors())
        graph.run()


def copy_tensors(sources: dict[str, Tensor], targets: dict[str, Tensor]) -> None:
    """Copy tensors from CPU memory without waiting for the device."""
    for name, target in targets.items():
        source = sources[name]
        target.copy_(source.pin_memory() if target.is_cuda else source, non_blocking=True)
