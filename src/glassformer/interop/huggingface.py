"""Model folders of Hugging Face's transformers, in and out: tables of names, safetensors, no code from the folder."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import describe
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop import names as n
from glassformer.interop.tokens import import_tokenizer
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.sizes import BertConfig, Sizes
from glassformer.tasks.base import Task
from glassformer.tasks.registry import task_type

Record = dict[str, Any]
Tensors = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a `model_type` of config.json is read and written."""

    family: str
    names: Callable[[Any], n.Names]
    """Of our sizes, the table of names."""
    sizes: Callable[[Record, str], Record]
    """Of their config and our task, our sizes."""
    config: Callable[[Any], Record]
    """Of our sizes, their config."""
    prefix: str = ""
    """Of the body's names; a model saved without a head leaves it out."""
    ignored: str = r"$^"
    """Names in their folder that carry nothing of their own."""


def bert_sizes(c: Record, task: str) -> Record:
    """BertConfig of a BERT's or RoBERTa's config.json."""
    if c.get("position_embedding_type", "absolute") != "absolute" or c.get("is_decoder"):
        raise CheckpointError("a BERT with relative positions or a decoder's mask is not one that this version knows.")
    offset = c["pad_token_id"] + 1 if c["model_type"] == "roberta" else 0
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["hidden_size"],
        "n_heads": c["num_attention_heads"],
        "d_ff": c["intermediate_size"],
        "n_layers": c["num_hidden_layers"],
        "max_len": c["max_position_embeddings"] - offset,
        "first_position": offset,
        "n_types": c["type_vocab_size"],
        "activation": ACTIVATIONS[c["hidden_act"]],
        "norm_eps": c["layer_norm_eps"],
        "dropout": c.get("hidden_dropout_prob", 0.1),
    }


def distilbert_sizes(c: Record, task: str) -> Record:
    """BertConfig of a DistilBERT's config.json."""
    return {
        "vocab_size": c["vocab_size"],
        "d_model": c["dim"],
        "n_heads": c["n_heads"],
        "d_ff": c["hidden_dim"],
        "n_layers": c["n_layers"],
        "max_len": c["max_position_embeddings"],
        "n_types": 0,
        "activation": ACTIVATIONS[c["activation"]],
        "dropout": c.get("dropout", 0.1),
        "pooler": False,
    }


def bert_config(c: BertConfig) -> Record:
    """config.json of a BERT with our sizes."""
    return {
        "model_type": "bert",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "max_position_embeddings": c.max_len,
        "type_vocab_size": c.n_types,
        "hidden_act": "gelu" if c.activation == "gelu" else "gelu_new",
        "layer_norm_eps": c.norm_eps,
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": c.pad_id,
    }


ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}

ARCHITECTURES = {
    "bert": Architecture(
        "bert", lambda c: n.BERT, bert_sizes, bert_config, "bert.", r".*position_ids|cls\.predictions\.decoder\..*"
    ),
    "roberta": Architecture(
        "bert", lambda c: n.ROBERTA, bert_sizes, bert_config, "roberta.", r".*position_ids|lm_head\.decoder\..*"
    ),
    "distilbert": Architecture(
        "bert", lambda c: n.DISTILBERT, distilbert_sizes, bert_config, "distilbert.", r"vocab_projector\.weight"
    ),
}

HEADS: dict[str, tuple[str, Record, n.Names]] = {
    "Model": ("features", {"head": "none"}, ()),
    "ForMaskedLM": ("fill", {"head": "words", "pooler": False}, ()),
    "ForPreTraining": ("fill", {"head": "words", "n_labels": 2}, (("labels", "cls.seq_relationship"),)),
    "ForSequenceClassification": ("classification", {"head": "sequence"}, (("labels", "classifier"),)),
    "ForTokenClassification": ("tagging", {"head": "tokens", "pooler": False}, (("labels", "classifier"),)),
    "ForQuestionAnswering": (
        "answer",
        {"head": "span", "pooler": False, "n_labels": 2},
        (("labels", "qa_outputs"),),
    ),
}
"""Of the end of an architecture's name: our task, sizes that it decides, the names of its head."""


