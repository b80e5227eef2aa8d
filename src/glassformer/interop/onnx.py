"""Export of models to ONNX, and their use in ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto

from glassformer import checkpoint
from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.generate.engine import MORE_TOKENS
from glassformer.generate.protocol import ComputesLogits, Ints
from glassformer.generate.request import Sources
from glassformer.generate.scores import log_softmax
from glassformer.interop.onnx_graph import MASKED, Cache, OnnxGraph, Pair, Writer
from glassformer.interop.verification import Ids, Outputs
from glassformer.models.families import family_of
from glassformer.recording.graphs import graph_of
from glassformer.recording.precision import weights_of
from glassformer.recording.recorder import UnsupportedError
from glassformer.runtime.graph import Attend, Graph, Integers, Operation, Side, Store
from glassformer.tasks.base import AnyTask
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.regression import Regressor

FAMILIES = ("transformer", "t5", "gpt2", "llama", "bert")
"""Supported model families."""

ENCODER, DECODER, MODEL = "encoder_model.onnx", "decoder_model.onnx", "model.onnx"
"""Names of the files: the first two for an encoder-decoder."""


# Export


def save(task: AnyTask, folder: Path) -> str:
    """Write the files of a model in ONNX into a folder. Returns a description.

    Raises:
        UserError: the model has operations that are not translated.
    """
    family = family_of(task.model)
    if family not in FAMILIES:
        raise UserError(f"a {family}: its export to ONNX is not supported. Supported families: {', '.join(FAMILIES)}.")
    try:
        names = save_encoder(task, folder) if task.kind == "encoder" else save_generator(task.model, folder)
    except UnsupportedError as error:
        raise UserError(f"a {family} with this configuration: its export to ONNX is not supported: {error}.") from None
    c = task.config
    config = {
        "task": task.name, "max_length": c.max_len,
        **({"max_length_beyond_source": MORE_TOKENS} if task.kind == "encoder-decoder" else {}),
        "pad_token_id": c.pad_id, "bos_token_id": c.bos_id, "eos_token_id": c.eos_id,
        **({"id2label": dict(enumerate(task.labels))} if task.has_classes else {}),
        **({"pooling": "first" if task.takes_first else "mean"} if isinstance(task, SentenceEmbedder) else {}),
    }  # fmt: skip
    (folder / "config.json").write_text(checkpoint.to_json(config), encoding="utf-8", newline="\n")
    return f"{' and '.join(names)} for ONNX Runtime"


def d_heads_of(graph: Graph) -> dict[Cache, int]:
    """Dimension of each head in the caches of the last program."""
    program = graph.programs["step" if "step" in graph.programs else "encode"]
    return {(x.side, x.cache): x.d_head for x in program if isinstance(x, Attend)}


def widths_of(program: Sequence[Operation]) -> dict[Cache, int]:
    """Number of features of the keys that a program stores."""
    return {(x.side, x.cache): x.keys.width for x in program if isinstance(x, Store)}


def save_generator(model: Any, folder: Path) -> list[str]:
    """Write the encoder, if there is one, and the decoder of a model that generates text. Returns the file names."""
    graph = graph_of(family_of(model), model.config)
    encoder, decoder = graph.programs.get("encode", ()), graph.programs["step"]
    d_heads, widths = d_heads_of(graph), widths_of(decoder)
    sources = {cache: width for cache, width in widths_of(encoder).items() if cache[0] == "source"}
    g = OnnxGraph(graph, weights_of(model))
    if encoder:
        save_source_encoder(OnnxGraph(graph, g.weights), encoder, d_heads, folder / ENCODER)
    ids = g.input("input_ids", ("batch", "length"))
    own_side = ".decoder" if encoder else ""
    past = {cache: cache_inputs(g, cache[1], own_side, width, d_heads[cache]) for cache, width in widths.items()}
    caches = {cache: cache_inputs(g, cache[1], ".encoder", width, d_heads[cache]) for cache, width in sources.items()}
    n_past, n_tokens = g.size(next(iter(past.values()))[0], 2), g.size(ids, 1)
    total = g.op("Add", n_past, n_tokens)
    query_positions, key_positions = g.range(n_past, total), g.range(g.constant(0, np.int64), total)
    is_future = g.op(
        "Greater", g.op("Unsqueeze", key_positions, g.shape(0)), g.op("Unsqueeze", query_positions, g.shape(1))
    )
    causal_mask = g.op("Where", is_future, g.constant(MASKED), g.constant(0))
    masks: dict[Side, str] = {"own": causal_mask}
    if encoder:
        positions = query_positions
        masks["source"] = g.padding_mask(g.input("encoder_attention_mask", ("batch", "source_length")))
    else:
        mask = g.input("attention_mask", ("batch", "total_length"))
        positions = g.input("position_ids", ("batch", "length"))
        masks["own"] = g.op("Add", causal_mask, g.padding_mask(mask))
    indices: dict[Integers, str] = {"token": ids, "position": positions}
    writer = Writer(g, indices, masks, query_positions, key_positions, d_heads, past, caches)
    g.output("logits", writer.write(decoder), ("batch", "length", model.config.vocab_size))
    for cache in widths:
        for name, value in zip(cache_names("present", cache[1], own_side), writer.caches[cache], strict=True):
            g.output(name, value, ("batch", widths[cache] // d_heads[cache], "total_length", d_heads[cache]))
    g.save(folder / (DECODER if encoder else MODEL))
    return [ENCODER, DECODER] if encoder else [MODEL]


def save_source_encoder(g: OnnxGraph, program: Sequence[Operation], d_heads: dict[Cache, int], path: Path) -> None:
    """Write the encoder of an encoder-decoder: source tokens -> keys and values of cross-attention."""
    ids = g.input("input_ids", ("batch", "source_length"))
    mask = g.padding_mask(g.input("attention_mask", ("batch", "source_length")))
    positions = g.range(g.constant(0, np.int64), g.size(ids, 1))
    d_heads = d_heads | {(x.side, x.cache): x.d_head for x in program if isinstance(x, Attend)}
    writer = Writer(g, {"token": ids, "position": positions}, {"own": mask}, positions, positions, d_heads)
    writer.write(program)
    for cache, width in widths_of(program).items():
        if cache[0] == "source":
            for name, value in zip(cache_names("present", cache[1], ".encoder"), writer.caches[cache], strict=True):
                g.output(name, value, ("batch", width // d_heads[cache], "source_length", d_heads[cache]))
    g.save(path)


def cache_names(prefix: str, layer: int, side: str) -> Pair:
    """Names of the keys and values of a layer, as in Hugging Face's Optimum."""
    return f"{prefix}.{layer}{side}.key", f"{prefix}.{layer}{side}.value"


