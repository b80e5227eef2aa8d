"""Each implementation of each operation that this machine has, against the reference, forward and backward."""

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import product
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from glassformer.nn import cpu_training, ops
from glassformer.nn.dropout import Dropout
from glassformer.nn.norm import RMSNorm
from glassformer.nn.ops.attention import attention
from glassformer.nn.ops.gpu import HAS_TRITON
from glassformer.nn.ops.linear import linear
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.nn.ops.operation import Implementation, Operation
from glassformer.nn.ops.residual import residual
from glassformer.nn.ops.rotation import rotation
from glassformer.nn.ops.softmax import softmax_statistics
from glassformer.nn.packing import Packing
from glassformer.nn.positions import rotary_embedding

MODES = ["fp32", "bf16", "no gradients"]
"""Training in fp32 and under autocast in bf16; inference."""


class Case(NamedTuple):
    """A call of an operation."""

    operation: Operation
    mode: str
    name: str
    make: Callable[[], tuple[tuple, dict]]
    """Its arguments, of the same values each time: implementations may overwrite them."""

    def context(self) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(torch.autocast("cpu", torch.bfloat16, enabled=self.mode == "bf16"))
        stack.enter_context(torch.set_grad_enabled(self.mode != "no gradients"))
        return stack

    def arguments(self) -> tuple[tuple, dict]:
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(5)  # without the notes of torch.manual_seed, for each of 2,000 calls
        try:
            return self.make()
        finally:
            torch.set_rng_state(state)

    def supported_by(self, implementation: Implementation) -> bool:
        arguments, options = self.arguments()
        with self.context():
            return implementation.supports(*arguments, **options)

    def results(self, name: str) -> list[Tensor]:
        """Outputs and gradients."""
        arguments, options = self.arguments()
        with self.context(), self.operation.use(name):
            outputs = list(tensors(self.operation(*arguments, **options)))
        inputs = [x for x in tensors((arguments, options)) if x.requires_grad]
        if self.mode == "no gradients" or self.operation is softmax_statistics:
            return outputs
        loss = sum((y.float() * torch.linspace(-1, 2, y.numel()).view(y.shape)).sum() for y in outputs)
        return [*outputs, *torch.autograd.grad(loss, inputs)]


