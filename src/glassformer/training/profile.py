"""Profile of a training run: time by part, padding, model FLOP utilization, memory, most expensive operations."""

import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch._C._autograd import DeviceType
from torch.autograd.graph import saved_tensors_hooks

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.data.batch import Batch
from glassformer.data.pairs import PairBatch
from glassformer.inspection.page import profile_page
from glassformer.training.flop import product_flop
from glassformer.training.parallel import local, n_bytes
from glassformer.training.step import TrainingStep

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

N_WARM_UPS = 10
"""Steps before the profiled ones: they compile, allocate memory and fill caches."""

N_PROFILED = 5
"""Steps of which the parts are timed, and then the same number of steps of which the operations are timed."""

N_OPERATIONS = 10
"""Number of most expensive operations in the profile."""

STEP_PARTS = ("forward", "loss", "backward", "optimizer")
"""Parts of a step."""

NOT_TRAINING = ("validation", "saving", "profiling")
"""Parts of a run that the speed of training does not include."""

PRODUCT_SIZE = {"cpu": 2048, "cuda": 8192}
"""Number of rows and columns of the matrices whose product is the reference of the utilization, by device."""

SIDES = {"source": "src", "target": "tgt_in", "text": "ids"}
"""Name of a sequence of tokens of an example -> field of the batch."""


