"""Each kernel against numpy, for drawn shapes, on every instruction set of this processor and with 1 to 4 threads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.kernels.library import load
from glassformer.kernels.program import Batch, Executable, Instruction, Kind, Place, padded
from glassformer.kernels.quantize import EXCLUDED, half_table, pack, quantize_weight

KERNELS, REASON = load()
if KERNELS is None:
    pytest.skip(REASON, allow_module_level=True)

OUT = 0
variants = pytest.mark.parametrize("variant", KERNELS.supported)
shapes = settings(max_examples=30)
rows, widths, threads = st.integers(1, 23), st.integers(1, 150), st.integers(1, 4)
many_rows = rows | st.sampled_from([37, 70, 131])
"""Also numbers of rows that are divided into blocks, or whose weights are converted to 16 bits."""
seeds = st.integers(0, 1 << 30)


def batch_of(n, lists=None, positions=None):
    """Rows with token ids 0 to n - 1, and the list of slots that each attends to."""
    lists = lists or [[0]] * n
    flat = np.concatenate(lists).astype(np.int32)
    lengths = np.array([len(x) for x in lists], np.int32)
    begins = (np.cumsum(lengths) - lengths).astype(np.int32)
    index = np.arange(n, dtype=np.int32)
    positions = index if positions is None else np.array(positions, np.int32)
    return Batch(index, positions, index, index, (flat, flat), (begins, begins), (lengths, lengths))


@pytest.fixture(autouse=True)
def fastest_variant_afterwards():
    yield
    KERNELS.select(next(iter(KERNELS.supported)))


def execute(variant, instructions, inputs, out_width, batch, *, caches=(), cache_widths=(), n_threads=1, k=0):
    """Run instructions with given contents of the buffers from 1 on. Returns buffer OUT and the result of BEST."""
    KERNELS.select(variant)
    executable = Executable(KERNELS, instructions, [out_width, 1, *(x.shape[1] for x in inputs)], cache_widths)
    executable.reserve(len(batch))
    for buffer, x in zip(executable.buffers[2:], inputs, strict=True):
        buffer[: len(x), : x.shape[1]] = x
    best = executable.run(batch, caches, n_threads, k)
    return executable.buffers[OUT][: len(batch)], executable.buffers[1].ravel()[: len(batch)], best


def normal(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def with_padding(x):
    """An array with zeros added to its last axis, as buffers have them."""
    return np.ascontiguousarray(np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, padded(x.shape[-1]) - x.shape[-1])]))


def quantized(x, is_positive=False):
    """Numpy's version of QUANTIZE: bytes without the 128 added, and scales."""
    top = np.float32(255 if is_positive else 127)
    largest = np.maximum(np.abs(x).max(1), np.float32(1e-30))
    return np.rint(x * (top / largest)[:, None]).astype(np.int64), largest / top


@variants
@shapes
@given(n=rows, width=widths, n_threads=threads, is_positive=st.booleans(), scaled=st.booleans(), seed=seeds)
def test_quantize_rounds_multiples_of_the_largest_magnitude(variant, n, width, n_threads, is_positive, scaled, seed):
    rng = np.random.default_rng(seed)
    x, columns = normal(rng, n, width), np.exp2(rng.integers(-3, 4, width)).astype(np.float32)
    x = np.maximum(x, 0) if is_positive else x
    op = Instruction(
        Kind.QUANTIZE, Place(OUT), Place(2), n=width, option=is_positive,
        tables=(with_padding(columns) if scaled else None,),
    )  # fmt: skip
    out, scales, _ = execute(variant, [op], [x], width, batch_of(n), n_threads=n_threads)
    expected, expected_scales = quantized(x * columns if scaled else x, is_positive)
    bytes_ = out.view(np.uint8).reshape(n, -1)
    stride = padded(width)
    bytes_ = np.stack([out.view(np.uint8).ravel()[i * stride : i * stride + width] for i in range(n)])
    np.testing.assert_array_equal(bytes_.astype(int) - (0 if is_positive else 128), expected)
    np.testing.assert_allclose(scales, expected_scales, rtol=1e-6)


@variants
def test_quantize_keeps_numbers_that_are_not_finite_out_of_finite_results(variant):
    x = np.ones((3, 37), np.float32)
    x[0, 20], x[1, 5] = np.nan, np.inf
    op = Instruction(Kind.QUANTIZE, Place(OUT), Place(2), n=37, tables=(None,))
    _, scales, _ = execute(variant, [op], [x], 37, batch_of(3))
    assert np.isnan(scales[:2]).all()
    assert np.isfinite(scales[2])


