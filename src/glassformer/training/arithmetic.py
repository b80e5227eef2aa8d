"""Arithmetic of a training: the precision, and on a CPU the library of the matrix products, chosen by measuring."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch

from glassformer.config import JsonObject
from glassformer.kernels.build import source_hash
from glassformer.kernels.library import implementation
from glassformer.measurement import Choice, choose
from glassformer.nn import cpu_training
from glassformer.nn.linear import Linear, linear_layers, linear_relu
from glassformer.nn.ops.linear import linear
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.train_config import TrainConfig

CHOSEN = ("precision", "cpu_matmul")
"""The options that `choose_arithmetic` chooses."""

LIBRARY_NAMES = {"kernels": "C library", "torch": "PyTorch"}

WORK = 6e9
"""Operations of a measured call, about: 0.01 to 0.1 seconds with two threads."""


MAX_VOCAB_SIZE = 8_000
"""A larger vocabulary is measured as one of this size: with few rows, its gradients would take most of the time."""


class Sizes(NamedTuple):
    """Sizes that the matrix products of a model have."""

    d_model: int
    d_ff: int
    n_layers: int
    vocab_size: int


def model_sizes(config: TrainConfig) -> Sizes:
    """The sizes of the model that the options describe."""
    d_model = config.d_model or 512
    vocab_size = min(config.vocab_size or 1, MAX_VOCAB_SIZE)
    return Sizes(d_model, config.d_ff or d_model, config.n_layers or 1, vocab_size)


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the device has hardware support for bf16 matrix products."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        capabilities: JsonObject = getattr(torch.cpu, "get_capabilities", dict)()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_tile") or capabilities.get("bf16"))
    return False


def candidates(device: torch.device, precision: str = "auto", cpu_matmul: str = "auto") -> list[tuple[str, str]]:
    """The pairs of precision and library of matrix products that the device has, the preferred one first.

    Args:
        precision, cpu_matmul: options; "auto": any.
    """
    libraries = {
        "fp32": [*(["kernels"] if cpu_training.has_product(torch.float32) else []), "torch"],
        "bf16": [*(["kernels"] if cpu_training.has_product(torch.bfloat16) else []), "torch"],
    }
    if precision == "auto" and not has_fast_bf16(device):
        precision = "fp32"
    return [
        (name, library)
        for name in (("fp32", "bf16") if precision == "auto" else (precision,))
        for library in libraries[name]
        if cpu_matmul in ("auto", library)
    ]


@contextmanager
def products_by(library: str | None) -> Iterator[None]:
    """Inside this context, matrix products of training are computed by the kernels; by PyTorch if it is "torch"."""
    with ExitStack() as stack:
        for operation in (linear, linear_cross_entropy):
            names = [implementation.name for implementation in operation.implementations]
            stack.enter_context(operation.use(*(name for name in names if (name, library) != ("kernels", "torch"))))
        yield


def training_call(sizes: Sizes, precision: str, library: str, n_rows: int) -> Callable[[], None]:
    """A function that computes the matrix products of a Transformer block and a part of those of the loss, forward and
    backward."""
    d_model, d_ff, n_layers, vocab_size = sizes
    shapes = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    q, k, v, out, up, down = (Linear(*shape) for shape in shapes)
    x = torch.randn(n_rows, d_model, requires_grad=True)
    vocabulary = torch.randn(vocab_size, d_model, requires_grad=True)
    targets = torch.randint(vocab_size, (max(1, n_rows // (2 * n_layers)),))

    def call() -> None:
        with products_by(library), torch.enable_grad():
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                attended = out(sum(linear_layers(x, q, k, v)))
                hidden = down(linear_relu(attended, up))
                loss = linear_cross_entropy(hidden[: len(targets)], vocabulary, targets)
            (loss + hidden.float().sum()).backward()

    return call


def choose_among(sizes: Sizes, pairs: list[tuple[str, str]], *, measures_one: bool = False) -> Choice:
    """The fastest of the pairs of precision and library for a model of these sizes.

    Args:
        measures_one: measure a single pair as well.
    """
    if len(pairs) == 1 and not measures_one:
        return Choice(" ".join(pairs[0]), {}, is_new=False)
    weights = 4 * sizes.d_model**2 + 2 * sizes.d_model * sizes.d_ff
    loss_weights = sizes.d_model * sizes.vocab_size / (2 * sizes.n_layers)
    n_rows = min(2048, max(128, int(WORK / (6 * (weights + loss_weights)))))
    with torch.random.fork_rng(devices=[]):  # the training has the same random numbers whether it is measured or not
        return choose(
            "training",
            {" ".join(pair): training_call(sizes, *pair, n_rows) for pair in pairs},
            6e-9 * n_rows * (weights + loss_weights),
            {
                "sizes": sizes, "n_threads": torch.get_num_threads(), "torch": torch.__version__,
                "kernels": [source_hash(), implementation()],
            },
        )  # fmt: skip


UTILIZATION = 0.6
"""Part of the rate of matrix products that a training reaches, about."""


def available_flop(config: TrainConfig, device: torch.device, n_processes: int) -> float | None:
    """Floating-point operations that a training of so many minutes has time for, by the measured rate of the products
    of one process; None if the budget is another, or the device a GPU."""
    if config.minutes is None or device.type != "cpu":
        return None
    sizes = Sizes(256, 1024, 3, MAX_VOCAB_SIZE)  # the rate hardly depends on them
    pairs = candidates(device, config.precision, config.cpu_matmul) or [("fp32", "torch")]
    choice = choose_among(sizes, pairs, measures_one=True)
    return n_processes * 60 * config.minutes * UTILIZATION * 1e9 * max(choice.rates.values())


def choose_arithmetic(config: TrainConfig, device: torch.device, sizes: Sizes) -> tuple[TrainConfig, str | None]:
    """The options with the precision and the library of matrix products, and a message if they were chosen by
    measuring."""
    if device.type != "cpu":
        if config.precision != "auto":
            return config, None
        return config.model_copy(update={"precision": "bf16" if has_fast_bf16(device) else "fp32"}), None
    pairs = candidates(device, config.precision, config.cpu_matmul) or [(config.precision, "torch")]
    choice = choose_among(sizes, pairs)
    precision, library = choice.name.split()
    message = f"Arithmetic: {describe(choice)}." if choice.rates else None
    return config.model_copy(update={"precision": precision, "cpu_matmul": library}), message


def describe(choice: Choice) -> str:
    """The choice and the measured rates in words."""
    if not choice.rates:
        return f"{words(choice.name)}, the only one on this machine"
    rates = ", ".join(f"{words(name)} {rate:,.0f}" for name, rate in choice.rates.items())
    return f"{words(choice.name)}. Measured {choice.when}, in GFLOP/s: {rates}"


def words(name: str) -> str:
    """A pair of precision and library in words."""
    precision, library = name.split()
    return f"{precision} by {LIBRARY_NAMES[library]}"
