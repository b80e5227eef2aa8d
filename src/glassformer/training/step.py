"""One training step: loss, gradients and the update of the weights."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from glassformer.config import TrainConfig
from glassformer.data.batch import Batch
from glassformer.errors import UserError
from glassformer.tasks.base import AnyTask
from glassformer.training.compiler import Compiled
from glassformer.training.cuda_graphs import N_WARM_UPS, CudaGraph, GraphsByShape
from glassformer.training.optimizer import make_optimizer


class TrainingStep:
    """Updates the weights of a task's model, a batch at a time.

    On a GPU, nothing waits for its results: loss, norm and the count of non-finite updates stay there. Where the task
    and the model allow, the forward and backward passes are CUDA graphs, and so is the update.
    """

    def __init__(self, task: AnyTask, config: TrainConfig, log: Callable[[str], None]) -> None:
        self.task, self.model, self.config, self.log = task, task.model, config, log
        self.device = task.device
        self.parameters = dict(self.model.named_parameters())
        self.optimizer = make_optimizer(self.model, config)
        self.compiled = Compiled(self.model) if config.compile == "on" else None
        self.n_steps = self.n_updates = 0
        """Steps since the start of the training; updates since this step was created."""
        # The state of a step, in place: CUDA graphs refer to it.
        self.loss, self.grad_norm, self.lr, self.n_targets, self.n_non_finite = torch.zeros(5, device=self.device)
        """Loss per target in nats, gradient norm before clipping, learning rate, number of targets; updates skipped
        because of a loss or gradient that is not finite, since the last check."""
        self.graphs: GraphsByShape | None = None
        self.update_graph: CudaGraph | None = None
        if self.device.type == "cuda" and task.static_shapes and self.model.capturable:
            self.use_graphs()

    def use_graphs(self) -> None:
        """Capture the forward and backward passes of frequent shapes, and the update."""
        self.optimizer.zero_grad()
        self.graphs = GraphsByShape(self.add_gradients, self.device)

    def __call__(self, batches: Sequence[Batch], lr: float) -> tuple[Tensor, Tensor, int]:
        """One update, with gradients accumulated over the parts of a batch.

        The loss is the mean over all targets of all parts, so the result does not depend on how the batch was split.

        Args:
            batches: the parts, in CPU memory.

        Returns:
            The loss per target in nats, the gradient norm before clipping, and the number of targets. The next call
            overwrites both tensors.

        Raises:
            UserError: the loss or the gradient is not finite; the weights are unchanged.
        """
        if not self.model.training:
            self.model.train()
        n_targets = sum(batch.n_targets for batch in batches)
        self.n_targets.fill_(n_targets)
        self.compute_gradients(batches)
        self.apply_update(lr)
        self.n_steps += 1
        self.n_updates += 1
        return self.loss, self.grad_norm, round(n_targets)

    def compute_gradients(self, batches: Sequence[Batch]) -> None:
        """Compute the gradients of the loss per target of all parts.

        If the compiler fails, in the forward or the backward pass, the parts are computed again without it.
        """
        errors = self.compiled.errors if self.compiled else ()
        try:
            with self.compiled.active() if self.compiled else nullcontext():
                self.loss.zero_()
                if self.graphs is None:
                    self.optimizer.zero_grad()
                for batch in batches:
                    if self.graphs:
                        self.graphs(batch)
                    else:
                        self.add_gradients(batch.to(self.device))
        except errors as error:
            self.log(f"warning: compilation failed, training goes on without it: {first_line(error)}")
            self.compiled = None
            self.optimizer.zero_grad(set_to_none=self.graphs is None)
            self.compute_gradients(batches)

    def add_gradients(self, batch: Batch) -> None:
        """Add the loss per target of a batch to `loss`, and its gradients to those of the weights."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            loss = self.task.loss(batch, label_smoothing=self.config.label_smoothing or 0.0) / self.n_targets
        loss.backward()
        self.loss += loss.detach()

    def apply_update(self, lr: float) -> None:
        """Update the weights, as a CUDA graph after a few steps."""
        if self.graphs is None or "capturable" not in self.optimizer.defaults:
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self.update()
            if self.graphs:
                self.optimizer.zero_grad(set_to_none=False)
            return
        self.lr.fill_(lr)
        for group in self.optimizer.param_groups:
            group["lr"], group["capturable"] = self.lr, True
        if self.update_graph is None and self.n_updates >= N_WARM_UPS:
            self.update_graph = CudaGraph(self.update_and_zero, self.device)
        if self.update_graph:
            self.update_graph.run()
        else:
            self.update_and_zero()

    def update_and_zero(self) -> None:
        """Update the weights, and set the gradients to zero in place for the next step."""
        self.update()
        self.optimizer.zero_grad(set_to_none=False)

    def update(self) -> None:
        """Clip the gradients and update the weights, unless the loss or the gradient is not finite."""
        trained = [p for p in self.parameters.values() if p.grad is not None]
        self.grad_norm.copy_(torch.nn.utils.get_total_norm([p.grad for p in trained if p.grad is not None]))
        is_bad = ~(self.grad_norm.isfinite() & self.loss.isfinite())
        self.n_non_finite += is_bad
        if self.device.type == "cuda" and self.optimizer.defaults.get("fused"):
            # The fused optimizers skip the update on the GPU, which the CPU need not wait for.
            setattr(self.optimizer, "found_inf", is_bad.float())  # noqa: B010
            setattr(self.optimizer, "grad_scale", None)  # noqa: B010
        else:
            self.check_finite()
        if self.config.max_grad_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(trained, self.config.max_grad_norm, self.grad_norm)
        self.optimizer.step()

    def check_finite(self) -> None:
        """Check that no update was skipped since the last check.

        Raises:
            UserError: a loss or a gradient was not finite.
        """
        if self.n_non_finite.item():
            raise UserError(
                f"step {self.n_steps + 1}: the loss or its gradient is not finite; the weights are unchanged.\n"
                f"  The last checkpoint is intact. Train again, into another folder, with a lower --lr than"
                f" {self.config.lr:g} or with --precision fp32."
            )


def first_line(error: BaseException) -> str:
    """First line of the message of an error that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
