"""Import and export of Hugging Face transformers model folders. Reads safetensors; runs no code from the folder."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from pydantic import ValidationError

from glassformer import checkpoint
from glassformer.config import JsonObject, format_validation_error
from glassformer.errors import CheckpointError, UserError
from glassformer.interop.architecture import Architecture, Head, Tensors, WeightNames
from glassformer.interop.architectures import ARCHITECTURES, hf_model_type
from glassformer.interop.tokenizer import export_tokenizer, import_tokenizer, read_settings
from glassformer.manifest import COPY_AGAIN, read_json
from glassformer.model_config import ModelConfig
from glassformer.models.base import Model, WithoutWeights
from glassformer.models.families import FAMILIES
from glassformer.tasks.base import AnyTask
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.origin import Origin
from glassformer.tasks.registry import load, task_class
from glassformer.tasks.regression import Regressor
from glassformer.tokens.tokenizer import Tokenizer

MAX_LISTED = 8
"""Number of mismatched weights listed in an error message."""

SCALED_MEAN = "mean_sqrt_len_tokens"
"""A pooling that differs from the mean by a factor; embeddings are normalized."""

SENTENCE_FILE = "sentence_bert_config.json"
"""File of sentence-transformers with the maximum number of tokens of a text."""

POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": SCALED_MEAN,
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Options of the pooling of sentence-transformers, and its names since version 6 (`pooling_mode`)."""

OF_PIPELINES = ("prefix", "task_specific_params")
"""Keys of config.json that pipelines of transformers read. An imported model is exported with them."""

MAX_VOCAB_PADDING = 1024
"""Maximum number of embedding rows beyond the tokenizer's vocabulary. Some models pad the vocabulary."""


def import_folder(source: Path, out: Path) -> AnyTask:
    """Convert a transformers model folder to a glassformer model folder.

    Raises:
        CheckpointError: unsupported architecture; weights missing, unexpected, of another shape, not finite or pickled;
            no tokenizer.
    """
    checkpoint.check_empty(out)
    task = load_hf_folder(source)
    if isinstance(task, SentenceEmbedder):
        _ = task.takes_first  # refuses what is not supported
    checkpoint.save_folder(out, task.contents())
    return task


def export_folder(folder: Path, out: Path) -> str:
    """Convert a glassformer model folder to one that transformers' AutoModel and AutoTokenizer can load.

    Returns:
        Name of the transformers class.

    Raises:
        UserError: transformers has no corresponding model.
    """
    checkpoint.check_empty(out)
    contents = hf_folder_contents(load(folder, device="cpu"))
    checkpoint.save_folder(out, contents)
    return str(read_json(out / "config.json")["architectures"][0])


# Import


def load_hf_folder(source: Path) -> AnyTask:
    """Load the model of a transformers folder as a task.

    Raises:
        CheckpointError: it is no such folder, or its model is not supported.
    """
    if not (source / "config.json").exists():
        raise CheckpointError(
            f"{source}: not a model folder of transformers: it has no config.json.\n  Name the folder that has it."
        )
    hf_config = read_json(source / "config.json")
    with config_errors(source / "config.json"):
        architecture, head = find_architecture(hf_config)
        task_name, labels = task_and_labels(head, hf_config)
    tensors = prepare_weights(read_weights(source), architecture, source)
    tokenizer = import_tokenizer(source, hf_config, FAMILIES[architecture.family].kind)
    model_class = FAMILIES[architecture.family]
    with config_errors(source / "config.json"):
        values = {**architecture.config_values(hf_config, tensors), **head.config_values}
        if labels:
            values["n_labels"] = task_class(task_name).n_labels(labels)
        if head.task == "feature-extraction":
            values["pooler"] = any(name.endswith("pooler.dense.weight") for name in tensors)
        values |= {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
        config = model_class.config_class.model_validate(values)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{source}: the tokenizer has {tokenizer.vocab_size:,} entries, but the embedding has only"
            f" {config.vocab_size:,} rows."
        )
    n_unused = config.vocab_size - tokenizer.vocab_size
    if n_unused > MAX_VOCAB_PADDING or 2 * tokenizer.vocab_size < config.vocab_size:
        raise CheckpointError(
            f"{source}: the tokenizer has {tokenizer.vocab_size:,} entries, the vocabulary of the model"
            f" {config.vocab_size:,}: it is not the tokenizer of this model.\n"
            "  Put the tokenizer files that were published with the weights into the folder."
        )
    weight_names = (*head.weight_names, *architecture.weight_names(config))
    model = build_model(model_class, config, tensors, weight_names, architecture.ignored_if_unused, source)
    task = task_class(task_name)(model, tokenizer, "cpu", labels)
    if isinstance(task, SentenceEmbedder):
        task.sentence_pooling = sentence_pooling(source)
        task.sentence_max_len = sentence_max_len(source, tokenizer)
    generation_config = source / "generation_config.json"
    task.origin = Origin(
        pipelines=architecture.pipelines or task.pipelines,
        config=hf_config,
        generation_config=read_json(generation_config) if generation_config.exists() else {},
        tokenizer_config={k: v for k, v in read_settings(source).items() if k != "added_tokens_decoder"},
    )
    return task