@variants
@shapes
@given(n=many_rows, width=widths, outputs=widths, n_threads=threads, is_positive=st.booleans(), seed=seeds)
def test_product_is_the_product_of_the_rounded_matrices(variant, n, width, outputs, n_threads, is_positive, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = normal(rng, n, width), normal(rng, outputs, width), normal(rng, outputs)
    x = np.maximum(x, 0) if is_positive else x
    w, scale = quantize_weight(weight)
    program = [
        Instruction(Kind.QUANTIZE, Place(3), Place(2), n=width, option=is_positive, tables=(None,)),
        Instruction(
            Kind.PRODUCT, Place(OUT), Place(3), n=outputs, m=padded(width), option=is_positive,
            tables=pack(w, scale, bias),
        ),
    ]  # fmt: skip
    inputs = [x, np.zeros((n, width), np.float32), np.zeros((n, 1), np.float32)]
    out, _, _ = execute(variant, program, inputs, outputs, batch_of(n), n_threads=n_threads)
    q, scales = quantized(x, is_positive)
    expected = (q @ w.T.astype(np.int64)) * (scales[:, None] * scale) + bias
    np.testing.assert_allclose(out[:, :outputs], expected, rtol=1e-5, atol=1e-5)
    assert not out[:, outputs:].any()


def assert_best(log_probs, ids, logits, tolerance):
    """Log-probabilities and ids are those of the largest logits of each row, in descending order."""
    top = logits.max(1, keepdims=True)
    expected = logits - np.log(np.exp(logits - top).sum(1, keepdims=True)) - top
    best = -np.sort(-expected, axis=1)[:, : log_probs.shape[1]]
    np.testing.assert_allclose(log_probs, best, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(np.take_along_axis(expected, ids, 1), log_probs, rtol=tolerance, atol=tolerance)


@variants
@shapes
@given(n=many_rows, width=widths, vocab=st.integers(5, 700), k=st.integers(1, 5), n_threads=threads, seed=seeds)
def test_best_is_the_top_k_of_the_log_softmax(variant, n, width, vocab, k, n_threads, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = normal(rng, n, width), normal(rng, vocab, width), normal(rng, vocab)
    w, scale = quantize_weight(weight)
    program = [
        Instruction(Kind.QUANTIZE, Place(3), Place(2), n=width, tables=(None,)),
        Instruction(
            Kind.BEST, Place(OUT), Place(3), n=vocab, m=padded(width), tables=pack(w, scale, bias, fill=EXCLUDED)
        ),
    ]
    inputs = [x, np.zeros((n, width), np.float32), np.zeros((n, 1), np.float32)]
    _, _, (log_probs, ids) = execute(variant, program, inputs, 1, batch_of(n), n_threads=n_threads, k=k)
    q, scales = quantized(x)
    assert_best(log_probs, ids, (q @ w.T.astype(np.int64)) * (scales[:, None] * scale) + bias, tolerance=1e-5)


@variants
def test_best_of_equal_logits_has_the_lower_id_and_excluded_ids_have_probability_0(variant):
    w, scale = quantize_weight(np.zeros((300, 7), np.float32))
    bias = np.full(300, EXCLUDED, np.float32)
    bias[[250, 17, 201]] = 2.0
    program = [
        Instruction(Kind.QUANTIZE, Place(2), Place(4), n=7, tables=(None,)),
        Instruction(Kind.BEST, Place(OUT), Place(2), n=300, m=64, tables=pack(w, scale, bias, fill=EXCLUDED)),
    ]
    inputs = [np.zeros((1, 7), np.float32), np.zeros((1, 1), np.float32), np.ones((1, 7), np.float32)]
    _, _, (log_probs, ids) = execute(variant, program, inputs, 1, batch_of(1), n_threads=3, k=4)
    assert ids[0, :3].tolist() == [17, 201, 250]
    np.testing.assert_allclose(log_probs[0], [-math.log(3)] * 3 + [-math.inf], rtol=1e-6)


@variants
@shapes
@given(n=rows, width=widths, is_rms=st.booleans(), seed=seeds)
def test_normalize_is_layer_norm_or_rms_norm(variant, n, width, is_rms, seed):
    rng = np.random.default_rng(seed)
    x, gain, bias = normal(rng, n, width) + 3, normal(rng, width), normal(rng, width)
    bias = np.zeros_like(bias) if is_rms else bias
    op = Instruction(
        Kind.NORMALIZE, Place(OUT), Place(2), n=width, option=is_rms, number=1e-5,
        tables=(with_padding(gain), with_padding(bias)),
    )  # fmt: skip
    out, _, _ = execute(variant, [op], [x], width, batch_of(n))
    wide = x.astype(np.float64)
    centered = wide if is_rms else wide - wide.mean(1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * gain + bias
    np.testing.assert_allclose(out[:, :width], expected, rtol=1e-4, atol=1e-4)
    assert not out[:, width:].any()


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


@variants
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_their_formulas(variant, name):
    x = np.concatenate([np.linspace(-12, 12, 997), [0.0, -90.0, 90.0]]).astype(np.float32)[None]
    op = Instruction(Kind.ACTIVATE, Place(OUT), Place(2), n=x.size, activation=1 + list(ACTIVATIONS).index(name))
    out, _, _ = execute(variant, [op], [x], x.size, batch_of(1))
    np.testing.assert_allclose(out[0, : x.size], ACTIVATIONS[name](x[0].astype(np.float64)), atol=2e-6, rtol=2e-6)


@variants
@shapes
@given(n=rows, width=widths, seed=seeds)
def test_sums_products_and_factors(variant, n, width, seed):
    rng = np.random.default_rng(seed)
    table, x = normal(rng, n, width).astype(np.float16), normal(rng, n, width)
    program = [
        Instruction(Kind.GATHER, Place(3), n=width, option=1, tables=(half_table(table),)),
        Instruction(Kind.SCALE, Place(3), Place(3), n=width, number=1.5),
        Instruction(Kind.ADD, Place(3), Place(3), Place(2), n=width),
        Instruction(Kind.MULTIPLY, Place(OUT), Place(3), Place(2), n=width),
    ]
    positions = rng.integers(0, n, n)
    batch = batch_of(n, positions=positions)
    out, _, _ = execute(variant, program, [x, np.zeros_like(x)], width, batch, n_threads=2)
    np.testing.assert_allclose(
        out[:, :width], (table[positions].astype(np.float32) * np.float32(1.5) + x) * x, rtol=1e-5, atol=1e-6
    )


@variants
@shapes
@given(n=rows, width=widths, seed=seeds)
def test_embeddings_in_int8_are_columns_of_the_weight(variant, n, width, seed):
    rng = np.random.default_rng(seed)
    quantized, scale = quantize_weight(normal(rng, 70, width))
    panels, scales, _, _ = pack(quantized, scale, None)
    op = Instruction(Kind.GATHER, Place(OUT), n=width, option=1, tables=(panels, scales))
    positions = rng.integers(0, 70, n)
    out, _, _ = execute(variant, [op], [], width, batch_of(n, positions=positions))
    np.testing.assert_array_equal(out[:, :width], (quantized * scale[:, None])[positions])


@variants
@shapes
@given(n=rows, heads=st.integers(1, 5), half=st.integers(1, 20), seed=seeds)
def test_rotate_multiplies_pairs_as_complex_numbers(variant, n, heads, half, seed):
    rng = np.random.default_rng(seed)
    x, angles = normal(rng, n, heads * 2 * half), normal(rng, n, half)
    cosines, sines = np.cos(angles), np.sin(angles)
    op = Instruction(Kind.ROTATE, Place(OUT), Place(2), n=x.shape[1], m=2 * half, tables=(cosines, sines))
    out, _, _ = execute(variant, [op], [x], x.shape[1], batch_of(n))
    first, second = np.moveaxis(x.reshape(n, heads, 2, half), 2, 0)
    turned = (first + 1j * second) * np.exp(1j * angles)[:, None]
    expected = np.stack([turned.real, turned.imag], 2).reshape(n, -1)
    np.testing.assert_allclose(out[:, : x.shape[1]], expected, rtol=1e-4, atol=1e-4)


@variants
@shapes
@given(
    n=st.integers(1, 7), kv_heads=st.integers(1, 3), group=st.integers(1, 3),
    d_head=st.sampled_from([1, 5, 16, 33, 64, 81]), biased=st.booleans(), n_threads=threads, seed=seeds,
    dtype=st.sampled_from([np.float16, np.float32]),
)  # fmt: skip
def test_attention_over_the_slots_of_each_row(variant, n, kv_heads, group, d_head, biased, n_threads, seed, dtype):
    rng = np.random.default_rng(seed)
    heads, n_slots, reach, scale = kv_heads * group, 41, 3, 0.3
    q, keys, values = (
        normal(rng, n, heads * d_head),
        normal(rng, n_slots, kv_heads * d_head),
        normal(rng, n_slots, kv_heads * d_head),
    )
    lists = [rng.integers(0, n_slots, rng.integers(1, 38)) for _ in range(n)]
    positions = np.array([len(x) - 1 for x in lists])
    bias = normal(rng, heads, 2 * reach + 1)
    stride = padded(keys.shape[1] + 15)
    caches = [np.zeros((n_slots, stride), dtype) for _ in range(2)]
    caches[0][:, : keys.shape[1]], caches[1][:, : keys.shape[1]] = keys, values
    op = Instruction(
        Kind.ATTEND, Place(OUT), Place(2), n=heads * d_head, m=d_head, number=scale, group=group, reach=reach,
        tables=(bias if biased else None,),
    )  # fmt: skip
    out, _, _ = execute(
        variant, [op], [q], heads * d_head, batch_of(n, lists, positions), caches=[(caches[0], caches[1])],
        cache_widths=[keys.shape[1] + 15], n_threads=n_threads,
    )  # fmt: skip
    for row, slots in enumerate(lists):
        for head in range(heads):
            columns = slice(head // group * d_head, (head // group + 1) * d_head)
            k, v = (cache[slots, columns].astype(np.float64) for cache in caches)
            scores = k @ q[row, head * d_head : (head + 1) * d_head] * scale
            if biased:
                scores += bias[head, np.clip(np.arange(len(slots)) - positions[row], -reach, reach) + reach]
            weights = np.exp(scores - scores.max())
            expected = weights @ v / weights.sum()
            np.testing.assert_allclose(out[row, head * d_head : (head + 1) * d_head], expected, rtol=1e-4, atol=1e-4)


@variants
@shapes
@given(lengths=st.lists(st.integers(1, 15), min_size=5, max_size=30), n_threads=threads, seed=seeds)
def test_blocks_of_rows_contain_whole_sequences(variant, lengths, n_threads, seed):
    width, n = 64, sum(lengths)
    q, k, v = normal(np.random.default_rng(seed), 3, n, width)
    program = [
        Instruction(Kind.STORE, a=Place(3), b=Place(4), n=width),
        Instruction(Kind.ATTEND, Place(OUT), Place(2), n=width, m=width, number=0.3),
    ]

    def attend(first, sizes):
        """The result for adjacent sequences, of which each row attends to the whole sequence."""
        lists, rows = np.arange(first, first + sum(sizes), dtype=np.int32), slice(first, first + sum(sizes))
        batch = batch_of(len(lists))
        begins = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes).astype(np.int32)
        batch.slots, batch.lists, batch.begins = lists, (lists, lists), (begins, begins)
        batch.lengths = (np.repeat(sizes, sizes).astype(np.int32),) * 2
        caches = [np.zeros((n, width), np.float16) for _ in range(2)]
        inputs = [q[rows], k[rows], v[rows]]
        return execute(
            variant, program, inputs, width, batch, caches=[(caches[0], caches[1])], cache_widths=[width],
            n_threads=n_threads,
        )[0]  # fmt: skip

    firsts = np.cumsum([0, *lengths[:-1]])
    expected = np.concatenate([attend(first, [size]) for first, size in zip(firsts, lengths, strict=True)])
    np.testing.assert_array_equal(attend(0, lengths), expected)


@variants
def test_store_rounds_keys_and_values_to_half_precision(variant):
    special = [0.0, -0.0, 1.0, 65504.0, 65519.0, 65520.0, 1e9, 6e-8, 3e-8, 2.9e-8, 6.1e-5, 1 + 2**-11, 1 + 3 * 2**-11]
    rng = np.random.default_rng(3)
    x = np.concatenate([special, rng.standard_normal(500) * 10.0 ** rng.uniform(-8, 5, 500)]).astype(np.float32)
    x = np.stack([x, -x])
    caches = [np.zeros((2, padded(x.shape[1])), np.float16) for _ in range(2)]
    op = Instruction(Kind.STORE, a=Place(2), b=Place(3), n=x.shape[1])
    execute(variant, [op], [x, 2 * x], 1, batch_of(2), caches=[(caches[0], caches[1])], cache_widths=[x.shape[1]])
    with np.errstate(over="ignore"):
        for cache, expected in zip(caches, (x, 2 * x), strict=True):
            np.testing.assert_array_equal(cache[:, : x.shape[1]], expected.astype(np.float16))


@variants
def test_store_keeps_the_bits_of_keys_and_values_in_fp32(variant):
    x = normal(np.random.default_rng(3), 2, 70)
    caches = [np.zeros((2, padded(70)), np.float32) for _ in range(2)]
    op = Instruction(Kind.STORE, a=Place(2), b=Place(3), n=70)
    execute(variant, [op], [x, 2 * x], 1, batch_of(2), caches=[(caches[0], caches[1])], cache_widths=[70])
    for cache, expected in zip(caches, (x, 2 * x), strict=True):
        np.testing.assert_array_equal(cache[:, :70], expected)


def float_tables(weight, bias, fill=0.0):
    """Tables of a product in fp32: inputs padded to a multiple of 16, the bias to a multiple of 64."""
    weight = np.ascontiguousarray(np.pad(weight, [(0, 0), (0, -weight.shape[1] % 16)]))
    return weight, None, np.pad(bias, (0, -len(bias) % 64), constant_values=fill), None


def float_product(variant, x, weight, bias, kind=Kind.PRODUCT, n_threads=1, k=0):
    """Run a product in fp32. Returns its result, and that of BEST."""
    op = Instruction(
        kind, Place(OUT), Place(2), n=len(weight), m=-(-weight.shape[1] // 16) * 16,
        tables=float_tables(weight, bias, 0.0 if kind == Kind.PRODUCT else EXCLUDED),
    )  # fmt: skip
    width = len(weight) if kind == Kind.PRODUCT else 1
    out, _, best = execute(variant, [op], [x], width, batch_of(len(x)), n_threads=n_threads, k=k)
    return out, best


@variants
@shapes
@given(n=many_rows, width=widths | st.just(1100), outputs=widths, n_threads=threads, seed=seeds)
def test_product_of_floats(variant, n, width, outputs, n_threads, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = normal(rng, n, width), normal(rng, outputs, width), normal(rng, outputs)
    out, _ = float_product(variant, x, weight, bias, n_threads=n_threads)
    np.testing.assert_allclose(out[:, :outputs], x.astype(np.float64) @ weight.T + bias, rtol=1e-4, atol=1e-4)
    assert not out[:, outputs:].any()


@pytest.mark.slow
@shapes
@given(n=rows, width=widths | st.just(1100), outputs=widths, seed=seeds)
def test_the_bits_of_a_product_of_floats_depend_on_its_row_only(n, width, outputs, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = normal(rng, n, width), normal(rng, outputs, width), normal(rng, outputs)
    results = [float_product(v, x, weight, bias)[0].copy() for v in KERNELS.supported if v != "plain"]
    for variant in KERNELS.supported:
        if variant != "plain":
            alone = [float_product(variant, row[None], weight, bias, n_threads=3)[0].copy() for row in x]
            results.append(np.concatenate(alone))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@variants
@shapes
@given(n=rows, width=widths, vocab=st.integers(5, 700), k=st.integers(1, 5), n_threads=threads, seed=seeds)
def test_best_of_floats_is_the_top_k_of_the_log_softmax(variant, n, width, vocab, k, n_threads, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = normal(rng, n, width), normal(rng, vocab, width), normal(rng, vocab)
    _, (log_probs, ids) = float_product(variant, x, weight, bias, Kind.BEST, n_threads, k)
    assert_best(log_probs, ids, x.astype(np.float64) @ weight.T + bias, tolerance=1e-4)


@variants
def test_embeddings_in_fp32_are_rows_of_the_weight(variant):
    table, positions = normal(np.random.default_rng(0), 9, 80), [3, 8, 3]
    op = Instruction(Kind.GATHER, Place(OUT), n=75, option=1, tables=(None, None, table))  # 5 of 80 are padding
    out, _, _ = execute(variant, [op], [], 75, batch_of(3, positions=positions))
    np.testing.assert_array_equal(out[:, :75], table[positions, :75])
    assert not out[:, 75:].any()
