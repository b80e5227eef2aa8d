"""Pipelines as transformers 4 had them: `pipeline("translation", model=FOLDER)("text")`.

Names of tasks and arguments, dictionaries, nesting and scores are those of transformers 4.57, for the users of the
pipelines that transformers 5 took away, and of those that it kept.
"""

import re
import warnings
from typing import Any

from glassformer.errors import ConfigError
from glassformer.pipelines.base import Pipeline
from glassformer.pipelines.feature_extraction import FeatureExtraction
from glassformer.pipelines.fill_mask import FillMask
from glassformer.pipelines.generation import Summarization, TextGeneration, TextToText, Translation
from glassformer.pipelines.question_answering import QuestionAnswering
from glassformer.pipelines.source import Source, device_of, find_source
from glassformer.pipelines.text_classification import TextClassification
from glassformer.pipelines.token_classification import TokenClassification

__all__ = ["Pipeline", "pipeline"]

PIPELINES: dict[str, type[Pipeline]] = {
    "translation": Translation,
    "summarization": Summarization,
    "text2text-generation": TextToText,
    "text-generation": TextGeneration,
    "fill-mask": FillMask,
    "question-answering": QuestionAnswering,
    "text-classification": TextClassification,
    "token-classification": TokenClassification,
    "feature-extraction": FeatureExtraction,
}
ALIASES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}
LANGUAGES = re.compile(r"translation_\w+_to_\w+")


def pipeline(
    task: str | None = None,
    model: Any = None,
    *,
    device: Any = None,
    tokenizer: Any = None,
    framework: str | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    use_fast: bool = True,
    trust_remote_code: bool | None = None,
    dtype: Any = None,
    torch_dtype: Any = None,
    **options: Any,
) -> Pipeline:
    """A model as a function of texts.

    Args:
        task: translation, translation_xx_to_yy, summarization, text2text-generation, text-generation, fill-mask,
            question-answering, text-classification or sentiment-analysis, token-classification or ner,
            feature-extraction; default: what the model was trained for.
        model: a folder of ours or of transformers', a name on the Hugging Face hub, or what `glassformer.load` gave.
        device: None for the best there is, a name, or a number: -1 is the CPU.
        tokenizer: of no effect; a model's own is used, and another cannot be named.
        framework, use_fast: of no effect; "pt" alone is there.
        revision, token: for the hub.
        trust_remote_code: must not be True: no code of a folder is run.
        dtype, torch_dtype: float32 alone is there.
        options: arguments of every call, unless the call says otherwise.

    Raises:
        ConfigError: an unknown task or argument, or a model that was not trained for the task.
        CheckpointError: no such folder, or one without a model that this version knows.
    """
    if task is not None:
        check_task(task)
    if model is None:
        raise ConfigError("model: must be given: a folder, or a name on the Hugging Face hub.")
    if tokenizer is not None and str(tokenizer) != str(model):
        raise ConfigError(f"tokenizer = {tokenizer!r}: a model is used with its own; leave it out.")
    if framework not in (None, "pt"):
        raise ConfigError(f"framework = {framework!r}: there is PyTorch alone.")
    if trust_remote_code:
        raise ConfigError("trust_remote_code: no code of a folder is run; leave it out.")
    for kind in (dtype, torch_dtype):
        if str(kind).removeprefix("torch.") not in ("None", "auto", "float32"):
            raise ConfigError(f"dtype = {kind}: there is float32 alone.")
    place = device_of(device)
    source = find_source(model, revision=revision, token=token)
    able = [name for name, kind in PIPELINES.items() if kind.supports(source)]
    name = task or usual_task(source, able)
    name = named_languages(source, name)
    kind = "translation" if LANGUAGES.fullmatch(name) else ALIASES.get(name, name)
    if kind not in able:
        raise ConfigError(
            f"{source.name}: not trained for {name}: its task is {source.task.name}.\n"
            f"  It can do {', '.join(able) or 'no pipeline'}."
        )
    source.task.device = place
    source.task.model.to(place)
    return PIPELINES[kind](source, ALIASES.get(name, name), **options)


def check_task(task: str) -> None:
    """Raise ConfigError for a task that there is not."""
    if task not in PIPELINES and task not in ALIASES and not LANGUAGES.fullmatch(task):
        raise ConfigError(
            f"there is no task {task!r}.\n"
            f"  Known are {', '.join(PIPELINES)}, translation_xx_to_yy, {', '.join(ALIASES)}."
        )


def named_languages(source: Source, task: str) -> str:
    """Of "translation" the first pair of languages of which config.json says how to ask for it, as in T5's."""
    table = source.config.get("task_specific_params")
    if task != "translation" or not isinstance(table, dict):
        return task
    found = next((name for name in table if LANGUAGES.fullmatch(name)), task)
    if found != task:
        others = ", ".join(name for name in table if LANGUAGES.fullmatch(name) and name != found)
        warnings.warn(
            f"{source.name}: translation is taken to be {found}" + (f"; there are also {others}." if others else "."),
            UserWarning,
            stacklevel=3,
        )
    return found


def usual_task(source: Source, able: list[str]) -> str:
    """What a model was trained for: several tasks, or a T5 of transformers, are text to text."""
    if not able:
        raise ConfigError(f"{source.name}: there is no pipeline for its task, {source.task.name}.")
    is_any = source.task.name == "multitask" or source.config.get("model_type") == "t5"
    return "text2text-generation" if is_any else able[0]