def sentence_pooling(source: Path) -> tuple[str, ...]:
    """`SentenceEmbedder.sentence_pooling` of a folder of sentence-transformers; empty for others."""
    if not (source / "modules.json").exists():
        return ()
    found: list[str] = []
    with config_errors(source / "modules.json"):
        modules = json.loads((source / "modules.json").read_text(encoding="utf-8"))
        for module in modules:
            name = str(module["type"]).rpartition(".")[2]
            if name == "Pooling":
                found += pooling_modes(read_json(source / module["path"] / "config.json"))
            elif name not in ("Transformer", "Normalize"):
                found.append(name)
    return tuple(found)


def sentence_max_len(source: Path, tokenizer: Tokenizer) -> tuple[str, ...]:
    """`SentenceEmbedder.sentence_max_len` of a folder of sentence-transformers; empty if it does not say.

    Raises:
        CheckpointError: its texts are lower-cased before a tokenizer that does not do that.
    """
    if not (source / SENTENCE_FILE).exists():
        return ()
    settings = read_json(source / SENTENCE_FILE)
    if settings.get("do_lower_case") and tokenizer.encode("A") != tokenizer.encode("a"):
        raise CheckpointError(
            f"{source / SENTENCE_FILE}: do_lower_case with a tokenizer that keeps capitals is not supported."
        )
    length = settings.get("max_seq_length")
    return (str(length),) if isinstance(length, int) and length > 0 else ()


def pooling_modes(settings: JsonObject) -> list[str]:
    """The name of the pooling of sentence-transformers; of several, whose vectors are concatenated, one for all."""
    modes = settings.get("pooling_mode") or [name for key, name in POOLING.items() if settings.get(key)] or "mean"
    names = [modes] if isinstance(modes, str) else [str(mode) for mode in modes]
    return [" + ".join("mean" if name == SCALED_MEAN else name for name in names)]


@contextmanager
def config_errors(path: Path) -> Iterator[None]:
    """Convert errors caused by an invalid config to a CheckpointError with the file name."""
    try:
        yield
    except ValidationError as error:
        raise CheckpointError(f"{path}: {format_validation_error(error, {})}") from None
    except KeyError as error:
        raise CheckpointError(f"{path}: missing field {error}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: damaged: {error}.{COPY_AGAIN}") from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def find_architecture(hf_config: JsonObject) -> tuple[Architecture, Head]:
    """Find architecture and head by `model_type` and `architectures` of config.json."""
    model_type = str(hf_config.get("model_type"))
    if model_type not in ARCHITECTURES:
        raise CheckpointError(f"model_type {model_type!r} is not supported.\n  Supported: {', '.join(ARCHITECTURES)}.")
    heads = ARCHITECTURES[model_type].heads
    name = (hf_config.get("architectures") or [next(iter(heads))])[0]
    if name not in heads:
        raise CheckpointError(
            f"architecture {name!r} is not supported.\n  Supported for {model_type}: {', '.join(heads)}."
        )
    return ARCHITECTURES[model_type], heads[name]


