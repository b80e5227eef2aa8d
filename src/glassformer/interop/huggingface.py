"""Model folders of Hugging Face's transformers, in and out: tables of names, safetensors, no code from the folder."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from glassformer import checkpoint
from glassformer.config import describe
from glassformer.errors import CheckpointError, UserError
from glassformer.interop.architecture import Architecture, Head, Names, Record, Tensors
from glassformer.interop.architectures import ARCHITECTURES, type_of
from glassformer.interop.tokenizer import export_tokenizer, import_tokenizer
from glassformer.model_config import ModelConfig
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.tasks.base import Task
from glassformer.tasks.registry import load, task_class

N_NAMED = 8

MAX_VOCAB_PADDING = 1024
"""Rows of an embedding beyond the tokenizer's entries: vocabularies are padded to multiples of 8 to 1,024."""


def import_folder(source: Path, out: Path) -> Task:
    """Read a folder of transformers and write ours.

    Raises:
        CheckpointError: an unknown architecture, weights missing, left over, of other shapes or not finite, pickled
            weights, no tokenizer.
    """
    checkpoint.check_empty(out)
    task = read_folder(source)
    checkpoint.save_folder(out, task.contents())
    return task


def export_folder(folder: Path, out: Path) -> str:
    """Read a model folder of ours and write one that transformers' AutoModel and AutoTokenizer load.

    Returns:
        The name of the class of transformers that it is.

    Raises:
        UserError: transformers has no such model.
    """
    checkpoint.check_empty(out)
    contents = exported(load(folder, device="cpu"))
    checkpoint.save_folder(out, contents)
    return str(checkpoint.read_json(out / "config.json")["architectures"][0])


# In


