"""Requests to translate: their fields, and what the model process computes for them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from glassformer.config import JsonObject
from glassformer.corpora.language_id import has_letters
from glassformer.documents.inline import Inner
from glassformer.serve import messages
from glassformer.serve.admission import Unit
from glassformer.serve.errors import ApiError
from glassformer.serve.limits import MAX_ALTERNATIVES, MAX_BEAM, MAX_TERMS, MAX_TEXT_CHARACTERS, MAX_TEXTS
from glassformer.serve.service import Service

DEFAULT_BEAM = 4

EXTRAS = ("align", "confidence")
"""Fields of a request that add to the answer, if the model has the feature of this name."""


def none_if_empty(value: Any) -> Any:
    """Forms send empty fields."""
    return None if value == "" else value


def list_of_json(value: Any) -> Any:
    """Forms send a list as JSON."""
    try:
        return (json.loads(value) if value else []) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError("expected a list in JSON") from None


Texts = str | list[str]
Switch = Annotated[bool, BeforeValidator(lambda value: False if value == "" else value)]
"""An option that is off in an empty field of a form."""

Forms = Annotated[str, Field(max_length=200, pattern=r"^[^|]*[^\s|][^|]*(\|[^|]*[^\s|][^|]*)*$")]
"""One or more forms of a term, separated by |."""

Pair = Annotated[list[Forms], Field(min_length=2, max_length=2)]


class Control(BaseModel):
    """Terms, protected text, memory, tag and spelling of a request, for its direction of translation."""

    glossary: Annotated[str | None, BeforeValidator(none_if_empty)] = None
    terms: Annotated[list[Pair], BeforeValidator(list_of_json)] = Field(default=[], max_length=MAX_TERMS)
    protect: Switch = False
    memory: Annotated[str | None, BeforeValidator(none_if_empty)] = None
    tag: Annotated[str | None, BeforeValidator(none_if_empty)] = None
    keep_spelling: Switch = False

    def check_names(self, service: Service) -> None:
        """Check that the server has the glossary and the memory.

        Raises:
            ApiError: it does not.
        """
        settings = service.settings
        for kind, name, names in (
            ("glossary", self.glossary, settings.glossaries),
            ("memory", self.memory, settings.memories),
        ):
            if name and name not in names:
                known = ", ".join(names) or "none"
                raise ApiError(400, f"there is no {kind} {name[:100]!r}; there are: {known}", param=kind)


class Translate(Control):
    """A request to translate."""

    q: Texts
    source: str
    target: str
    format: Annotated[Literal["text", "html"], BeforeValidator(lambda v: v or "text")] = "text"
    alternatives: Annotated[int, BeforeValidator(lambda v: v or 0)] = Field(default=0, ge=0, le=MAX_ALTERNATIVES)
    api_key: str | None = None
    beam: Annotated[int | None, BeforeValidator(none_if_empty)] = Field(default=None, ge=1, le=MAX_BEAM)
    prefix: str | None = None
    align: Switch = False
    confidence: Switch = False
    min_confidence: Annotated[float | None, BeforeValidator(none_if_empty)] = Field(default=None, ge=0, le=1)


def checked_texts(q: Texts) -> list[str]:
    """The texts of a request.

    Raises:
        ApiError: there are none, or too many.
    """
    texts = [q] if isinstance(q, str) else q
    if not texts or q == "":
        raise ApiError(400, "Invalid request: missing q parameter", param="q")
    if len(texts) > MAX_TEXTS:
        raise ApiError(400, f"Invalid request: {len(texts):,} texts; at most {MAX_TEXTS:,} at once", param="q")
    n = sum(map(len, texts))
    if n > MAX_TEXT_CHARACTERS:
        raise ApiError(400, f"Invalid request: request ({n:,}) exceeds text limit ({MAX_TEXT_CHARACTERS:,})", param="q")
    return texts


def check_tag(info: messages.ModelInfo, tag: str | None) -> None:
    """Check that a model has the tag of a request.

    Raises:
        ApiError: it has not.
    """
    if tag and tag not in info.tags:
        known = ", ".join(info.tags) or "none"
        raise ApiError(400, f"there is no tag {tag[:100]!r}; there are: {known}", param="tag")


def check_confidence(info: messages.ModelInfo, least: float | None) -> None:
    """Check that a model has the confidence that `min_confidence` needs.

    Raises:
        ApiError: it has not.
    """
    if least is not None and "confidence" not in info.features:
        advice = "leave min_confidence out, or add it to the folder: glassformer calibrate FOLDER --src FILE --ref FILE"
        raise ApiError(400, f"the model {info.id} has no confidence; {advice}", param="min_confidence")


def translation_unit(
    service: Service,
    model: str,
    text: str,
    body: Translate,
    *,
    spans: Sequence[Inner] = (),
    protect: Sequence[str] = (),
) -> Unit[messages.Translated]:
    """A unit for the translation of a text.

    Args:
        spans: tags that were taken out of the text, whose positions are wanted.
        protect: what stays as it is besides, as in `DecodeConfig.protect`.
    """
    info = service.model(model)
    features = info.features
    check_tag(info, body.tag)
    check_confidence(info, body.min_confidence)
    beam = max(body.beam or DEFAULT_BEAM, body.alternatives + 1)
    requirements = messages.Requirements(
        glossary=body.glossary,
        terms=body.terms,
        memory=body.memory,
        protect=["all"] if body.protect else ["markers", *protect],
    )
    options: JsonObject
    if body.prefix is not None and body.alternatives:
        options = {"beam": body.beam or DEFAULT_BEAM, "tag": body.tag or "", "keep_spelling": body.keep_spelling}
        options |= {name: True for name in EXTRAS if getattr(body, name) and name in features}
        continuing = messages.Continue(
            model=model, text=text, prefix=body.prefix, n=body.alternatives + 1, options=options,
            requirements=requirements,
        )  # fmt: skip
        return service.scheduler.unit(continuing, text, beam=beam * (body.alternatives + 1))
    options = {
        "beam": beam, "nbest": body.alternatives + 1, "tag": body.tag or "", "keep_spelling": body.keep_spelling,
    }  # fmt: skip
    if body.prefix:
        options["prefix"] = body.prefix
    if (body.align or spans) and "align" in features:
        options["align"] = True
    if "confidence" in features and (body.confidence or body.min_confidence is not None):
        options["confidence"] = True
        options["min_confidence"] = body.min_confidence
    translate = messages.Translate(
        model=model, text=text, spans=list(map(asdict, spans)), options=options, requirements=requirements
    )
    return service.scheduler.unit(translate, text, beam=beam)


def check_detection(service: Service) -> None:
    """Check that the server can detect languages.

    Raises:
        ApiError: it cannot.
    """
    if not service.profiles.languages:
        raise ApiError(
            400,
            "auto is not supported: the models were trained without language detection",
            param="source",
        )


def detected(service: Service, texts: Sequence[str], target: str) -> list[JsonObject]:
    """The most probable language of each text that can be translated to the target, with its probability in percent.
    A text without letters has that of all texts together.

    Raises:
        ApiError: the server cannot detect languages, or all texts together are in one that cannot be translated.
    """
    check_detection(service)
    detect, sources, together = service.profiles.detect, service.sources(target), "\n".join(texts)
    if has_letters(together):
        service.translator(detect(together)[0][0], target)

    def best(text: str) -> tuple[str, float]:
        ranked = detect(text)
        return next((row for row in ranked if row[0] in sources), ranked[0])

    found = [best(text if has_letters(text) else together) for text in texts]
    return [{"confidence": round(100 * p, 1), "language": language} for language, p in found]
