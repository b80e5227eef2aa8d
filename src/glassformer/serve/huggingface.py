"""The API of Hugging Face's inference client: a model at its URL, with the inputs and outputs of `pipelines/`."""

import secrets
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from glassformer.config import JsonObject
from glassformer.decode_config import GENERATE_NAMES
from glassformer.serve.errors import ApiError, documented
from glassformer.serve.limits import MAX_BEAM, MAX_NEW_TOKENS, MAX_TEXT_CHARACTERS, MAX_TEXTS
from glassformer.serve.messages import Call, Complete, Embed, Inspect, ModelInfo
from glassformer.serve.openai import GENERATES, TEXT_TO_TEXT
from glassformer.serve.requests import described, json_object, parse, read_body, warn
from glassformer.serve.security import charge
from glassformer.serve.service import Service
from glassformer.serve.translation import DEFAULT_BEAM, check_tag

IGNORED = {"src_lang", "tgt_lang", "clean_up_tokenization_spaces", "return_full_text", "details"}
"""Parameters that a model of one pair of languages does not need, and those of the output that `inputs` has."""

CALL_PARAMETERS = {
    "text-classification": {"top_k", "function_to_apply"},
    "token-classification": {"aggregation_strategy", "ignore_labels", "stride"},
    "question-answering": {
        "top_k", "doc_stride", "max_answer_len", "max_seq_len", "max_question_len", "handle_impossible_answer",
        "align_to_words",
    },
    "fill-mask": {"top_k", "targets"},
    "feature-extraction": {"truncate"},
    "zero-shot-classification": {"candidate_labels", "hypothesis_template", "multi_label"},
    "sentence-similarity": set(),
}  # fmt: skip
"""Parameters of what is not generated token by token, by pipeline; all have `truncation` besides."""

BESIDE_INPUTS = ("normalize", "prompt_name", "truncate", "truncation_direction")
"""Parameters that the client sends beside `inputs` (feature-extraction)."""


class Inference(BaseModel, extra="allow"):
    """A request to a model."""

    inputs: Any
    parameters: dict[str, Any] = {}
    options: dict[str, Any] = {}
    stream: bool = False


class InspectParameters(BaseModel, extra="forbid"):
    """Parameters of an inspection."""

    tag: str = ""


class GenerationParameters(BaseModel):
    """Parameters of the models that generate text."""

    max_new_tokens: int | None = Field(default=None, ge=1, le=MAX_NEW_TOKENS)
    max_length: int | None = Field(default=None, ge=1, le=MAX_NEW_TOKENS)
    min_new_tokens: int | None = Field(default=None, ge=0, le=MAX_NEW_TOKENS)
    num_beams: int | None = Field(default=None, ge=1, le=MAX_BEAM)
    do_sample: bool | None = None
    temperature: float | None = Field(default=None, gt=0, le=100)
    top_k: int | None = Field(default=None, ge=1, le=100_000)
    top_p: float | None = Field(default=None, gt=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0, le=100)
    no_repeat_ngram_size: int | None = Field(default=None, ge=0, le=100)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    stop: list[str] = Field(default=[], max_length=16)

    def options(self) -> JsonObject:
        """Options of decoding."""
        given = {name: value for name, value in self if value is not None and name != "do_sample"}
        if self.max_new_tokens:
            given.pop("max_length", None)
        if self.do_sample is False or self.num_beams:
            given = {"num_beams": 1} | {name: given[name] for name in given.keys() - {"temperature", "top_k", "top_p"}}
        return {GENERATE_NAMES.get(name, name): value for name, value in given.items() if value != []}