def import_folder(source: Path, out: Path) -> Task:
    """Read a folder of transformers and write ours.

    Raises:
        CheckpointError: an unknown architecture, weights missing, left over, of other shapes or not finite, pickled
            weights, no tokenizer.
    """
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out}: not empty.\n  --out names a new folder.")
    task = read_folder(source)
    checkpoint.save_folder(out, task.contents())
    return task


def read_folder(source: Path) -> Task:
    """The task that a folder of transformers holds."""
    config = checkpoint.read_json(source / "config.json")
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES:
        raise CheckpointError(
            f"{source / 'config.json'}: model_type {kind!r} is not one that this version knows.\n"
            f"  Known are {', '.join(ARCHITECTURES)}."
        )
    architecture = ARCHITECTURES[kind]
    named = (config.get("architectures") or ["Model"])[0]
    ending = next((end for end in HEADS if str(named).endswith(end)), None)
    if ending is None:
        raise CheckpointError(f"{source / 'config.json'}: {named} is not one that this version knows.")
    task_name, decided, head_names = HEADS[ending]
    labels = labels_of(config) if ending in ("ForSequenceClassification", "ForTokenClassification") else ()
    if config.get("problem_type") == "regression" or (task_name == "classification" and len(labels) == 1):
        task_name, labels = "regression", ("0.0", "1.0")
    tokenizer = import_tokenizer(source, config)
    sizes_type, model_type = FAMILIES[architecture.family]
    given = {**architecture.sizes(config, task_name), **decided}
    given |= {"n_labels": 1 if task_name == "regression" else len(labels)} if labels else {}
    given |= {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    theirs = read_weights(source)
    if not any(key.startswith(architecture.prefix) for key in theirs):
        theirs = {architecture.prefix + key: value for key, value in theirs.items()}
    if decided.get("head") == "none" and f"{architecture.prefix}pooler.dense.weight" not in theirs:
        given["pooler"] = False
    try:
        sizes = sizes_type.model_validate(given)
    except (ValidationError, KeyError) as error:
        message = describe(error, {}) if isinstance(error, ValidationError) else f"lacks {error}"
        raise CheckpointError(f"{source / 'config.json'}: {message}") from None
    if tokenizer.vocab_size > sizes.vocab_size:
        raise CheckpointError(
            f"{source}: the tokenizer has {tokenizer.vocab_size:,} units, the embedding {sizes.vocab_size:,}."
        )
    model = convert(model_type, sizes, theirs, (*architecture.names(sizes), *head_names), architecture.ignored, source)
    return task_type(task_name)(model, tokenizer, "cpu", labels)


def convert(
    model_type: type[Model], sizes: Sizes, theirs: Tensors, table: n.Names, ignored: str, source: Path
) -> Model:
    """Our model with their weights."""
    with torch.device("meta"):
        wanted = list(model_type(sizes).state_dict())
    ours = {}
    missing = []
    for name in wanted:
        their_name = translate(name, table)
        if their_name in theirs:
            ours[name] = theirs.pop(their_name)
        else:
            missing.append(their_name)
    left = [name for name in theirs if not re.fullmatch(ignored, name)]
    if missing or left:
        rows = [f"  missing: {name}" for name in missing[:8]] + [f"  left over: {name}" for name in left[:8]]
        raise CheckpointError(f"{source}: its weights are not those of its architecture:\n" + "\n".join(rows))
    return model_type.from_tensors(sizes, ours)  # type: ignore[no-any-return]


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


def labels_of(config: Record) -> tuple[str, ...]:
    """The labels of id2label, in order."""
    table = config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(int(config.get("num_labels", 2)))}
    return tuple(str(table[key]) for key in sorted(table, key=int))


def read_weights(source: Path) -> Tensors:
    """All tensors of a folder's safetensors files."""
    files = sorted(source.glob("model*.safetensors"))
    if not files:
        if (source / "pytorch_model.bin").exists():
            raise CheckpointError(
                f"{source / 'pytorch_model.bin'}: a pickle, which can run code when it is read; refused.\n"
                '  Convert it where you trust it: python -c "from transformers import AutoModel as M; '
                f"M.from_pretrained('{source}').save_pretrained('{source}', safe_serialization=True)\""
            )
        raise CheckpointError(f"{source}: no model.safetensors.")
    tensors: Tensors = {}
    for file in files:
        tensors |= checkpoint.read_tensors(file)
    return {name: value.float() if value.is_floating_point() else value for name, value in tensors.items()}
