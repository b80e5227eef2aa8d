"""Requests of the API of OpenAI: their fields, and the options that are not supported."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from glassformer.config import JsonObject
from glassformer.serve.errors import ApiError
from glassformer.serve.limits import MAX_NEW_TOKENS, MAX_STOPS, MAX_TEXTS
from glassformer.serve.requests import parse

UNSUPPORTED: dict[str, Callable[[Any], Any]] = {
    "n": lambda value: value != 1,
    "best_of": lambda value: value != 1,
    "logprobs": lambda value: value is not False,
    "top_logprobs": bool,
    "logit_bias": bool,
    "presence_penalty": bool,
    "frequency_penalty": bool,
    "suffix": bool,
    "response_format": lambda value: value != {"type": "text"},
    "tool_choice": lambda value: value not in ("none", "auto"),
    "function_call": lambda value: value not in ("none", "auto"),
    "audio": bool,
    "modalities": lambda value: value != ["text"],
    "dimensions": bool,
}
"""Options that would change the answer, and whether a value does. Others are ignored, as clients send many."""


def as_list(value: Any) -> Any:
    """One text as a list."""
    return [value] if isinstance(value, str) else value or []


def as_texts(value: Any) -> Any:
    """One text, or several, as a list.

    Raises:
        ValueError: they are tokens.
    """
    first = value[0] if isinstance(value, list) and value else value
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, int):
        advice = "LangChain: check_embedding_ctx_length=False"
        raise ValueError(f"expected text: the numbers are tokens of another model ({advice})")
    return as_list(value)


def capped(value: Any) -> Any:
    """A number of tokens, at most the limit."""
    return min(value, MAX_NEW_TOKENS) if isinstance(value, int) and not isinstance(value, bool) else value


MaxTokens = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(capped)]
"""Most tokens that are generated; more than the limit means the limit."""

Stops = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]], BeforeValidator(as_list), Field(max_length=MAX_STOPS)
]


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class Generation(BaseModel):
    """Options of a request that generates text."""

    model: str
    max_tokens: MaxTokens = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1, le=100_000)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    stop: Stops = []
    stream: bool = False
    stream_options: StreamOptions | None = None


class Completion(Generation):
    """A request to continue a text."""

    prompt: Annotated[list[str], BeforeValidator(as_texts), Field(min_length=1, max_length=MAX_TEXTS)]
    echo: bool = False


class Part(BaseModel):
    """A part of a message."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content or ())


class Chat(Generation):
    """A request to answer a chat."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_TEXTS)
    max_completion_tokens: MaxTokens = None


class Embeddings(BaseModel):
    """A request for embeddings."""

    model: str
    input: Annotated[list[str], BeforeValidator(as_texts), Field(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] = "float"


RequestT = TypeVar("RequestT", bound=BaseModel)


def checked(kind: type[RequestT], fields: JsonObject, **more: str) -> RequestT:
    """The request of a body.

    Args:
        more: fields that the address has.

    Raises:
        ApiError: a field is missing, has a wrong value, or would change the answer and is not supported.
    """
    for name, changes_answer in UNSUPPORTED.items():
        if (value := fields.get(name)) is not None and changes_answer(value):
            message = f"{name}: {str(value)[:100]} is not supported by this server"
            raise ApiError(400, message, param=name, code="unsupported_value")
    return parse(kind, {**fields, **more})
