"""One training step: loss, gradients and the update of the weights."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from glassformer.data.batch import Batch
from glassformer.errors import UserError
from glassformer.learning.base import AnyObjective
from glassformer.memory import is_out_of_memory
from glassformer.nn.block import TransformerBlock
from glassformer.nn.ops.gpu import prefers_triton
from glassformer.train_config import TrainConfig
from glassformer.training.compiler import Compiled
from glassformer.training.cuda_graphs import CudaGraphs
from glassformer.training.distributed import Processes
from glassformer.training.optimizer import make_optimizer
from glassformer.training.parallel import (
    LossModule,
    gather_weights,
    replicated,
    scatter_weights,
    shard_,
    whole,
    with_copied_model,
    without_synchronization,
)


class TrainingStep:
    """Updates the weights of a task's model, a batch at a time.

    An update whose loss or gradient is not finite is skipped.

    On a GPU, nothing waits for its results: loss, norm and whether the update was skipped stay there. Where the task,
    the model and the optimizer allow, the step is a CUDA graph.

    Of several processes, each computes the gradients of its part of a batch; the averages of the gradients are the same
    in all of them, and so are the updates. With `--shard`, the weights that are updated are shards of a copy of the
    task's model: see `gather` and `scatter`.
    """

    def __init__(
        self,
        objective: AnyObjective,
        config: TrainConfig,
        log: Callable[[str], None],
        processes: Processes | None = None,
    ) -> None:
        self.config, self.log, self.processes = config, log, processes or Processes()
        self.device, self.whole_model = objective.device, objective.model
        self.is_sharded = config.shard and self.processes.size > 1
        self.objective = with_copied_model(objective) if self.is_sharded else objective
        self.model = self.objective.model
        for module in self.model.modules():
            if isinstance(module, TransformerBlock):
                module.activation_checkpointing = config.activation_checkpointing
        self.loss_module: nn.Module = LossModule(self.objective, config.label_smoothing or 0.0)
        if self.is_sharded:
            shard_(self.loss_module, self.processes)
        self.parameters = dict(self.model.named_parameters())
        self.optimizer = make_optimizer(self.model, config)
        self.compiled: Compiled | None = None
        self.part: Callable[[str], AbstractContextManager[object]] = nullcontext
        """Context of a part of the training, of which a profile measures the time."""
        self.n_steps = 0
        """Steps since the start of the training."""
        # The state of a step, in place: CUDA graphs refer to it.
        self.loss, self.grad_norm, self.lr, self.n_targets, self.skipped = torch.zeros(5, device=self.device)
        """Loss per target in nats, gradient norm before clipping, learning rate, number of targets; 1 if the update was
        skipped because its loss or gradient is not finite, else 0."""
        self.graphs: CudaGraphs | None = None
        self.runs_graphs = True
        self.gradients: dict[nn.Parameter, Tensor] = {}
        """Gradients in place, to which the graphs of the parts of a batch add."""
        self.weight = torch.ones((), device=self.device)
        """Weight of the loss of a batch: 0 for batches that have no effect."""
        if self.can_use_graphs:
            self.use_graphs()
        elif self.processes.size > 1 and not self.is_sharded:
            self.loss_module = replicated(self.loss_module)
        if config.compile == "on":
            self.compile()

    @property
    def can_use_graphs(self) -> bool:
        """CUDA graphs can hold the steps: their shapes are few and nothing in them waits for the GPU."""
        return (
            self.device.type == "cuda"
            and self.objective.static_shapes
            and self.model.capturable
            and "capturable" in self.optimizer.defaults
            and not self.is_sharded
            and not self.config.activation_checkpointing  # it reads the state of the random numbers
        )

    def compile(self) -> None:
        """Compile the model from now on. Sharded models stay as they are."""
        if not self.is_sharded:
            self.release()
            # Graphs need fixed shapes, which are few.
            self.compiled = Compiled(self.model, dynamic=False if self.graphs else None)

    def use_graphs(self) -> None:
        """Capture the steps of frequent shapes."""
        self.graphs = CudaGraphs(self.device)
        for group in self.optimizer.param_groups:
            group["capturable"] = True

    @property
    def packs(self) -> bool:
        """Batches are packed, where their sequences are short: there are kernels for attention of packed sequences."""
        is_fast = self.config.precision == "bf16" and prefers_triton(self.device, torch.bfloat16)
        return self.graphs is not None and is_fast and self.objective.can_pack and self.model.can_pack

    @contextmanager
    def without_graphs(self) -> Iterator[None]:
        """Inside this context, steps run without CUDA graphs."""
        self.runs_graphs = False
        try:
            yield
        finally:
            self.runs_graphs = True

    def gather(self) -> None:
        """Copy sharded weights to the task's model. All processes must call this."""
        if self.is_sharded:
            gather_weights(self.model, self.whole_model)

    def scatter(self) -> None:
        """Copy the weights of the task's model to the shards."""
        if self.is_sharded:
            scatter_weights(self.whole_model, self.model)

    def __call__(
        self, batches: Sequence[Batch], lr: float, fillers: Sequence[Batch] = (), n_targets: float | None = None
    ) -> tuple[Tensor, Tensor, int]:
        """One update, with gradients accumulated over the parts of a batch.

        The loss is the mean over all targets of all parts, so the result does not depend on how the batch was split.

        Args:
            batches: the parts, in CPU memory.
            fillers: batches that have no effect, with which all processes compute the same number of batches.
            n_targets: number of targets of the batches of all processes. Default: of these.

        Returns:
            The loss per target in nats, the gradient norm before clipping, and the number of targets. The next call
            overwrites both tensors.
        """
        if not self.model.training:
            self.model.train()
        if n_targets is None:
            n_targets = sum(batch.n_targets for batch in batches)
        self.n_targets.fill_(n_targets / self.processes.size)  # gradients are averaged over the processes
        self.lr.fill_(lr)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr if self.graphs else lr
        if self.graphs and self.runs_graphs:
            with self.part("steps"):
                if len(batches) == self.processes.size == 1:
                    self.graphs(self.run_whole, *batches)
                else:
                    self.run_parts(batches, fillers)
        else:
            with self.part("data"):
                parts = [[batch.to(self.device) for batch in group] for group in (batches, fillers)]
            self.run(*parts)
        self.n_steps += 1
        return self.loss, self.grad_norm, round(n_targets)

    def run(self, batches: Sequence[Batch], fillers: Sequence[Batch] = ()) -> None:
        """Compute the gradients and update the weights, with the learning rate and the number of targets in place."""
        self.compute_gradients(batches, fillers)
        with self.part("waiting"):
            self.average()
        with self.part("optimizer"):
            self.update()
        if self.graphs:
            self.optimizer.zero_grad()  # their memory is free for other graphs

    def run_whole(self, batch: Batch) -> None:
        """`run` with a batch of one part."""
        self.run([batch])

    def run_parts(self, batches: Sequence[Batch], fillers: Sequence[Batch] = ()) -> None:
        """Like `run`, with a graph for each shape of a part and one for the update: combinations of shapes are rare. In
        between, several processes exchange gradients.
        """
        assert self.graphs is not None
        for parameter, gradient in self.gradients.items():
            parameter.grad = gradient
        self.compute_gradients(batches, fillers, by_graphs=True)
        self.gradients = {p: p.grad for p in self.parameters.values() if p.grad is not None}
        self.average()
        self.graphs(self.update)
        self.optimizer.zero_grad()

    def average(self) -> None:
        """Average the loss over the processes, and the gradients unless the backward pass has done so."""
        if self.processes.size == 1:
            return
        self.processes.average_(self.loss)
        if self.graphs:
            gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
            together = torch.cat([gradient.flatten() for gradient in gradients])
            self.processes.average_(together)
            parts = torch.split(together, [gradient.numel() for gradient in gradients])
            torch._foreach_copy_(gradients, [part.view_as(g) for part, g in zip(parts, gradients, strict=True)])

    def compute_gradients(
        self, batches: Sequence[Batch], fillers: Sequence[Batch] = (), *, by_graphs: bool = False
    ) -> None:
        """Compute the gradients of the loss per target of all parts.

        If the compiler fails, in the forward or the backward pass, the parts are computed again without it.

        Args:
            by_graphs: run the graph of each part, which adds to the gradients in place. The parts are in CPU memory.
        """
        errors = self.compiled.errors if self.compiled else ()
        try:
            with self.compiled.active() if self.compiled else nullcontext():
                self.optimizer.zero_grad(set_to_none=not by_graphs)
                self.loss.zero_()
                for i, batch in enumerate(parts := [*batches, *fillers]):
                    self.weight.fill_(i < len(batches))
                    with without_synchronization(self.loss_module) if i + 1 < len(parts) else nullcontext():
                        if self.graphs and by_graphs:
                            self.graphs(self.add_gradients, batch)
                        else:
                            self.add_gradients(batch)
        except errors as error:
            if self.processes.size > 1:
                raise UserError(f"compilation failed: {first_line(error)}.\n  Train with --compile off.") from None
            self.log(f"warning: compilation failed, training goes on without it: {first_line(error)}")
            self.compiled = None
            self.compute_gradients(batches, fillers, by_graphs=by_graphs)

    def try_gradients(self, batch: Batch) -> None:
        """Compute the gradients of a batch without compilation, and delete them: a trial of whether they fit in memory.

        All processes must call this.
        """
        self.model.train()
        self.n_targets.fill_(batch.n_targets)
        self.add_gradients(batch.to(self.device))
        self.optimizer.zero_grad()

    def add_gradients(self, batch: Batch) -> None:
        """Add the loss per target of a batch to `loss`, and its gradients to those of the weights."""
        is_bf16 = self.config.precision == "bf16"
        with self.part("loss"), torch.autocast(self.device.type, torch.bfloat16, enabled=is_bf16):
            loss = self.loss_module(batch) / self.n_targets * self.weight
        with self.part("backward"):
            loss.backward()
        self.loss += loss.detach()

    def update(self) -> None:
        """Clip the gradients and update the weights, unless the loss or the gradient is not finite."""
        trained = [p for p in self.parameters.values() if p.grad is not None]
        self.grad_norm.copy_(whole(torch.nn.utils.get_total_norm([p.grad for p in trained if p.grad is not None])))
        self.skipped.copy_(~(self.grad_norm.isfinite() & self.loss.isfinite()))
        on_device = self.device.type == "cuda" or self.graphs is not None
        if on_device and self.optimizer.defaults.get("fused") and not self.is_sharded:
            # The fused optimizers skip the update on the device, which the CPU need not wait for.
            setattr(self.optimizer, "found_inf", self.skipped)  # noqa: B010
            setattr(self.optimizer, "grad_scale", None)  # noqa: B010
        elif self.skipped:
            return
        if self.config.max_grad_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(trained, self.config.max_grad_norm, self.grad_norm)
        try:
            self.optimizer.step()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            # Some weights may have been updated, so the step cannot be repeated.
            raise UserError(
                f"step {self.n_steps + 1}: out of memory in the update of the weights: the state of the optimizer does"
                " not fit.\n  Train again, into another folder, with a smaller model or with --optimizer adafactor."
            ) from None

    def release(self) -> None:
        """Free the memory of a step that failed: gradients, activations and CUDA graphs."""
        self.optimizer.zero_grad()
        self.gradients = {}
        if self.graphs:
            self.graphs.clear()
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def first_line(error: BaseException) -> str:
    """First line of the message of an error that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