def cache_inputs(g: OnnxGraph, layer: int, side: str, width: int, d_head: int) -> Pair:
    """Inputs for the keys and values of a layer."""
    names = cache_names("past_key_values", layer, side)
    length = "source_length" if side == ".encoder" else "past_length"
    for name in names:
        g.input(name, ("batch", width // d_head, length, d_head), TensorProto.FLOAT)
    return names


def save_encoder(task: AnyTask, folder: Path) -> list[str]:
    """Write BERT with its head. The outputs are those of `verification.encoder_outputs`. Returns the file names."""
    model = task.model
    c = model.config
    graph = graph_of(family_of(model), c)
    g = OnnxGraph(graph, weights_of(model))
    ids = g.input("input_ids", ("batch", "length"))
    attention_mask = g.input("attention_mask", ("batch", "length"))
    types = g.input("token_type_ids", ("batch", "length")) if c.n_token_types > 1 else g.constant(0, np.int64)
    positions = g.range(g.constant(0, np.int64), g.size(ids, 1))
    indices: dict[Integers, str] = {"token": ids, "position": positions, "type": types}
    masks: dict[Side, str] = {"own": g.padding_mask(attention_mask)}
    writer = Writer(g, indices, masks, positions, positions, d_heads_of(graph))
    hidden = writer.write(graph.programs["encode"])
    if c.head == "none":
        g.output("last_hidden_state", hidden, ("batch", "length", c.d_model))
    else:
        per_text = c.head == "sequence"
        x = writer.write_head(
            graph.programs["head"], pool(g, c.pooling, hidden, attention_mask) if per_text else hidden
        )
        if isinstance(task, Regressor):
            low, high = task.range
            x = g.op("Add", g.op("Mul", x, g.constant(high - low)), g.constant((low + high) / 2))
        n = c.vocab_size if c.head == "mlm" else c.n_labels
        g.output("logits", x, ("batch", n) if per_text else ("batch", "length", n))
    if "next" in graph.programs:
        x = writer.write_head(graph.programs["next"], pool(g, c.pooling, hidden, attention_mask))
        g.output("seq_relationship_logits", x, ("batch", c.n_labels))
    g.save(folder / MODEL)
    return [MODEL]


def pool(g: OnnxGraph, pooling: str, hidden: str, attention_mask: str) -> str:
    """The representation of a text: the output of its first token, or the mean over its tokens."""
    if pooling == "first":
        return str(g.op("Gather", hidden, g.constant(0, np.int64), axis=1))
    is_token = g.op("Cast", g.op("Unsqueeze", attention_mask, g.shape(2)), to=TensorProto.FLOAT)
    sums = (g.op("ReduceSum", y, g.shape(1), keepdims=0) for y in (g.op("Mul", hidden, is_token), is_token))
    return str(g.op("Div", *sums))


# Use


def load(folder: Path, task: AnyTask) -> "OnnxModel":
    """Read the model that `save` wrote for a task."""
    return OnnxModel(folder, task)


class OnnxState:
    """Decoder state: inputs of the decoder for each hypothesis."""

    def __init__(self, inputs: dict[str, NDArray[Any]]) -> None:
        self.inputs = inputs

    def select(self, rows: Ints, sentences: Ints | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat."""
        self.inputs = {name: array[rows] for name, array in self.inputs.items()}


class OnnxModel(ComputesLogits):
    """A model in ONNX Runtime, with the interface of `verification.ExportedModel`. If it generates text, it is a
    `Decodable`: all of `glassformer.generate` applies to it.
    """

    def __init__(self, folder: Path, task: Any) -> None:
        self.task, self.config = task, task.config
        self.vocab_size: int = self.config.vocab_size
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        names = [ENCODER, DECODER] if task.kind == "encoder-decoder" else [MODEL]
        sessions = [onnxruntime.InferenceSession(str(folder / name), options) for name in names]
        self.encoder = sessions[0] if len(sessions) == 2 else None
        self.model = sessions[-1]

    def initial_state(self, ids: NDArray[np.int64]) -> OnnxState:
        """The state before the first token: without keys and values; those of the source, if there is an encoder."""
        inputs: dict[str, NDArray[Any]] = {}
        if self.encoder is not None:
            mask = (ids != self.config.pad_id).astype(np.int64)
            keys_values = outputs_of(self.encoder, {"input_ids": ids, "attention_mask": mask})
            inputs = as_past(keys_values) | {"encoder_attention_mask": mask}
        for x in self.model.get_inputs():
            if x.name.startswith("past") and x.name not in inputs:
                inputs[x.name] = np.zeros((len(ids), x.shape[1], 0, x.shape[3]), np.float32)
        return OnnxState(inputs)

    def decode(self, ids: NDArray[np.int64], state: OnnxState) -> NDArray[np.float32]:
        """Logits of the next token after each of the given tokens: [rows, length, vocab]. Updates the state."""
        inputs = {"input_ids": ids}
        if self.encoder is None:
            n_past = state.inputs["past_key_values.0.key"].shape[2]
            inputs["attention_mask"] = np.ones((len(ids), n_past + ids.shape[1]), np.int64)
            inputs["position_ids"] = np.tile(np.arange(n_past, n_past + ids.shape[1]), (len(ids), 1))
        outputs = outputs_of(self.model, inputs | state.inputs)
        logits: NDArray[np.float32] = outputs.pop("logits")
        state.inputs |= as_past(outputs)
        return logits

    def start(self, sources: Sequence[Ids], n_hypotheses: int = 1) -> tuple[OnnxState, Ints]:
        """See `Decodable`."""
        src = np.array(sources, np.int64)
        state, last = self.initial_state(src), np.full(len(src), self.config.bos_id)
        if self.encoder is None:
            last = src[:, -1]
            if src.shape[1] > 1:
                self.decode(src[:, :-1], state)
        state.select(np.repeat(np.arange(len(src)), n_hypotheses))
        return state, np.repeat(last, n_hypotheses)

    def logits(self, ids: Ints, state: OnnxState) -> NDArray[np.float32]:
        """See `Decodable`."""
        return self.decode(ids[:, None], state)[:, -1]

    def generate(self, sources: Sequence[Ids], max_new_tokens: int) -> list[list[int]]:
        """See `ExportedModel`."""
        engine = self.task.engine(DecodeConfig(), self)
        decoded = engine.decode(Sources(sources, DecodeConfig(beam=1, max_length=max_new_tokens)))
        return [nbest[0].ids for nbest in decoded]

    def log_probs(self, sources: Sequence[Ids], outputs: Sequence[Ids]) -> list[list[float]]:
        """See `ExportedModel`."""
        results = []
        for source, output in zip(sources, outputs, strict=True):
            before = source if self.encoder is None else [self.config.bos_id]
            logits = self.decode(np.array([[*before, *output[:-1]]]), self.initial_state(np.array([source])))
            table = log_softmax(logits[0, len(before) - 1 :])
            results.append(table[range(len(output)), list(output)].tolist())
        return results

    def outputs(self, ids: Ids, token_type_ids: Ids) -> Outputs:
        """See `ExportedModel`."""
        rows = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": token_type_ids}
        inputs = {x.name: np.array([rows[x.name]]) for x in self.model.get_inputs()}
        return {name: array[0] for name, array in outputs_of(self.model, inputs).items()}


def outputs_of(session: Any, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Outputs of a session by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def as_past(present: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Outputs as inputs of the next step."""
    return {name.replace("present", "past_key_values"): array for name, array in present.items()}
