"""Functions of bytes, as in `targets.py`, for the files of models: graphs, weights, folders of ours and of others."""

import contextlib
import hashlib
import json
import math
import shutil
import warnings
from functools import cache
from typing import Any

import numpy as np

from glassformer import checkpoint
from glassformer.errors import CheckpointError, UserError
from glassformer.kernels.library import load as load_kernels
from glassformer.manifest import MANIFEST
from glassformer.runtime.arrays import read_arrays
from glassformer.runtime.graph_file import from_json
from glassformer.runtime.stored import WEIGHTS_FILE, StoredModel
from glassformer.tasks.registry import load
from glassformer.tokens.tokenizer import MASK, Tokenizer
from tests.fuzz.inputs import FOLDER, Choices, chosen
from tests.runtime import fuzz as graphs

TEXTS = ["the cat sat on a mat", "le chat noir"]
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 18, "n_layers": 1, "max_len": 9}
SIZES |= {"n_encoder_layers": 1, "n_decoder_layers": 1, "n_kv_heads": 2, "d_head": 8}
MAX_ARRAY_BYTES = 1 << 20


@cache
def recorded() -> list[Any]:
    """Graphs of small models of all families: entry, constants, config."""
    folder = FOLDER / "graphs"
    folder.mkdir()
    graphs.seeds(folder)
    return list(graphs.read_seeds(folder))


def program(data: bytes) -> None:
    """The first byte chooses a graph. The others change it, or are JSON if they begin with "{"."""
    (entry, constants, config), data = recorded()[data[0] % len(recorded()) if data else 0], data[1:]
    if data[:1] == b"{":
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            return
        record |= {"version": 1, "config": entry["record"]["config"]}
    else:
        record, choices = json.loads(json.dumps(entry["record"])), Choices(data[:40])
        while choices.are_left:
            graphs.mutate(record, choices)
    try:
        graph = from_json(record, entry["hash"], constants)
    except CheckpointError:
        return
    largest = max((size for shape in graph.weights.values() for size in shape), default=0)
    if largest > graphs.MAX_SIZE or sum(map(len, graph.programs.values())) > graphs.MAX_OPERATIONS:
        return
    # ValueError: for instance, a changed width of the output layer makes the first token one that does not exist.
    with contextlib.suppress(CheckpointError, ValueError, MemoryError):
        graphs.execute(graph, config, len(data))


@cache
def task(name: str, family: str) -> Any:
    """An untrained task with random weights."""
    import torch

    from glassformer.models.families import FAMILIES
    from glassformer.tasks.registry import task_class

    kind = task_class(name)
    tokenizer = Tokenizer.train(TEXTS, kind="char", extra_special_tokens=[MASK])
    labels = ("no", "yes") if kind.has_classes else ()
    config_class = FAMILIES[family].config_class
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    given = {**SIZES, **kind.head_config, **ids, "vocab_size": tokenizer.vocab_size, "n_labels": len(labels)}
    config = config_class(**{name: value for name, value in given.items() if name in config_class.model_fields})
    torch.manual_seed(3)
    model = FAMILIES[family](config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return kind(model, tokenizer, "cpu", labels)


KINDS = [("translation", "transformer"), ("classification", "bert"), ("causal-lm", "gpt2")]


@cache
def saved(i: int, precision: str) -> tuple[bytes, Any, Any]:
    """File of the weights of a task, its model, and its graph."""
    made = task(*KINDS[i])
    contents = made.contents(precision=precision)
    return checkpoint.to_bytes(contents[WEIGHTS_FILE]), made.source, made.source.graph


def weights(data: bytes) -> None:
    """A file of weights. The first byte chooses what the others are: a file, its header, or changes of a right one."""
    kind, data = chosen(data, ["file", "header", "fp32", "int8"])
    folder = FOLDER / "weights"
    folder.mkdir(exist_ok=True)
    path = folder / WEIGHTS_FILE
    path.unlink(missing_ok=True)
    if kind == "file":
        path.write_bytes(data)
    elif kind == "header":
        path.write_bytes(len(data).to_bytes(8, "little") + data + bytes(declared_bytes(data)))
    if kind in ("file", "header"):
        with contextlib.suppress(CheckpointError):
            for array in read_arrays(path).values():
                array.sum()
        return
    choices = Choices(data[:100])
    content, model, graph = saved(choices.randrange(len(KINDS)), kind)
    changed = bytearray(content)
    while choices.are_left:
        changed[choices.randrange(len(changed))] ^= choices.randrange(256)
    path.write_bytes(changed)
    with contextlib.suppress(CheckpointError), np.errstate(all="ignore"):
        is_int8 = kind == "int8"
        stored = StoredModel(folder, model.family, model.config, graph, is_int8=is_int8)
        graphs.use(stored.programs(load_kernels()[0], is_quantized=is_int8 or choices.position % 2 > 0), model.config)


def declared_bytes(header: bytes) -> int:
    """Number of bytes that a header says its arrays have, within limits."""
    try:
        ends = [entry["data_offsets"][1] for entry in json.loads(header).values()]
        return min(max(0, *ends, 0), MAX_ARRAY_BYTES)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return 0


@cache
def folder_contents(i: int) -> dict[str, bytes]:
    """The files of a folder of ours."""
    from glassformer.corpora.language_id import LanguageProfiles
    from glassformer.corpora.spelling import KnownWords
    from glassformer.tasks.confidence import N_FEATURES, Confidence

    made = task(*KINDS[i])
    if KINDS[i][0] == "translation":
        made.languages, made.scripts = ("en", "fr"), ("LATIN",)
        made.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.1,) * (N_FEATURES + 1), 9)
        made.words = KnownWords.of(["the cat saw the dogs"], ["le chat a vu les chiens"])
        made.detection = LanguageProfiles.from_json(
            '{"en": {"total": 9, "counts": {"th": 2}}, "fr": {"total": 5, "counts": {"le": 3}}}'
        )
    return {name: checkpoint.to_bytes(content) for name, content in made.contents().items()}