def read_folder(source: Path) -> Task:
    """The task that a folder of transformers holds."""
    config = checkpoint.read_json(source / "config.json")
    with reading(source / "config.json"):
        architecture, head = find_head(config)
        task_name, labels = task_of(head, config)
    tensors = arranged(read_weights(source), architecture, source)
    tokenizer = import_tokenizer(source, config)
    sizes_type, model_type = FAMILIES[architecture.family]
    with reading(source / "config.json"):
        given = {**architecture.sizes(config, tensors), **head.sizes}
        if labels:
            given["n_labels"] = 1 if task_name == "regression" else len(labels)
        if head.task == "feature-extraction":
            given["pooler"] = any(name.endswith("pooler.dense.weight") for name in tensors)
        given |= {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
        sizes = sizes_type.model_validate(given)
    if tokenizer.vocab_size > sizes.vocab_size:
        raise CheckpointError(
            f"{source}: the tokenizer has {tokenizer.vocab_size:,} units, the embedding {sizes.vocab_size:,}."
        )
    n_missing = sizes.vocab_size - tokenizer.vocab_size
    if n_missing > MAX_VOCAB_PADDING or 2 * tokenizer.vocab_size < sizes.vocab_size:
        raise CheckpointError(
            f"{source}: the tokenizer has {tokenizer.vocab_size:,} entries, the vocabulary of the model"
            f" {sizes.vocab_size:,}: it is not the tokenizer of this model.\n"
            "  Put the tokenizer files that were published with the weights into the folder."
        )
    model = convert(model_type, sizes, tensors, (*head.names, *architecture.names(sizes)), architecture.ignored, source)
    return task_class(task_name)(model, tokenizer, "cpu", labels)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever is wrong with what a config says, as a CheckpointError that names the file."""
    try:
        yield
    except ValidationError as error:
        raise CheckpointError(f"{path}: {describe(error, {})}") from None
    except KeyError as error:
        raise CheckpointError(f"{path}: lacks {error}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: damaged: {error}.") from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def find_head(config: Record) -> tuple[Architecture, Head]:
    """What the folder holds, by `model_type` and `architectures`."""
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES:
        raise CheckpointError(
            f"model_type {kind!r} is not one that this version knows.\n  Known are {', '.join(ARCHITECTURES)}."
        )
    heads = ARCHITECTURES[kind].heads
    name = (config.get("architectures") or [next(iter(heads))])[0]
    if name not in heads:
        raise CheckpointError(
            f"architecture {name!r} is not one that this version knows.\n  Known of {kind} are {', '.join(heads)}."
        )
    return ARCHITECTURES[kind], heads[name]


def task_of(head: Head, config: Record) -> tuple[str, tuple[str, ...]]:
    """Our task and its labels."""
    if head.task not in ("classification", "tagging"):
        return head.task, ()
    table = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(int(config.get("num_labels", 2)))}
    labels = tuple(str(table[key]) for key in sorted(table, key=int))
    kind = config.get("problem_type")
    if kind == "multi_label_classification" or (kind == "regression" and len(labels) > 1):
        raise CheckpointError(f"problem_type {kind!r} with {len(labels)} labels: this version answers with one.")
    if head.task == "classification" and (kind == "regression" or len(labels) == 1):
        return "regression", ("-0.5", "0.5")  # the range in which the head's number is the answer itself
    return head.task, labels


def read_weights(source: Path) -> Tensors:
    """All tensors of a folder's safetensors files, in fp32."""
    files = sorted(source.glob("model*.safetensors"))
    if not files and (source / "pytorch_model.bin").exists():
        raise CheckpointError(
            f"{source / 'pytorch_model.bin'}: a pickle, which can run code when it is read; refused.\n"
            "  Convert it where you trust it, by the class that config.json names under architectures:\n"
            '  python -c "from transformers import CLASS as M; '
            f"M.from_pretrained('{source}').save_pretrained('{source}')\""
        )
    if not files:
        raise CheckpointError(f"{source}: no model.safetensors.")
    tensors: Tensors = {}
    for file in files:
        for name, value in checkpoint.read_tensors(file).items():
            if value.is_floating_point():
                value = value.float()
                if not value.isfinite().all():
                    raise CheckpointError(f"{file}: the weight {name} holds values that are not finite numbers.")
            tensors[name] = value
    return tensors


def arranged(tensors: Tensors, architecture: Architecture, source: Path) -> Tensors:
    """Their tensors under the names and in the layout that the tables know."""
    body = architecture.body
    if not any(name.startswith(body) for name in tensors):
        tensors = {body + name: value for name, value in tensors.items()}
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):  # of BERT's first files
        tensors = {re.sub(rf"\{old}$", new, name): value for name, value in tensors.items()}
    for copy, name in architecture.copies.items():
        copy = copy if copy in tensors else body + copy
        if copy not in tensors:
            continue
        if name not in tensors:
            tensors[name] = tensors.pop(copy)
        elif torch.equal(tensors[copy], tensors[name]):
            del tensors[copy]
        elif architecture.family != "t5":  # which may have an output matrix of its own
            raise CheckpointError(f"{source}: {copy} and {name} differ: this version has one matrix for both.")
    try:
        return architecture.unpack(tensors)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(f"{source}: its weights are not those of its architecture: {error}.") from None


def convert(
    model_type: type[Model], sizes: ModelConfig, tensors: Tensors, table: Names, ignored: str, source: Path
) -> Model:
    """Our model with their weights."""
    with torch.device("meta"):
        wanted = {name: tuple(tensor.shape) for name, tensor in model_type(sizes).state_dict().items()}
    theirs = {name: translate(name, table) for name in wanted}
    used = set(theirs.values())
    rows = [f"  missing: {name}" for name in theirs.values() if name not in tensors]
    rows += [f"  left over: {name}" for name in tensors if name not in used and not re.fullmatch(ignored, name)]
    for name, their_name in theirs.items():
        if their_name in tensors and tuple(tensors[their_name].shape) != wanted[name]:
            rows.append(f"  {their_name}: {tuple(tensors[their_name].shape)}, by config.json {wanted[name]}")
    if rows:
        more = [f"  and {len(rows) - N_NAMED} more"] if len(rows) > N_NAMED else []
        raise CheckpointError(
            f"{source}: its weights are not those of its architecture:\n" + "\n".join(rows[:N_NAMED] + more)
        )
    return model_type.from_state_dict(sizes, {name: tensors[theirs[name]] for name in wanted})  # type: ignore[no-any-return]