def task_and_labels(head: Head, hf_config: JsonObject) -> tuple[str, tuple[str, ...]]:
    """Task name and labels of a head."""
    if head.task not in ("classification", "tagging"):
        return head.task, ()
    table = hf_config.get("id2label") or {str(i): f"LABEL_{i}" for i in range(int(hf_config.get("num_labels", 2)))}
    labels = tuple(str(table[key]) for key in sorted(table, key=int))
    problem_type = hf_config.get("problem_type")
    if problem_type == "multi_label_classification" or (problem_type == "regression" and len(labels) > 1):
        raise CheckpointError(
            f"problem_type {problem_type!r} with {len(labels)} labels: only one label per example is supported."
        )
    if head.task == "classification" and (problem_type == "regression" or len(labels) == 1):
        return "regression", ("-0.5", "0.5")  # with this range the prediction is the output of the head itself
    return head.task, labels


def read_weights(source: Path) -> Tensors:
    """Read all tensors from the safetensors files of a folder, in fp32."""
    files = sorted(source.glob("model*.safetensors"))
    if not files and (source / "pytorch_model.bin").exists():
        raise CheckpointError(
            f"{source / 'pytorch_model.bin'}: a pickle, which can execute code when loaded, is not read.\n"
            "  If you trust the source, convert it with the class that config.json lists under architectures:\n"
            '  python -c "from transformers import CLASS as M; '
            f"M.from_pretrained('{source}').save_pretrained('{source}')\""
        )
    if not files:
        raise CheckpointError(
            f"{source}: no model.safetensors.\n"
            "  Name the folder of a model, or convert its weights: save_pretrained(…, safe_serialization=True)."
        )
    tensors: Tensors = {}
    for file in files:
        for name, value in checkpoint.read_tensors(file).items():
            if value.is_floating_point():
                value = value.float()
                if not value.isfinite().all():
                    raise CheckpointError(f"{file}: the weight {name} contains values that are not finite.")
            tensors[name] = value
    return tensors


def prepare_weights(tensors: Tensors, architecture: Architecture, source: Path) -> Tensors:
    """Prepare transformers tensors for `build_model`, still under transformers names.

    Adds a missing base model prefix, renames gamma and beta, removes copies of tied weights, converts to our layout.
    """
    prefix = architecture.base_model_prefix
    if not any(name.startswith(prefix) for name in tensors):
        tensors = {prefix + name: value for name, value in tensors.items()}
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):  # in the original BERT files
        tensors = {re.sub(rf"\{old}$", new, name): value for name, value in tensors.items()}
    for copy, name in architecture.tied_copies.items():
        copy = copy if copy in tensors else prefix + copy
        if copy not in tensors:
            continue
        if name not in tensors:
            tensors[name] = tensors.pop(copy)
        elif torch.equal(tensors[copy], tensors[name]):
            del tensors[copy]
        elif not architecture.may_be_untied:
            raise CheckpointError(f"{source}: {copy} and {name} differ, but only tied weights are supported.")
    try:
        return architecture.to_our_layout(tensors)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(f"{source}: the weights do not match the architecture: {error}.") from None


def build_model(
    model_class: type[Model],
    config: ModelConfig,
    tensors: Tensors,
    weight_names: WeightNames,
    ignored_if_unused: str,
    source: Path,
) -> Model:
    """Create our model with the weights returned by `prepare_weights`."""
    with WithoutWeights():
        expected = {name: tuple(tensor.shape) for name, tensor in model_class(config).state_dict().items()}
    hf_names = {name: hf_weight_name(name, weight_names) for name in expected}
    used = set(hf_names.values())
    problems = [f"  missing: {name}" for name in hf_names.values() if name not in tensors]
    problems += [
        f"  unexpected: {name}" for name in tensors if name not in used and not re.fullmatch(ignored_if_unused, name)
    ]
    for name, hf_name in hf_names.items():
        if hf_name in tensors and tuple(tensors[hf_name].shape) != expected[name]:
            problems.append(f"  {hf_name}: {tuple(tensors[hf_name].shape)}, expected from config.json {expected[name]}")
    if problems:
        more = [f"  and {len(problems) - MAX_LISTED} more"] if len(problems) > MAX_LISTED else []
        raise CheckpointError(
            f"{source}: the weights do not match the architecture:\n" + "\n".join(problems[:MAX_LISTED] + more)
        )
    return model_class.from_state_dict(config, {name: tensors[hf_names[name]] for name in expected})