def tensors(value: object) -> Iterator[Tensor]:
    """All tensors in nested tuples, dictionaries and modules."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.parameters()
    elif isinstance(value, dict | tuple | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, requires_grad=True)


def attention_cases() -> Iterator[Case]:
    shapes = [(1, 1, 16), (5, 7, 11), (6, 13, 16), (33, 33, 32), (3, 131, 48), (67, 67, 16)]
    for (n, k, d_head), causal, masked, mode in product(
        shapes, (False, True), (None, "keys", "pairs", "bias", "packed"), MODES
    ):

        def make(n=n, k=k, d_head=d_head, causal=causal, masked=masked, mode=mode):
            n_batch = 1 if masked == "packed" else 2
            dtype = torch.bfloat16 if mode == "bf16" else torch.float32
            q, v, key = (
                torch.randn(n_batch, length, 3, d_head).to(dtype).transpose(1, 2).requires_grad_()
                for length in (n, k, k)
            )
            mask: Tensor | Packing | None = None
            if masked in ("keys", "pairs"):
                mask = torch.rand(2, 1, n if masked == "pairs" else 1, k) < 0.7
                mask[..., 0] = True
            elif masked == "packed":
                n_first = (n + 1) // 2
                spans = torch.tensor([[0, n_first], [n_first, n - n_first]], dtype=torch.int32)
                mask = Packing(spans, spans)
            bias = numbers(1, 3, n, k) if masked == "bias" else None
            return (q, key, v, mask, causal, bias, d_head**-0.5, True), {}

        if masked != "packed" or n == k > 1:
            yield Case(attention, mode, f"{n}x{k}x{d_head} {masked} {'causal' * causal}", make)


def linear_cases() -> Iterator[Case]:
    for shape, sizes, bias, relu, mode in product(
        [(1, 16), (3, 5), (2, 7, 33), (37, 64)], [(11,), (17, 5, 3)], (False, True), (False, True), MODES
    ):

        def make(shape=shape, sizes=sizes, bias=bias, relu=relu):
            weights = tuple(numbers(n, shape[-1]) for n in sizes)
            return (numbers(*shape), weights, tuple(numbers(n) for n in sizes) if bias else (), relu), {}

        yield Case(linear, mode, f"{shape} {sizes} {'bias' * bias} {'relu' * relu}", make)


def residual_cases() -> Iterator[Case]:
    norms = {"none": lambda n: None, "layer": nn.LayerNorm, "rms": RMSNorm}
    for shape, norm, mode in product([(2, 1, 16), (3, 5, 48), (2, 3, 33)], norms, MODES):

        def make(shape=shape, norm=norm, mode=mode):
            module = norms[norm](shape[-1])
            for parameter in () if module is None else module.parameters():
                nn.init.normal_(parameter)
            z = numbers(*shape)
            return (numbers(*shape), z.bfloat16() if mode == "bf16" else z, module, Dropout(0.0), True), {}

        yield Case(residual, mode, f"{shape} {norm}", make)


def rotation_cases() -> Iterator[Case]:
    for (length, d_head), batched, mode in product([(1, 32), (5, 64), (7, 18), (33, 96)], (False, True), MODES):

        def make(length=length, d_head=d_head, batched=batched, mode=mode):
            x = torch.randn(2, length, 3, d_head).to(torch.bfloat16 if mode == "bf16" else torch.float32)
            positions = torch.arange(length) if not batched else torch.randint(100, (2, length))
            return (x.transpose(1, 2).requires_grad_(), *rotary_embedding(positions, d_head)), {}

        yield Case(rotation, mode, f"{length}x{d_head} {'positions of each batch entry' * batched}", make)


def softmax_cases() -> Iterator[Case]:
    for n_rows, n_columns, n_padding in [(1, 1, 0), (7, 37, 0), (3, 8000, 0), (5, 31, 17)]:

        def make(n_rows=n_rows, n_columns=n_columns, n_padding=n_padding):
            logits = 5 * torch.randn(n_rows, n_columns + n_padding)
            return (logits, torch.randint(n_columns, (n_rows,)), n_columns), {}

        yield Case(softmax_statistics, "no gradients", f"{n_rows}x{n_columns}+{n_padding}", make)


def loss_cases() -> Iterator[Case]:
    for shape, bias, weighted, smoothing, mode in product(
        [(1, 16, 5), (61, 7, 31), (9, 33, 48)], (False, True), (False, True), (0.0, 0.1), MODES[:2]
    ):

        def make(shape=shape, bias=bias, weighted=weighted, smoothing=smoothing):
            n, d_model, vocab = shape
            arguments = numbers(n, d_model), numbers(vocab, d_model), torch.randint(vocab, (n,))
            options = {"bias": numbers(vocab) if bias else None, "token_weights": torch.rand(n) if weighted else None}
            return arguments, {**options, "label_smoothing": smoothing}

        name = f"{shape} {'bias' * bias} {'weighted' * weighted} {smoothing}"
        yield Case(linear_cross_entropy, mode, name, make)


CASES = [*attention_cases(), *linear_cases(), *residual_cases(), *rotation_cases(), *softmax_cases(), *loss_cases()]

COMPARISONS = [
    pytest.param(case, row.name, id=f"{case.operation.reference.__name__}-{row.name}-{case.mode}-{case.name}")
    for case in CASES
    for row in case.operation.implementations[:-1]
    if case.supported_by(row)
]


@pytest.mark.parametrize(("case", "name"), COMPARISONS)
def test_an_implementation_has_the_results_and_gradients_of_the_reference(case, name):
    found, expected = case.results(name), case.results("reference")
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        width = min(a.size(-1), b.size(-1)) if a.dim() else None  # probabilities beyond the vocabulary are 0
        a, b = (x.detach().float()[..., :width] if width else x.detach().float() for x in (a, b))
        if case.mode == "bf16":
            assert (a - b).norm() <= 0.02 * b.norm() + 1e-3
        else:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5)


def test_each_operation_and_implementation_of_this_machine_is_compared():
    operations = [
        value
        for module in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}.")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Operation)
    ]
    absent = set() if HAS_TRITON else {"triton"}
    if cpu_training.library() is None:
        absent |= {"kernels"}
    if not (torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported()):
        absent |= {"onednn"}
    compared = {(case.operation, name) for case, name in (parameters.values for parameters in COMPARISONS)}
    for operation in operations:
        for row in operation.implementations[:-1]:
            needs_product = row.name == "kernels" and operation in (linear, linear_cross_entropy)
            if row.name not in absent and not (needs_product and not cpu_training.has_product(torch.float32)):
                assert (operation, row.name) in compared


@pytest.fixture
def operation():
    def negation(x: int) -> int:
        return -x

    return Operation(
        negation,
        Implementation("even", lambda x: -x, lambda x: x % 2 == 0, prefers=lambda x: x > 10),
        Implementation("small", lambda x: -x, lambda x: x < 100),
    )


def test_the_first_implementation_that_is_preferred_and_supported_is_selected(operation):
    assert {x: operation.select(x).name for x in (12, 102, 13, 4, 103)} == {
        12: "even", 102: "even", 13: "small", 4: "small", 103: "reference",
    }  # fmt: skip
    assert operation(103) == -103


def test_use_selects_an_implementation_where_it_is_supported_even_if_it_is_not_preferred(operation):
    with operation.use("even"):
        assert operation.select(4).name == "even"
        with operation.use("small", "reference"):
            assert operation.select(12).name == "small"
        with pytest.raises(ValueError, match="negation: these arguments are not supported by: even"):
            operation(13)
    assert operation.select(4).name == "small"


def test_use_of_an_unknown_implementation_names_the_known_ones(operation):
    with pytest.raises(ValueError, match="negation has no implementation evn; it has even, small, reference"):
        operation.use("evn").__enter__()
