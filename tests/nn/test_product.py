"""Matrix products in training: the kernel against PyTorch, and its use by linear layers and the loss."""

import pytest
import torch

from glassformer.nn import cpu_training as c
from glassformer.nn.linear import Linear, linear_layers, linear_relu
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.training.arithmetic import products_by

TYPES = [dtype for dtype in (torch.float32, torch.bfloat16) if c.has_product(dtype)]
__test__ = bool(TYPES)
"""Not collected where the processor has no such instructions: in CI, a skipped test is a failure."""

SIZES = [(1, 1, 1), (3, 17, 5), (7, 64, 2), (8, 33, 3), (17, 16, 64), (127, 33, 65), (61, 257, 131), (300, 47, 2503)]


def close(ours: torch.Tensor, expected: torch.Tensor, k: int) -> None:
    """Equal up to rounding: of sums of k products in fp32, and of the result in bf16."""
    rtol = 2**-8 if ours.dtype == torch.bfloat16 else 0
    torch.testing.assert_close(ours.double(), expected, rtol=rtol, atol=2e-6 * (k + 1) ** 0.5 * 4)


class Factors:
    """Type of the factors in a test."""

    dtype = torch.float32


@pytest.fixture(params=TYPES, autouse=True)
def factor_type(request):
    Factors.dtype = request.param
    return request.param


def numbers(*shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype or Factors.dtype)


