"""The model of a page: a header in JSON, and the tables of its programs as the kernels read them.

8 bytes with the length of the header; the header; the tables, each at a multiple of ALIGNMENT bytes. The page has the
counterparts of `kernels.program` and `generate.search` in JavaScript, and executes the same lowered programs.
"""

import json
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from glassformer.browser.patterns import patterns
from glassformer.browser.tokenizer_record import tokenizer_record
from glassformer.config import JsonObject
from glassformer.corpora.words import COMMON, script_of
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.generate.engine import MORE_TOKENS
from glassformer.kernels.program import Array, Instruction, Kind, Place, address
from glassformer.kernels.quantize import EXCLUDED, aligned_copy
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph import Attend, Linear
from glassformer.runtime.model import RuntimeModel
from glassformer.runtime.program import Program
from glassformer.tasks.base import AnyTask
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.classification import LabelTask
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.masked_lm import MaskedLM
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.summarization import Summarizer
from glassformer.tasks.translation import Translator
from glassformer.tokens.codes import code_ids
from glassformer.tokens.tags import tags_of
from glassformer.version import __version__

FORMAT = 1
ALIGNMENT = 64
STRIP = 8
"""Columns of a weight that lie together in WebAssembly: kernels/product.h."""
RuntimeT = TypeVar("RuntimeT", RuntimeModel, RuntimeEncoder)
SIZES = ("n_layers", "n_encoder_layers", "n_decoder_layers", "n_heads", "d_model")