def texts_in(value: Any) -> int:
    """Number of characters of the texts in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(texts_in, value.values()))
    return sum(map(texts_in, value)) if isinstance(value, list) else 0


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/models", tags=["Hugging Face"], responses=documented())

    @routes.get("")
    async def models() -> Any:
        return [page_record(service, info) for info in service.models.values()]

    @routes.get("/{name}")
    async def model(name: str) -> Any:
        return page_record(service, service.model(name))

    @routes.post("/{name}", openapi_extra=described(Inference))
    async def infer(name: str, request: Request, response: Response) -> Any:
        info = service.model(name)
        body = parse(Inference, json_object(await read_body(request)))
        n = texts_in(body.inputs) + texts_in(body.parameters)
        if n > MAX_TEXT_CHARACTERS:
            raise ApiError(400, f"inputs: {n:,} characters; at most {MAX_TEXT_CHARACTERS:,} at once", param="inputs")
        charge(request, service, None, n)
        if body.stream:
            advice = f"streams are at /models/{name}/v1/chat/completions and /v1/completions"
            raise ApiError(400, f"stream: not supported at this address; {advice}", param="stream")
        if info.pipeline in (*GENERATES, *TEXT_TO_TEXT):
            return await generated(request, service, info, body)
        if info.pipeline is None:
            raise ApiError(400, f"{name}: its task, {info.task}, has no pipeline")
        known = {*CALL_PARAMETERS[info.pipeline], "truncation"}
        beside = {key: value for key, value in (body.model_extra or {}).items() if key in BESIDE_INPUTS}
        parameters = {key: value for key, value in (beside | body.parameters).items() if key not in IGNORED}
        if unknown := parameters.keys() - known:
            raise ApiError(
                400, f"parameters: {', '.join(sorted(unknown))[:200]}: unknown; there are: {known_names(known)}"
            )
        if info.embeds and isinstance(body.inputs, dict):
            return await similarities(request, response, service, name, body.inputs)
        if "truncate" in parameters:
            parameters["truncation"] = parameters.pop("truncate")
        inputs, parameters = arguments(info.pipeline, body.inputs, parameters)
        call = Call(model=name, inputs=inputs, parameters=parameters)
        (result,) = await service.compute(request, [service.scheduler.unit(call, " " * n)])
        warn(response, result.notes)
        return result.output

    @routes.post("/{name}/inspect", openapi_extra=described(Inference))
    async def inspect(name: str, request: Request) -> Any:
        info = service.model(name)
        body = parse(Inference, json_object(await read_body(request)))
        parameters = parse(InspectParameters, body.parameters)
        check_tag(info, parameters.tag)
        if not isinstance(body.inputs, str) or not body.inputs.strip() or len(body.inputs) > 2000:
            raise ApiError(400, "inputs: expected a text of 1 to 2,000 characters", param="inputs")
        charge(request, service, None, len(body.inputs))
        inspect = Inspect(model=name, text=body.inputs, tag=parameters.tag)
        unit = service.scheduler.unit(inspect, body.inputs, n_new_tokens=100, beam=4)
        (result,) = await service.compute(request, [unit], deadline_s=4 * service.settings.deadline_s)
        policy = f"{result.policy}; frame-ancestors 'self'"
        key = service.results.add(result.page.encode(), "inspection.html", "text/html; charset=utf-8", policy)
        return {"url": f"/results/{key}"}

    return routes


async def similarities(
    request: Request, response: Response, service: Service, name: str, inputs: JsonObject
) -> list[float]:
    """Cosine similarity of a text and of each of some others."""
    arguments("sentence-similarity", inputs, {})
    texts = [inputs["source_sentence"], *inputs["sentences"]]
    embed = Embed(model=name, texts=texts)
    (result,) = await service.compute(request, [service.scheduler.unit(embed, "".join(texts))])
    warn(response, result.notes)
    first, *others = result.vectors
    return [sum(x * y for x, y in zip(first, vector, strict=True)) for vector in others]


def known_names(names: set[str]) -> str:
    """Names for a message."""
    return ", ".join(sorted(names)) or "none"


def page_record(service: Service, info: ModelInfo) -> JsonObject:
    """A model as the page shows it."""
    source, target = service.languages_of(info) or (None, None)
    features = [*info.features, "detect"] if info.detection else info.features
    record = info.model_dump(include={"id", "task", "pipeline", "labels", "inputs", "tags"})
    return {**record, "features": features, "source": source, "target": target}


def arguments(pipeline: str, inputs: Any, parameters: JsonObject) -> tuple[Any, JsonObject]:
    """The arguments of the call of a pipeline.

    Raises:
        ApiError: the inputs have a wrong type.
    """
    texts = inputs if isinstance(inputs, list) else [inputs]
    if len(texts) > MAX_TEXTS or not texts:
        raise ApiError(400, f"inputs: 1 to {MAX_TEXTS:,} texts at once", param="inputs")
    if pipeline == "question-answering":
        keys = {"question", "context"}
        if not all(isinstance(item, dict) and keys <= item.keys() for item in texts):
            raise ApiError(400, 'inputs: expected {"question": text, "context": text}', param="inputs")
        fields = [item[key] for item in texts for key in keys]
        rows = [{key: item[key] for key in keys} for item in texts]
        inputs = rows if isinstance(inputs, list) else rows[0]
    elif pipeline == "sentence-similarity":
        if not isinstance(inputs, dict) or not isinstance(inputs.get("sentences"), list):
            raise ApiError(400, 'inputs: expected {"source_sentence": text, "sentences": [text, …]}', param="inputs")
        fields = [inputs.get("source_sentence"), *inputs["sentences"]]
    elif pipeline == "text-classification":
        pairs = [item for item in texts if isinstance(item, dict)]
        if any("text" not in item or set(item) - {"text", "text_pair"} for item in pairs):
            raise ApiError(400, 'inputs: expected texts, or pairs {"text": text, "text_pair": text}', param="inputs")
        fields = [field for item in texts for field in (item.values() if isinstance(item, dict) else [item])]
    else:
        fields = texts
    if not all(isinstance(field, str) and field.strip() for field in fields):
        raise ApiError(400, "inputs: expected texts that are not blank", param="inputs")
    if pipeline == "text-classification":  # a list of labels for each text, also for one: what the client expects
        inputs, parameters = texts, {"top_k": None, **parameters}
    return inputs, parameters


async def generated(request: Request, service: Service, info: ModelInfo, body: Inference) -> Any:
    """The outputs of a model that generates text."""
    without_effect = {*IGNORED, "truncation"}  # a prompt is never cut
    given = {key: value for key, value in body.parameters.items() if key not in without_effect and value is not None}
    given |= given.pop("generate_parameters", None) or {}
    if unknown := given.keys() - GenerationParameters.model_fields.keys():
        names = known_names(set(GenerationParameters.model_fields))
        raise ApiError(400, f"parameters: {', '.join(sorted(unknown))[:200]}: unknown; there are: {names}")
    options = parse(GenerationParameters, given).options()
    texts: Sequence[Any] = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    if not texts or len(texts) > MAX_TEXTS or not all(isinstance(text, str) for text in texts):
        raise ApiError(400, f"inputs: expected a text, or a list of 1 to {MAX_TEXTS:,} texts", param="inputs")
    parts: list[list[str]] = [[] for _ in texts]
    if info.pipeline in TEXT_TO_TEXT:
        n_new_tokens, options = None, {"beam": DEFAULT_BEAM, **options}
    else:
        n_new_tokens = 256
        options.setdefault("seed", secrets.randbits(62))
    units = [
        service.scheduler.unit(
            Complete(model=info.id, text=text, options=options), text,
            n_new_tokens=options.get("max_length") or n_new_tokens,
            beam=options.get("beam", 1), on_text=parts[i].append,
        )
        for i, text in enumerate(texts)
    ]  # fmt: skip
    results = await service.compute(request, units)
    outputs = ["".join([*received, result.text]) for received, result in zip(parts, results, strict=True)]
    match info.pipeline:
        case "translation":
            return [{"translation_text": text} for text in outputs]
        case "summarization":
            return [{"summary_text": text.strip()} for text in outputs]
        case "text-generation":
            whole = body.parameters.get("return_full_text", True)
            pairs = zip(texts, outputs, strict=True)
            return [{"generated_text": (source if whole else "") + text} for source, text in pairs]
        case _:
            return [{"generated_text": text} for text in outputs]
