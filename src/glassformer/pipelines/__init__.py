"""Pipelines with the interface of transformers 4: `pipeline("translation", model=FOLDER)("text")`.

Task names, arguments, output dictionaries, nesting and scores are those of transformers 4.57, including the pipelines
that transformers 5 removed.
"""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args

from glassformer.decode_config import Precision
from glassformer.devices import require_torch
from glassformer.errors import ConfigError
from glassformer.pipelines.base import Pipeline
from glassformer.pipelines.feature_extraction import FeatureExtraction
from glassformer.pipelines.fill_mask import FillMask
from glassformer.pipelines.generation import Summarization, TextGeneration, TextToText, Translation
from glassformer.pipelines.question_answering import QuestionAnswering
from glassformer.pipelines.sentence_similarity import SentenceSimilarity
from glassformer.pipelines.source import Device, Source, load_source, resolve_device
from glassformer.pipelines.text_classification import TextClassification
from glassformer.pipelines.token_classification import TokenClassification
from glassformer.pipelines.zero_shot_classification import ZeroShotClassification
from glassformer.tasks.base import AnyTask
from glassformer.tasks.encoder import EncoderTask

if TYPE_CHECKING:
    import torch

__all__ = ["Pipeline", "pipeline"]

AnyPipeline = Pipeline[Any]
"""A pipeline of any task, with the arguments of that task."""

PIPELINES: dict[str, type[AnyPipeline]] = {
    "translation": Translation,
    "summarization": Summarization,
    "text2text-generation": TextToText,
    "text-generation": TextGeneration,
    "fill-mask": FillMask,
    "question-answering": QuestionAnswering,
    "text-classification": TextClassification,
    "token-classification": TokenClassification,
    "feature-extraction": FeatureExtraction,
    "zero-shot-classification": ZeroShotClassification,
    "sentence-similarity": SentenceSimilarity,
}
ALIASES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}
TRANSLATION_TASK = re.compile(r"translation_\w+_to_\w+")
"""Task name with a language pair, such as translation_en_to_fr."""


def pipeline(
    task: str | None = None,
    model: str | Path | AnyTask | None = None,
    *,
    device: Device = None,
    device_map: Device | dict[str, object] = None,
    tokenizer: object = None,
    framework: str | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    use_fast: bool = True,
    trust_remote_code: bool | None = None,
    dtype: Union[str, "torch.dtype", None] = None,
    torch_dtype: Union[str, "torch.dtype", None] = None,
    precision: Precision = "fp32",
    **options: object,
) -> AnyPipeline:
    """Create a pipeline: a callable that applies a model to texts.

    Args:
        task: translation, translation_xx_to_yy, summarization, text2text-generation, text-generation, fill-mask,
            question-answering, text-classification or sentiment-analysis, token-classification or ner,
            feature-extraction, zero-shot-classification, sentence-similarity. Default: the task of the model.
        model: a glassformer or Hugging Face model folder, a name on the Hugging Face hub, or a task returned by
            `glassformer.load`.
        device: a device name or index; -1 is the CPU. None: the best available device.
        device_map: "auto", or a device name: the same as `device`. A model is always on one device.
        tokenizer: must be None or equal `model`: a model is always used with its own tokenizer.
        framework, use_fast: ignored; the only framework is "pt".
        revision, token: for downloads from the hub.
        trust_remote_code: must not be True; code in a model folder is never run.
        dtype, torch_dtype: "auto", "float32" or "bfloat16", or the torch type.
        precision: arithmetic of inference, which transformers does not have: "int8" has 8-bit linear layers;
            "auto" is the faster of int8 and fp32 on a CPU, measured; on a GPU bf16 if it has it.
        options: default arguments of the calls of the pipeline.

    Raises:
        ConfigError: unknown task or argument, or the model was not trained for the task.
        CheckpointError: the folder does not exist or holds no supported model.
    """
    if task is not None:
        check_task(task)
    if model is None:
        raise ConfigError("model: required: a folder, or a name on the Hugging Face hub.")
    if tokenizer is not None and str(tokenizer) != str(model):
        raise ConfigError(f"tokenizer = {tokenizer!r}: a model requires its own tokenizer; omit the argument.")
    if framework not in (None, "pt"):
        raise ConfigError(f"framework = {framework!r}: only PyTorch is supported.")
    if trust_remote_code:
        raise ConfigError("trust_remote_code: code in a model folder is never run; omit the argument.")
    dtypes = {str(value).removeprefix("torch.") for value in (dtype, torch_dtype) if value is not None}
    if len(dtypes) > 1 or dtypes - {"auto", "float32", "bfloat16"}:
        raise ConfigError(f"dtype = {', '.join(sorted(dtypes))}: float32 or bfloat16 is supported.")
    if precision not in get_args(Precision):
        raise ConfigError(f"precision = {precision!r}: expected {', '.join(get_args(Precision))}.")
    if dtypes == {"bfloat16"} and precision != "fp32":
        raise ConfigError(f"dtype = bfloat16, precision = {precision!r}: give one of them.")
    if device_map is not None and (device is not None or isinstance(device_map, dict)):
        raise ConfigError('device_map: "auto" or one device, and not together with device.')
    torch_device = resolve_device(device if device_map in (None, "auto") else device_map)
    source = replace(load_source(model, revision=revision, token=token), precision=precision)
    supported = [name for name, pipeline_type in PIPELINES.items() if pipeline_type.supports(source, name)]
    name = task or default_task(source, supported)
    name = resolve_translation_task(source, name)
    pipeline_name = "translation" if TRANSLATION_TASK.fullmatch(name) else ALIASES.get(name, name)
    if pipeline_name not in supported:
        raise ConfigError(
            f"{source.name}: not trained for {name}; the task of this model is {source.task.name}.\n"
            f"  Supported pipelines: {', '.join(supported) or 'none'}."
        )
    if isinstance(source.task, EncoderTask):
        source.task.precision = precision
    source.task.to(torch_device)
    if dtypes == {"bfloat16"}:
        require_torch("dtype = bfloat16")
        source.task.model.bfloat16()
    return PIPELINES[pipeline_name](source, ALIASES.get(name, name), **options)


def check_task(task: str) -> None:
    """Raise ConfigError if there is no such task."""
    if task not in PIPELINES and task not in ALIASES and not TRANSLATION_TASK.fullmatch(task):
        raise ConfigError(
            f"there is no task {task!r}.\n"
            f"  Available tasks: {', '.join(PIPELINES)}, translation_xx_to_yy, {', '.join(ALIASES)}."
        )


def resolve_translation_task(source: Source, task: str) -> str:
    """Resolve "translation" to the first language pair in `task_specific_params` of config.json, as of T5."""
    table = source.config.get("task_specific_params")
    if task != "translation" or not isinstance(table, dict):
        return task
    resolved = next((name for name in table if TRANSLATION_TASK.fullmatch(name)), task)
    if resolved != task:
        others = ", ".join(name for name in table if TRANSLATION_TASK.fullmatch(name) and name != resolved)
        warnings.warn(
            f"{source.name}: translation is resolved to {resolved}"
            + (f"; also available: {others}." if others else "."),
            UserWarning,
            stacklevel=3,
        )
    return resolved


def default_task(source: Source, supported: list[str]) -> str:
    """Default pipeline of a model."""
    if not supported:
        raise ConfigError(f"{source.name}: no pipeline supports its task, {source.task.name}.")
    return next((name for name in source.pipelines if name in supported), supported[0])