FILES = [
    "config.json", "tokenizer.json", "tokenizer_config.json", "programs.json", "programs.safetensors", "manifest.json",
    "confidence.json", "languages.json", "words.json",
]  # fmt: skip
"""Files of a folder of ours that are changed; weights have a target of their own."""


def folder(data: bytes) -> None:
    """A folder of ours whose checksums are right. The first byte chooses the model, the second the file."""
    i = (data[0] if data else 0) % len(KINDS)
    name, content = chosen(data[1:], FILES)
    files = folder_contents(i) | {name: content}
    where = FOLDER / "model"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    for each, text in files.items():
        (where / each).write_bytes(text)
    if name != MANIFEST:
        sums = {each: {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()} for each, text in files.items()}
        (where / MANIFEST).write_text(json.dumps({"format_version": 2, "files": sums}))
    with contextlib.suppress(UserError), np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        found = load(where, device="cpu")
        found.run(["a cat", "teh dgos"])
        if detection := getattr(found, "detection", None):
            assert all(math.isfinite(probability) for _, probability in detection.detect("the cat"))


OTHERS = {"bert": "masked-lm", "gpt2": "causal-lm", "llama": "causal-lm", "t5": "translation"}
"""Families of folders of Hugging Face -> task."""

THEIR_FILES = [
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json",
    "merges.txt", "added_tokens.json", "generation_config.json", "spiece.model",
]  # fmt: skip
VOCABULARIES = {"vocab.txt", "vocab.json", "merges.txt", "spiece.model"}
"""Files in place of tokenizer.json."""


@cache
def their_contents(family: str) -> dict[str, bytes]:
    """The files of a folder of Hugging Face."""
    from glassformer.interop.huggingface import hf_folder_contents

    made = task(OTHERS[family], family)
    vocabulary = made.tokenizer.backend.get_vocab()
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    files = {name: checkpoint.to_bytes(content) for name, content in hf_folder_contents(made).items()}
    return files | {
        "vocab.json": json.dumps(vocabulary).encode(), "vocab.txt": "\n".join(names).encode(),
        "merges.txt": b"#version: 0.2\na t\nc a\n", "special_tokens_map.json": b'{"unk_token": "<unk>"}',
        "added_tokens.json": b'{"<x>": 300}',
    }  # fmt: skip


def imported(data: bytes) -> None:
    """A folder of Hugging Face. The first byte chooses the family, the second the file."""
    from glassformer.interop.huggingface import load_hf_folder

    family = list(OTHERS)[(data[0] if data else 0) % len(OTHERS)]
    name, content = chosen(data[1:], THEIR_FILES)
    where = FOLDER / "theirs"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    used = set(their_contents(family)) - (VOCABULARIES if name not in VOCABULARIES else {"tokenizer.json"})
    for each in used:
        (where / each).write_bytes(their_contents(family)[each])
    (where / name).write_bytes(content)
    with contextlib.suppress(UserError), warnings.catch_warnings(action="ignore"):
        load_hf_folder(where).tokenizer.encode("the cat")