def times(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product of the factors rounded to their type, in fp64."""
    return a.to(Factors.dtype).double() @ b.to(Factors.dtype).double()


@pytest.fixture
def two_threads():
    yield lambda: torch.set_num_threads(2)
    torch.set_num_threads(1)


@pytest.mark.parametrize("dtype", [None, torch.float32])
@pytest.mark.parametrize("out_dtype", [None, torch.float32])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_a_product_equals_that_of_the_rounded_factors(m, n, k, dtype, out_dtype):
    a, b = numbers(m, k), numbers(k, n, dtype=dtype)
    out = torch.full((m, n), torch.nan, dtype=out_dtype or Factors.dtype)
    close(c.product(a, [b], out), times(a, b), k)


@pytest.mark.parametrize("dtype", [None, torch.float32])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_bias_is_added_in_fp32_before_relu(m, n, k, dtype):
    a, b, bias = numbers(m, k), numbers(n, k, dtype=dtype), numbers(n, dtype=torch.float32)
    expected = times(a, b.t()) + bias
    close(c.product(a, [b], torch.empty(m, n), transpose_b=True, bias=[bias]), expected, k)
    close(c.product(a, [b], torch.empty(m, n), transpose_b=True, bias=[bias], relu=True), expected.relu(), k)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_a_transposed_factor_gives_the_sums_of_its_rows(m, n, k):
    a, b, sums = numbers(k, m), numbers(k, n), torch.full((m,), torch.nan)
    close(c.product(a, [b], torch.empty(m, n), transpose_a=True, row_sums=sums), times(a.t(), b), k)
    close(sums, a.double().sum(0), k)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_elements_where_the_mask_is_not_positive_count_as_zero(m, n, k, transpose_a):
    shape = (k, m) if transpose_a else (m, k)
    a, positive, b = numbers(*shape), -numbers(*shape).flip(0), numbers(k, n)
    masked = torch.where(positive > 0, a, 0)
    ours = c.product(a, [b], torch.empty(m, n), transpose_a=transpose_a, positive=positive)
    close(ours, times(masked.t() if transpose_a else masked, b), k)


@pytest.mark.parametrize("transpose_a", [False, True])
def test_a_product_is_added_to_the_result(transpose_a):
    a, b, before = numbers(*((2503, 61) if transpose_a else (61, 2503))), numbers(2503, 33), numbers(61, 33).float()
    ours = c.product(a, [b], before.clone(), transpose_a=transpose_a, add=True)
    close(ours, times(a.t() if transpose_a else a, b) + before.double(), 2503)


@pytest.mark.parametrize("transpose_b", [False, True])
def test_the_rows_of_several_matrices_are_one_factor(transpose_b):
    parts = [numbers(n, 19, dtype=torch.float32) for n in (37, 3, 24)]
    whole, a = torch.cat(parts), numbers(13, 19 if transpose_b else 64)
    biases = [numbers(n, dtype=torch.float32) for n in (37, 3, 24)] if transpose_b else []
    expected = times(a, whole.t()) + torch.cat(biases) if transpose_b else times(a, whole)
    ours = c.product(a, parts, torch.empty(expected.shape), transpose_b=transpose_b, bias=biases)
    close(ours, expected, 64)


def test_factors_and_result_may_be_columns_of_larger_matrices():
    a, b, out = numbers(29, 90)[:, 3:70], numbers(67, 41), torch.zeros(29, 100)
    c.product(a, [b], out[:, 7:48])
    close(out[:, 7:48], times(a, b), 67)
    assert not out[:, :7].any()
    assert not out[:, 48:].any()


def test_without_inner_dimension_the_result_is_zero():
    sums = torch.full((5,), torch.nan)
    out = c.product(numbers(0, 5), [numbers(0, 3)], torch.full((5, 3), torch.nan), transpose_a=True, row_sums=sums)
    assert torch.equal(out, torch.zeros(5, 3))
    assert torch.equal(sums, torch.zeros(5))


def test_a_result_in_bf16_of_a_very_large_inner_dimension(monkeypatch):
    monkeypatch.setattr(c, "MAX_K", 50)
    a, b, bias = numbers(9, 53), numbers(11, 53), numbers(11, dtype=torch.float32)
    out = torch.empty(9, 11, dtype=Factors.dtype)
    close(c.product(a, [b], out, transpose_b=True, bias=[bias]), times(a, b.t()) + bias, 53)


def test_a_value_that_is_not_finite_stays_so():
    a = numbers(9, 32)
    a[4, 5] = torch.nan
    out = c.product(a, [numbers(32, 16)], torch.empty(9, 16), relu=True)
    assert out[4].isnan().all()
    assert out[[0, 1, 2, 3, 5, 6, 7, 8]].isfinite().all()


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_two_threads_compute_the_same_bits(m, n, k, transpose_a, two_threads):
    a, b = numbers(*((k, m) if transpose_a else (m, k))), numbers(k, n)
    one = c.product(a, [b], torch.empty(m, n), transpose_a=transpose_a)
    two_threads()
    assert torch.equal(one, c.product(a, [b], torch.empty(m, n), transpose_a=transpose_a))


def test_a_row_has_the_same_bits_whatever_other_rows_there_are():
    a, b = numbers(131, 77), numbers(45, 77, dtype=torch.float32)
    product = lambda rows: c.product(rows, [b], rows.new_empty(len(rows), 45), transpose_b=True)
    whole = product(a)
    for n in range(1, 131):
        assert torch.equal(product(a[:n]), whole[:n]), f"{n} rows"
        assert torch.equal(product(a[n:]), whole[n:]), f"from row {n}"


def gradients(case, *, kernel: bool) -> list[torch.Tensor]:
    """Results of `case` in training in the type of the factors, by the kernel or by PyTorch's libraries."""
    is_bf16 = Factors.dtype == torch.bfloat16
    with products_by("kernels" if kernel else "torch"), torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
        return [x.detach().float() for x in case()]


CASES = ["layer", "without bias", "relu", "one input", "layers", "layers of other sizes", "loss", "weighted loss"]


def make_case(name: str):
    """A function that returns results and gradients."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 19, 48, generator=generator).requires_grad_(name != "one input")
    layers = [Linear(48, n, bias=name != "without bias") for n in ((33, 17, 5) if "other sizes" in name else (37, 37))]
    targets, token_weights = torch.randint(37, (38,), generator=generator), torch.rand(38, generator=generator)

    def case():
        layer, parameters = layers[0], [p for layer in layers for p in layer.parameters()]
        if "loss" in name:
            weights = token_weights if "weighted" in name else None
            y = linear_cross_entropy(
                x.flatten(0, 1), layer.weight, targets, bias=layer.bias, label_smoothing=0.1, token_weights=weights
            )
            return y, *torch.autograd.grad(y, [x, layer.weight, layer.bias])
        if "layers" in name:
            outputs = linear_layers(x, *layers)
        else:
            outputs, parameters = [linear_relu(x, layer) if name == "relu" else layer(x)], list(layer.parameters())
        inputs = [x, *parameters] if x.requires_grad else parameters
        return *outputs, *torch.autograd.grad(sum((y.float() ** 2).sum() for y in outputs), inputs)

    return case


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_match_those_of_pytorch(name):
    case = make_case(name)
    ours, expected = (gradients(case, kernel=kernel) for kernel in (True, False))
    tolerance = 2e-2 if Factors.dtype == torch.bfloat16 else 1e-5
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * float(b.abs().max()))


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_used_where_the_instruction_set_has_it(name, monkeypatch):
    calls = []
    run = c.run
    monkeypatch.setattr(c, "run", lambda kernel, arguments: (calls.append(kernel), run(kernel, arguments)))
    gradients(make_case(name), kernel=True)
    assert c.t.PRODUCT in calls
    calls.clear()
    kernels = c.library()
    fastest = kernels.variant
    kernels.select("avx512" if Factors.dtype == torch.bfloat16 else "avx2")
    try:
        gradients(make_case(name), kernel=True)
    finally:
        kernels.select(fastest)
    assert c.t.PRODUCT not in calls


def test_gradients_side_by_side_are_joined_without_a_copy():
    whole = torch.randn(5, 12)
    parts = whole.split([3, 7, 2], dim=1)
    assert c.adjacent_columns(parts).data_ptr() == whole.data_ptr()
    assert torch.equal(c.adjacent_columns(parts), whole)
    for other in (
        parts[::-1],
        [parts[0], parts[2]],
        [parts[0], parts[1].clone()],
        [torch.ones(5, 3), torch.zeros(5, 3)],
    ):
        assert torch.equal(c.adjacent_columns(other), torch.cat(tuple(other), dim=1))


@pytest.mark.parametrize("several", [False, True])
def test_a_weight_that_was_trained_is_packed_anew_for_decoding(several):
    layers, x = [Linear(8, 11), Linear(8, 11)], torch.randn(16, 8)
    with torch.no_grad():
        for layer in layers:
            layer(x)
    optimizer = torch.optim.Adam([p for layer in layers for p in layer.parameters()], lr=0.5, fused=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=Factors.dtype == torch.bfloat16):
        outputs = linear_layers(x, *layers) if several else [linear_relu(x, layer) for layer in layers]
    sum(y.float().sum() for y in outputs).backward()
    optimizer.step()
    with torch.no_grad():
        for layer in layers:
            expected = torch.nn.functional.linear(x, layer.weight, layer.bias)
            torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("several", [False, True])
def test_layers_that_are_not_trained_are_called_one_by_one(several):
    """Inspection records them by hooks, with gradients."""
    layers, x, calls = [Linear(8, 11).eval(), Linear(8, 11).eval()], torch.randn(16, 8), []
    for layer in layers:
        layer.register_forward_hook(lambda *_: calls.append(1))
    if several:
        linear_layers(x, *layers)
    else:
        [linear_relu(x, layer) for layer in layers]
    assert len(calls) == 2
