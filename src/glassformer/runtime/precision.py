"""The precision of inference on a CPU that is faster, found by measuring."""

from collections.abc import Callable

import numpy as np

from glassformer.kernels.build import source_hash
from glassformer.kernels.library import Kernels, load
from glassformer.measurement import Choice, choose
from glassformer.model_config import BertConfig
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph import Activate, Add, Attend, Gather, Graph, Linear, Normalize, Store, Table
from glassformer.threads import n_threads

SIZES = ("d_model", "d_ff", "n_heads")
"""Sizes that the speed of a model depends on. Models without them have no programs."""


def fast_kernels() -> Kernels | None:
    """The C library, if it is faster than PyTorch in fp32: with vector instructions."""
    kernels, _ = load()
    return None if kernels is None or kernels.is_plain else kernels


def measured_choice(config: object) -> Choice | None:
    """The faster of int8 and fp32 by the C library, for a layer with the sizes of a model.

    None: there is no library, or one without vector instructions, or the model has other layers.

    The work is a batch of 128 tokens and 16 single steps of 4 hypotheses.
    """
    kernels = fast_kernels()
    if kernels is None or not all(hasattr(config, name) for name in SIZES):
        return None
    sizes: dict[str, int] = {name: getattr(config, name) for name in SIZES}
    if sizes["d_model"] % sizes["n_heads"]:  # heads of a size of their own (T5, Llama), of which BERT has none
        sizes["n_heads"] = 1
    texts = [[1] * 32] * 4
    layer = layer_of(**sizes)
    random = np.random.default_rng(0)
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in layer.weights.items()}

    def call(is_quantized: bool) -> Callable[[], None]:
        encoder = RuntimeEncoder(
            layer, BertConfig(vocab_size=8, n_layers=1, max_len=32, **sizes), kernels, weights,
            is_quantized=is_quantized,
        )  # fmt: skip

        def run() -> None:
            encoder(texts, [[0] * len(text) for text in texts])
            for _ in range(16):
                encoder([[1] * 4], [[0] * 4])

        return run

    return choose(
        "decoding",
        {"fp32": call(False), "int8": call(True)},
        128 + 16 * 4,
        {"sizes": sizes, "n_threads": n_threads(), "kernels": [source_hash(), kernels.variant]},
    )


def layer_of(d_model: int, d_ff: int, n_heads: int) -> Graph:
    """The graph of an encoder of one layer."""
    shapes = dict.fromkeys(("queries", "keys", "values", "out"), (d_model, d_model))
    shapes |= {"embedding": (8, d_model), "positions": (32, d_model), "up": (d_ff, d_model), "down": (d_model, d_ff)}
    tables = {name: Table(name, shape) for name, shape in shapes.items()}
    token, position = Gather(tables["embedding"], "token"), Gather(tables["positions"], "position")
    x = Add(token, position)
    queries, keys, values = (Linear(x, tables[name], None) for name in ("queries", "keys", "values"))
    store, attend = Store(keys, values, 0, "own"), Attend(queries, 0, "own", d_model // n_heads, n_heads, 0.1, None)
    out = Linear(attend, tables["out"], None)
    first = Normalize(added := Add(x, out), None, None, 1e-5, "layer")
    up = Activate(linear := Linear(first, tables["up"], None), "relu")
    down = Linear(up, tables["down"], None)
    last = Normalize(sum_ := Add(first, down), None, None, 1e-5, "layer")
    program = [
        token, position, x, queries, keys, values, store, attend, out, added, first, linear, up, down, sum_, last,
    ]  # fmt: skip
    return Graph({"encode": program}, shapes)