def hf_weight_name(name: str, weight_names: Iterable[tuple[str, str]]) -> str:
    """The transformers name of one of our tensors."""
    layer = re.search(r"\.(\d+)\.", name)
    number = layer.group(1) if layer else ""
    for our_name, hf_name in weight_names:
        our_name, hf_name = our_name.replace("{i}", number), hf_name.replace("{i}", number)
        if name == our_name:
            return hf_name
        if name.startswith(our_name + ".") and name[len(our_name) + 1 :] in ("weight", "bias"):
            return hf_name + name[len(our_name) :]
    raise ValueError(f"no transformers name for {name}")


# Export


def hf_folder_contents(task: AnyTask) -> dict[str, str | Tensors]:
    """File contents of a transformers model folder."""
    model_type = hf_model_type(task.model)
    architecture, config = ARCHITECTURES[model_type], task.config
    heads = architecture.heads.items()
    class_name, head = next(((k, h) for k, h in heads if h.task == (task.head_task or task.name)), (None, None))
    if class_name is None or head is None:
        raise UserError(f"{task.name} with {model_type}: transformers has no such model, so it cannot be exported.")
    if head.config_values.get("head") == "sequence" and (config.pooling != "first" or not config.pooler):
        raise UserError(
            f"{task.name}: transformers' {class_name} classifies the first token after a dense layer;"
            " this model classifies"
            f" {'the mean over all tokens' if config.pooling == 'mean' else 'the first token without that layer'}.\n"
            "  Train with --pooling first."
        )
    origin = task.origin or Origin()
    kept = {key: origin.config[key] for key in OF_PIPELINES if key in origin.config}
    hf_config = {"architectures": [class_name], **architecture.hf_config(config), **kept}
    if task.labels:
        labels = ["LABEL_0"] if isinstance(task, Regressor) else list(task.labels)
        hf_config |= {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if isinstance(task, Regressor):
        hf_config["problem_type"] = "regression"
    contents: dict[str, str | Tensors] = {
        "config.json": checkpoint.to_json(hf_config),
        "model.safetensors": export_weights(task, architecture, head),
        **export_tokenizer(task),
    }
    if isinstance(task, SentenceEmbedder) and (task.sentence_pooling or task.sentence_max_len):
        contents |= sentence_files(task)
    if hasattr(task.model, "step"):
        contents["generation_config.json"] = checkpoint.to_json(origin.generation_config or generation_config(task))
    return contents


def sentence_files(task: SentenceEmbedder) -> dict[str, str]:
    """The files by which sentence-transformers computes the same embeddings."""
    chosen = "pooling_mode_cls_token" if task.takes_first else "pooling_mode_mean_tokens"
    names = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(names.items())
    ]
    pooling = {"word_embedding_dimension": task.config.d_model, **{key: key == chosen for key in POOLING}}
    settings = {"max_seq_length": task.max_len, "do_lower_case": False}
    return {
        "modules.json": json.dumps(modules, indent=2),
        SENTENCE_FILE: checkpoint.to_json(settings),
        "1_Pooling/config.json": checkpoint.to_json(pooling),
    }


def export_weights(task: AnyTask, architecture: Architecture, head: Head) -> Tensors:
    """Our weights under transformers names and in transformers layout."""
    config = task.config
    ours = dict(task.model.state_dict())
    if head.config_values.get("pooler") is False:
        ours = {name: value for name, value in ours.items() if not name.startswith("pooler.")}
    if isinstance(task, Regressor):
        # transformers' head predicts the value itself, ours predicts it relative to the range of the training labels.
        low, high = map(float, task.labels)
        ours["classifier.weight"] = ours["classifier.weight"] * (high - low)
        ours["classifier.bias"] = low + (ours["classifier.bias"] + 0.5) * (high - low)
    weight_names = (*head.weight_names, *architecture.weight_names(config))
    tensors = {hf_weight_name(name, weight_names): value.clone() for name, value in ours.items()}
    return architecture.to_hf_layout(config, tensors)


def generation_config(task: AnyTask) -> JsonObject:
    """generation_config.json: defaults for transformers' `generate` that match ours."""
    c = task.config
    special = {"bos_token_id": c.bos_id, "eos_token_id": c.eos_id, "pad_token_id": c.pad_id, "max_length": c.max_len}
    banned_ids = sorted({c.pad_id, c.bos_id} - {c.eos_id})
    if banned_ids:
        special["bad_words_ids"] = [[token_id] for token_id in banned_ids]
    return special | ({"decoder_start_token_id": c.bos_id, "num_beams": 4} if hasattr(c, "n_decoder_layers") else {})