def translate(name: str, table: Iterable[tuple[str, str]]) -> str:
    """Our name of a tensor as theirs."""
    layer = re.search(r"\.(\d+)\.", name)
    number = layer.group(1) if layer else ""
    for ours, theirs in table:
        ours, theirs = ours.replace("{i}", number), theirs.replace("{i}", number)
        if name == ours:
            return theirs
        if name.startswith(ours + ".") and name[len(ours) + 1 :] in ("weight", "bias"):
            return theirs + name[len(ours) :]
    raise ValueError(f"no name of theirs for {name}")


# Out


def exported(task: Task) -> dict[str, str | Tensors]:
    """The files of a folder of transformers."""
    kind = type_of(task.model)
    architecture, sizes = ARCHITECTURES[kind], task.model.config
    alike = {"regression": "classification", "summarization": "causal-lm"}.get(task.name, task.name)
    name, head = next(((k, h) for k, h in architecture.heads.items() if h.task == alike), (None, None))
    if name is None or head is None:
        raise UserError(f"{task.name} by {kind}: transformers has no such model, so it cannot be exported to it.")
    if head.sizes.get("head") == "sequence" and (sizes.pooling != "first" or not sizes.pooler):
        raise UserError(
            f"{task.name}: transformers' {name} judges by the first token, through a dense layer; this model by the"
            f" {'mean of all' if sizes.pooling == 'mean' else 'token itself'}.\n"
            "  Train it with --pooling first from a model that has that layer."
        )
    config = {"architectures": [name], **architecture.config(sizes)}
    if head.task in ("classification", "tagging"):
        labels = ["LABEL_0"] if task.name == "regression" else list(task.labels)
        config |= {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if task.name == "regression":
        config["problem_type"] = "regression"
    contents: dict[str, str | Tensors] = {
        "config.json": checkpoint.to_json(config),
        "model.safetensors": their_weights(task, architecture, head),
        **export_tokenizer(task.tokenizer, task.name, sizes),
    }
    if hasattr(task.model, "step"):
        contents["generation_config.json"] = checkpoint.to_json(generation_config(task))
    return contents


def their_weights(task: Task, architecture: Architecture, head: Head) -> Tensors:
    """Our weights under their names and in their layout."""
    sizes = task.model.config
    ours = dict(task.model.state_dict())
    if head.sizes.get("pooler") is False:
        ours = {name: value for name, value in ours.items() if not name.startswith("pooler.")}
    if task.name == "regression":  # the number itself, where ours is a place in the range of the training labels
        low, high = map(float, task.labels)
        ours["classifier.weight"] = ours["classifier.weight"] * (high - low)
        ours["classifier.bias"] = low + (ours["classifier.bias"] + 0.5) * (high - low)
    table = (*head.names, *architecture.names(sizes))
    return architecture.pack(sizes, {translate(name, table): value.clone() for name, value in ours.items()})


def generation_config(task: Task) -> dict[str, Any]:
    """What their `generate` is to do unless told otherwise: what ours does."""
    c = task.model.config
    special = {"bos_token_id": c.bos_id, "eos_token_id": c.eos_id, "pad_token_id": c.pad_id, "max_length": c.max_len}
    never = sorted({c.pad_id, c.bos_id} - {c.eos_id})
    if never:
        special["bad_words_ids"] = [[token] for token in never]
    return special | ({"decoder_start_token_id": c.bos_id, "num_beams": 4} if hasattr(c, "n_decoder_layers") else {})