class Timer:
    """Wall time by part. A moment counts for the innermost part that has begun and not ended, else as "other"."""

    def __init__(self, device: torch.device | None = None) -> None:
        """
        Args:
            device: a GPU, whose work counts for the part that started it.
        """
        self.is_synchronous = device is not None and device.type != "cpu"
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.parts = ["other"]
        self.since_s = self.now()

    def now(self) -> float:
        """The time in seconds, after the GPU has finished its work."""
        if self.is_synchronous:
            torch.accelerator.synchronize()
        return time.perf_counter()

    def restart(self) -> None:
        """Go on from here. The time since the last switch counts for no part."""
        self.since_s = self.now()

    def switch(self) -> None:
        """Add the time since the last switch to the current part."""
        now_s = self.now()
        self.seconds[self.parts[-1]] += now_s - self.since_s
        self.since_s = now_s

    def begin(self, name: str) -> None:
        """The time from here on counts for a part."""
        self.switch()
        self.parts.append(name)

    def end(self) -> None:
        """End the part that began last."""
        self.switch()
        self.parts.pop()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The time inside this context counts for a part."""
        self.begin(name)
        try:
            yield
        finally:
            self.end()


class Profile:
    """Measures the training steps of this process.

    The parts of all steps are timed on the CPU. A GPU works while the CPU goes on: there the parts of a step are timed
    in a few steps only, which wait for the GPU at the end of each part and are no CUDA graphs.
    """

    def __init__(self, step: TrainingStep) -> None:
        """
        Args:
            step: its parts are timed from now on.
        """
        self.step = step
        self.run_timer = self.timer = Timer()
        self.started_s = self.run_timer.since_s
        self.step_timer = Timer(step.device)
        self.n_steps, self.n_targets, self.flop = 0, 0.0, 0.0
        self.tokens, self.positions = Counter[str](), Counter[str]()
        """Tokens, and positions including padding, by side."""
        self.rate_start = 0.0, 0.0, 0.0
        """Targets, floating-point operations and seconds of training before the steps whose speed is reported."""
        self.weight_pointers = {local(p).untyped_storage().data_ptr() for p in step.parameters.values()}
        self.saved: dict[int, int] = {}
        """Pointers and sizes of the tensors that the current forward pass saved for the backward pass."""
        self.saved_bytes = 0
        self.operation_ms, self.operation_calls = Counter[str](), Counter[str]()
        step.part = self.part
        # What a task computes outside of its model is the loss: projection to the vocabulary and cross-entropy.
        step.model.register_forward_pre_hook(self.begin_forward)
        step.model.register_forward_hook(self.end_forward, always_call=True)

    # Time

    def named(self, part: str) -> str:
        """Name of a part. What a GPU does meanwhile is not known, unless the timer waits for it."""
        is_asynchronous = self.step.device.type != "cpu" and not self.timer.is_synchronous
        return "steps" if is_asynchronous and part in STEP_PARTS else part

    def part(self, name: str) -> AbstractContextManager[None]:
        """Context of a part of the run."""
        return self.timer.part(self.named(name))

    def begin_forward(self, *_: object) -> None:
        if self.step.model.training:
            self.saved.clear()
            self.timer.begin(self.named("forward"))

    def end_forward(self, *_: object) -> None:
        if self.step.model.training:
            self.timer.end()

    @contextmanager
    def of_step(self) -> Iterator[None]:
        """Context of a training step. Profiles it if it follows the warm-up."""
        self.n_steps += 1
        n = self.n_steps - N_WARM_UPS
        if 1 <= n <= 2 * N_PROFILED:
            measured = self.timed_parts() if n <= N_PROFILED else self.timed_operations()
            with self.run_timer.part("profiling"), self.step.without_graphs(), measured:
                yield
        else:
            yield
        if n == 2 * N_PROFILED:
            self.rate_start = self.n_targets, self.flop, self.training_s()

    @contextmanager
    def timed_parts(self) -> Iterator[None]:
        """Time the parts of a step."""
        self.step_timer.restart()
        self.timer = self.step_timer
        try:
            yield
            self.step_timer.switch()
        finally:
            self.timer = self.run_timer

    @contextmanager
    def timed_operations(self) -> Iterator[None]:
        """Time the operations of a step, and count the bytes that its forward pass saves for the backward pass."""
        is_cuda = self.step.device.type == "cuda"
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA][: 1 + is_cuda]
        with quiet_stderr():
            profiler = torch.profiler.profile(activities=activities)
            profiler.start()
        try:
            with saved_tensors_hooks(self.count_saved, lambda tensor: tensor):
                yield
        finally:
            with quiet_stderr():
                profiler.stop()
        device_type = DeviceType.CUDA if is_cuda else DeviceType.CPU
        for event in profiler.key_averages():
            if event.device_type == device_type and not event.is_user_annotation:
                time_us = event.self_device_time_total if is_cuda else event.self_cpu_time_total
                self.operation_ms[event.key] += time_us / 1e3 / N_PROFILED
                self.operation_calls[event.key] += event.count / N_PROFILED

    def count_saved(self, tensor: Tensor) -> Tensor:
        """Count a tensor that is saved for the backward pass, unless it is a weight."""
        storage = local(tensor).untyped_storage()
        if storage.data_ptr() not in self.weight_pointers:
            self.saved[storage.data_ptr()] = storage.nbytes()
            self.saved_bytes = max(self.saved_bytes, sum(self.saved.values()))
        return tensor

    def training_s(self) -> float:
        """Seconds of training, without validation, saving and profiling."""
        self.run_timer.switch()
        return sum(s for name, s in self.run_timer.seconds.items() if name not in NOT_TRAINING)

    # Counts

    def count(self, batches: Sequence[Batch], padded: Sequence[Batch]) -> None:
        """Count tokens, padding and floating-point operations of batches.

        Args:
            padded: the same batches with the padding that CUDA graphs need.
        """
        with self.run_timer.part("profiling"):
            pad_id = self.step.objective.tokenizer.pad_id
            for batch, final in zip(batches, padded, strict=True):
                lengths = token_lengths(batch, pad_id)
                for name, of_rows in lengths.items():
                    self.tokens[name] += int(of_rows.sum())
                    self.positions[name] += getattr(final, SIDES[name]).numel()
                self.n_targets += batch.n_targets
                self.flop += product_flop(self.step.model, batch, lengths)

    # Results

    def record(self) -> JsonObject:
        """The profile as JSON-serializable data. Measures the speed of a matrix product."""
        step, config = self.step, self.step.config
        training_s = self.training_s()
        elapsed_s = self.run_timer.since_s - self.started_s
        seconds = dict(sorted(self.run_timer.seconds.items(), key=lambda item: -item[1]))
        n_targets, flop, since_s = self.rate_start if self.n_steps > 2 * N_PROFILED + N_WARM_UPS else (0, 0.0, 0.0)
        rate_s = max(training_s - since_s, 1e-9)
        peak = product_flop_per_s(step.device, torch.bfloat16 if config.precision == "bf16" else torch.float32)
        flop_per_s = (self.flop - flop) / rate_s
        n_timed = max(0, min(N_PROFILED, self.n_steps - N_WARM_UPS))
        step_s = self.step_timer.seconds
        others = sorted(step_s.keys() - set(STEP_PARTS))
        updated = [p for p in step.parameters.values() if p in step.optimizer.state]
        states = [x for state in step.optimizer.state.values() for x in state.values() if isinstance(x, Tensor)]
        operations = sorted(self.operation_ms, key=lambda name: -self.operation_ms[name])
        total_ms = sum(self.operation_ms.values())
        return {
            "run": config.out.name,
            "device": torch.cuda.get_device_name(step.device) if step.device.type == "cuda" else step.device.type,
            "threads": torch.get_num_threads(),
            "precision": config.precision,
            "compiled": step.compiled is not None,
            "cuda_graphs": step.graphs is not None,
            "processes": step.processes.size,
            "steps": self.n_steps,
            "elapsed_s": elapsed_s,
            "seconds": seconds,
            "step_ms": {name: 1e3 * step_s[name] / n_timed for name in (*STEP_PARTS, *others)} if n_timed else {},
            "padding": {name: 1 - self.tokens[name] / n for name, n in self.positions.items()},
            "targets_per_s": (self.n_targets - n_targets) / rate_s,
            "flop_per_target": self.flop / max(1, self.n_targets),
            "flop_per_s": flop_per_s,
            "product_flop_per_s": peak,
            "utilization": flop_per_s / peak if self.flop else None,
            "memory_bytes": {
                "weights": sum(map(n_bytes, step.parameters.values())),
                "gradients": sum(map(n_bytes, updated)),
                "optimizer state": sum(map(n_bytes, states)),
                "activations": self.saved_bytes or None,
            },
            "peak_bytes": peak_bytes(step.device),
            "operations": [
                {
                    "name": name,
                    "calls": self.operation_calls[name],
                    "ms": self.operation_ms[name],
                    "fraction": self.operation_ms[name] / total_ms,
                }
                for name in operations[:N_OPERATIONS]
            ],
        }

    def write(self, folder: Path) -> str:
        """Write `profile.json` and `profile.html` to the run folder. Returns a message with the main results.

        Raises:
            UserError: a file cannot be written.
        """
        record = self.record()
        checkpoint.write_text(folder / "profile.json", checkpoint.to_json(record))
        checkpoint.write_text(folder / "profile.html", profile_page(record))
        parts = [f"{name} {s / record['elapsed_s']:.0%}" for name, s in record["seconds"].items()]
        utilization = f", model FLOP utilization {record['utilization']:.0%}" if record["utilization"] else ""
        return f"Profile in {folder / 'profile.html'}: {', '.join(parts[:3])}{utilization}."


def token_lengths(batch: Batch, pad_id: int) -> dict[str, Tensor]:
    """Number of tokens of each sequence without padding, by side."""
    sides = {side: getattr(batch, name) for side, name in SIDES.items() if hasattr(batch, name)}
    if isinstance(batch, PairBatch) and batch.src_spans is not None and batch.tgt_spans is not None:
        spans = batch.src_spans, batch.tgt_spans
        is_pair = batch.src_spans[1] > 0
        is_pair[is_pair.clone()] &= batch.src[0, batch.src_spans[0, is_pair]] != pad_id
        return {side: of_side[1, is_pair].double() for side, of_side in zip(sides, spans, strict=True)}
    return {side: (ids != pad_id).sum(1).double() for side, ids in sides.items()}


def product_flop_per_s(device: torch.device, dtype: torch.dtype) -> float:
    """Speed of a product of two large square matrices."""
    n = PRODUCT_SIZE.get(device.type, PRODUCT_SIZE["cpu"])
    generator = torch.Generator(device)  # the random numbers of the training stay as they are
    a, b = (torch.randn(n, n, device=device, dtype=dtype, generator=generator) for _ in range(2))
    timer = Timer(device)
    seconds = []
    for _ in range(5):
        timer.restart()
        a @ b
        timer.switch()
        seconds.append(timer.seconds.pop("other"))
    return 2 * n**3 / statistics.median(seconds)


def peak_bytes(device: torch.device) -> int | None:
    """Largest memory in use so far: allocated on a GPU, else of the process. None if it is unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if resource is None:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Inside this context, native libraries print nothing to standard error: PyTorch's profiler reports its start."""
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