class TableFile:
    """Tables one after another. One that several instructions use is there once."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.arrays: list[Array] = []
        """Keeps the addresses in use."""
        self.size = 0

    def add(self, array: Array | None) -> int:
        """Offset of a table, in bytes; -1 for none."""
        if array is None:
            return -1
        key = address(array)
        assert key is not None
        if key not in self.offsets:
            self.offsets[key] = self.size
            self.arrays.append(in_strips(array) if array.ndim == 4 else array)
            self.size += array.nbytes + -array.nbytes % ALIGNMENT
        return self.offsets[key]

    def parts(self) -> Iterator[bytes]:
        """The content."""
        for array in self.arrays:
            yield np.ascontiguousarray(array).tobytes() + bytes(-array.nbytes % ALIGNMENT)


def in_strips(panels: Array) -> Array:
    """The panels of a weight of bytes in the order of WebAssembly: [n / 64][64 / STRIP][k / 4][STRIP][4]."""
    n, k, width, bytes_ = panels.shape
    return panels.reshape(n, k, width // STRIP, STRIP, bytes_).transpose(0, 2, 1, 3, 4)


def model_file(task: AnyTask, name: str = "") -> bytes:
    """The file of a model.

    Args:
        name: name of the model.

    Raises:
        ConfigError: the page has not all that the model needs.
    """
    tables = TableFile()
    header: JsonObject = {
        "format": FORMAT,
        "version": __version__,
        "name": name,
        "task": task.name,
        "pipeline": task.pipelines[0] if task.pipelines else None,
        "max_len": task.config.max_len,
        "vocab_size": task.config.vocab_size,
        "bos": task.config.bos_id,
        "eos": task.tokenizer.eos_id,
        "tokenizer": tokenizer_record(task.tokenizer),
        "sizes": {name: x for name, x in task.config.model_dump().items() if name in SIZES},
        "family": task.source.family,
    }
    if isinstance(task, Translator):
        header |= translator_header(task, tables)
    elif isinstance(task, EncoderTask):
        header |= encoder_header(task, tables)
    elif isinstance(task, LanguageModel | Summarizer):
        header |= decoder_header(task, tables)
    else:
        raise ConfigError(f"a page cannot have a model for {task.name}.\n  Use its folder: glassformer run, serve.")
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return b"".join([struct.pack("<Q", len(text)), text, *tables.parts()])


def runtime_of(task: AnyTask, kind: type[RuntimeT]) -> RuntimeT:
    """The model of a task in int8, as programs of kernels.

    Raises:
        ConfigError: it has operations without a kernel.
    """
    try:
        model = task.source.in_precision("int8")
    except ConfigError:  # it advises another precision
        model = None
    if not isinstance(model, kind):
        raise ConfigError(
            f"{task.source.family}: a page can have models whose operations have kernels: transformer, t5, bert, gpt2"
            " and llama."
        )
    return model


def translator_header(task: Translator, tables: TableFile) -> JsonObject:
    """What the header of a translator has besides."""
    model = runtime_of(task, RuntimeModel)
    decode, defaults = model.decode, DecodeConfig()
    assert model.encode
    pre_norm = getattr(task.config, "pre_norm", True)
    return {
        "languages": list(task.languages),
        "tags": tags_of(task.tokenizer),
        "codes": [*code_ids(task.tokenizer).values()],
        "more_tokens": MORE_TOKENS,
        "n_sentences": task.n_sentences,
        "beam": defaults.beam,
        "length_penalty": defaults.length_penalty,
        "patterns": patterns(),
        "words": task.words.to_record() if task.words else None,
        "letters": letters(task.scripts or task.scripts_of_vocabulary),
        "translates_letterless": COMMON in (task.scripts or ()),
        "confidence": asdict(task.confidence) if task.confidence else None,
        "n_own_caches": model.n_layers,
        "encode": program_record(model.encode, stored_instructions(model.encode), tables),
        "decode": program_record(decode, best_instructions(decode, task.banned_ids), tables),
        "score": program_record(decode, decode.instructions, tables),
        "lens": program_record(decode, output_layer_of(decode, has_norm=pre_norm), tables),
        "read_source": reading_record(model.encode, 1, "encoder", tables, pre_norm=pre_norm),
        "read_target": reading_record(
            decode, model.n_layers, "decoder", tables, cross_projections(model, tables), pre_norm=pre_norm
        ),
    }


def decoder_header(task: LanguageModel | Summarizer, tables: TableFile) -> JsonObject:
    """What the header of a task by a decoder-only model has besides."""
    model, defaults = runtime_of(task, RuntimeModel), task.with_default_options(None)
    decode = model.decode
    header: JsonObject = {
        "top_k": defaults.top_k,
        "no_repeat": defaults.no_repeat_ngram_size,
        "has_start": task.tokenizer.bos_id != task.tokenizer.eos_id,
        "ends": [task.tokenizer.eos_id, *task.end_ids],
        "prefill": program_record(decode, stored_instructions(decode), tables),
        "decode": program_record(decode, best_instructions(decode, task.banned_ids), tables),
        "score": program_record(decode, decode.instructions, tables),
        "lens": program_record(decode, output_layer_of(decode, has_norm=True), tables),
        "read_target": reading_record(decode, model.n_layers, "decoder", tables, pre_norm=True),
    }
    if isinstance(task, Summarizer):
        header |= {"max_summary": task.max_new_tokens(defaults), "longest_source": task.longest_trained_source}
    return header


def best_instructions(program: Program, banned_ids: Sequence[int]) -> list[Instruction]:
    """The instructions of a decoding step that ends with the most probable tokens, without some."""
    *others, last = program.instructions
    bias = np.array(last.tables[2])
    bias[list(banned_ids)] = EXCLUDED
    return [*others, replace(last, kind=Kind.BEST, tables=(*last.tables[:2], aligned_copy(bias), *last.tables[3:]))]


def encoder_header(task: EncoderTask[Any], tables: TableFile) -> JsonObject:
    """What the header of a task by an encoder has besides."""
    encoder = runtime_of(task, RuntimeEncoder)
    program, head, pre_norm = encoder.program, encoder.heads.get("head"), task.config.pre_norm
    header: JsonObject = {
        "max_len": task.max_len,
        "labels": list(task.labels),
        "inputs": list(task.inputs) if isinstance(task, LabelTask) else [],
        "pooling": "first" if task.takes_first else "mean",
        "n_separators": task.n_separators,
        "max_type": encoder.max_type,
        "encode": program_record(program, program.instructions, tables),
        "read_source": reading_record(program, len(program.cache_widths), "encoder", tables, pre_norm=pre_norm),
        "lens": program_record(program, output_layer_of(program, has_norm=True), tables) if pre_norm else None,
        "head": program_record(head, head.instructions, tables) if head else None,
    }
    if isinstance(task, MaskedLM):
        header |= {
            "mask_id": task.mask_id, "masks": task.masks, "tokens_include_space": task.tokens_include_space,
        }  # fmt: skip
    if isinstance(task, QuestionAnswerer):
        header["may_find_none"] = task.may_find_none
    return header


def stored_instructions(program: Program) -> list[Instruction]:
    """The instructions of a program that is executed for its effect on the caches."""
    return program.instructions[: -1 if program.instructions[-1].kind == Kind.PRODUCT else None]


def program_record(program: Program, instructions: Sequence[Instruction], tables: TableFile) -> JsonObject:
    """A program in the header."""
    records = [
        {
            "kind": int(x.kind), "out": [x.out.buffer, x.out.column], "a": [x.a.buffer, x.a.column],
            "b": [x.b.buffer, x.b.column], "n": int(x.n), "m": int(x.m), "option": int(x.option), "cache": int(x.cache),
            "number": float(x.number), "group": int(x.group), "reach": int(x.reach), "activation": int(x.activation),
            "tables": [tables.add(table) for table in x.tables],
        }
        for x in instructions
    ]  # fmt: skip
    written = [x for x in instructions if x.kind != Kind.BEST]
    scales = {x.out.buffer + 1 for x in written if x.kind == Kind.QUANTIZE}
    used = {x.out.buffer for x in written} | scales  # no memory for the others
    widths = [int(width) if i in used else 1 for i, width in enumerate(program.lowered.widths)]
    return {"widths": widths, "cache_widths": list(map(int, program.cache_widths)), "instructions": records}


def output_layer_of(program: Program, *, has_norm: bool) -> list[Instruction]:
    """The instructions that compute the logits from the output of any layer.

    Args:
        has_norm: the output of the last layer is normalized before.
    """
    instructions = program.instructions
    norm = max(i for i, x in enumerate(instructions) if x.kind == Kind.NORMALIZE)
    last = sub_layer_outputs(instructions, pre_norm=has_norm)[-1]
    first = Instruction(Kind.GATHER, instructions[last].out, n=instructions[norm].n, tables=(None, None, None))
    return [first, *instructions[norm if has_norm else norm + 1 :]]


def sub_layer_outputs(instructions: Sequence[Instruction], *, pre_norm: bool) -> list[int]:
    """Indices of the instructions that compute the outputs of the sub-layers: sums with the residual stream, of
    post-norm models normalized."""
    sums = [i for i, x in enumerate(instructions) if x.kind == Kind.PRODUCT and x.b.buffer >= 0]
    norms = [i for i, x in enumerate(instructions) if x.kind == Kind.NORMALIZE]
    return sums if pre_norm else [next(norm for norm in norms if norm > i) for i in sums]


def reading_record(
    program: Program,
    n_own: int,
    stack: str,
    tables: TableFile,
    projections: Sequence[JsonObject] = (),
    *,
    pre_norm: bool,
) -> JsonObject:
    """A program that also copies the input of the first layer, the queries of each attention, the keys and values of
    self-attention, and the output of each sub-layer, without an output layer; and where they are. From these, the
    page computes attention weights, alignments and the predictions of each layer.

    Args:
        n_own: number of caches of the own sequence, which come before those of the source.
        stack: encoder or decoder.
        projections: output projections of cross-attention.
    """
    instructions: list[Instruction] = []
    widths = list(program.lowered.widths)
    attentions: list[JsonObject] = []
    stream: list[list[object]] = []
    stored, first_input = (-1, -1), -1
    sub_layers = ("self_attn", "cross_attn", "feedforward") if projections else ("self_attn", "feedforward")

    def copied(place: Place, n: int) -> int:
        widths.append(n)
        instructions.append(Instruction(Kind.SCALE, Place(len(widths) - 1), place, n=n, number=1.0))
        return len(widths) - 1

    found = stored_instructions(program)
    outputs = sub_layer_outputs(found, pre_norm=pre_norm)
    for i, x in enumerate(found):
        if x.kind == Kind.STORE and x.cache < n_own:
            stored = copied(x.a, x.n), copied(x.b, x.n)
        if x.kind == Kind.ATTEND:
            is_own, n_heads = x.cache < n_own, x.n // x.m
            kind = stack if is_own else "cross"
            layer = sum(other["kind"] == kind for other in attentions)
            record: JsonObject = {
                "kind": kind, "layer": layer, "cache": x.cache,
                "n_heads": n_heads, "n_kv_heads": n_heads // x.group, "d_head": x.m, "scale": float(x.number),
                "queries": copied(x.a, x.n), "keys": stored[0] if is_own else -1, "values": stored[1] if is_own else -1,
                "reach": x.reach, "bias": tables.add(x.tables[0]) if x.tables else -1,
            }  # fmt: skip
            attentions.append(record if is_own else record | {"projection": projections[layer]})
        if first_input < 0 and x.kind == Kind.PRODUCT and x.b.buffer >= 0:  # the first sum with the residual stream
            first_input = copied(x.b, x.n)
        instructions.append(x)
        if i in outputs:
            layer, part = divmod(len(stream), len(sub_layers))
            stream.append([f"{stack}.{layer}.{sub_layers[part]}_residual", copied(x.out, x.n)])
    record = program_record(program, instructions, tables)
    n = len(program.lowered.widths)
    record |= {"widths": record["widths"] + widths[n:], "attentions": attentions, "stream": stream}
    return record | {"first_input": first_input}


def cross_projections(model: RuntimeModel, tables: TableFile) -> list[JsonObject]:
    """Where the weights of the output projections of cross-attention are: the tables of a product, and the first of its
    columns."""
    step = model.graph.programs["step"]
    attentions = [x for x in step if isinstance(x, Attend) and x.side == "source"]
    return [projection_record(model, attention, tables) for attention in attentions]


def projection_record(model: RuntimeModel, attention: Attend, tables: TableFile) -> JsonObject:
    """Where the weight of the output projection of an attention is."""
    weight = next(y.weight for y in model.graph.programs["step"] if isinstance(y, Linear) and y.x is attention)
    for matrix, (panels, scale, _) in model.tables.bytes.values():
        for (table, _), column in zip(matrix.layers, matrix.columns, strict=True):
            if table.name == weight.name:
                offsets = [tables.add(panels), tables.add(scale)]
                return {"tables": offsets, "column": column, "width": weight.shape[1]}
    raise AssertionError(weight.name)


def letters(scripts: Sequence[str] | None) -> str | None:
    """The letters of scripts, as the inside of a class of a regular expression. None: all letters are."""
    if scripts is None:
        return None
    codes = [i for i in range(sys.maxunicode + 1) if chr(i).isalpha() and script_of(chr(i)) in scripts]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in ranges)
