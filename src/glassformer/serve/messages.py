"""The messages between the server and the model process, with their fields.

The server sends `Configuration` first, then `Begin` and `Cancel`. The model process sends `Ready` first, then `Alive`
every second, and for each job parts of its text (`Part`) and one of `Done`, `Failed` and `Unloaded`.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from glassformer.config import JsonObject
from glassformer.decode_config import Precision

FinishReason = Literal["stop", "length"]


class Message(BaseModel):
    """A message, or a part of one. Texts are not in its errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


# Results of requests.


class Translated(Message):
    """A translation; lists that are None were not requested."""

    type: Literal["translated"] = "translated"
    text: str
    others: list[str] = []
    """The next best translations."""
    read_as: list[tuple[str, str]] = []
    """Words with a typing error, each with the word that the model was given instead."""
    missing: list[str] = []
    """Terms of the glossary that are not in the translation."""
    untranslated: bool = False
    """The confidence was too low, and the text is the source."""
    truncated: bool = False
    """The translation was cut off at the maximum length."""
    alignment: list[tuple[int, int]] | None = None
    """Pairs of a word of the source and a word of the translation."""
    words: list[tuple[str, float]] | None = None
    """Each word with the probability that it is right."""
    confidence: float | None = None
    positions: list[tuple[int, bool]] | None = None
    """Where the spans of the request belong, see `documents.inline.Position`."""
    match: JsonObject | None = None
    """The text of the translation memory that was used, if there is one: similarity, source and target."""
    continuations: "list[Translated] | None" = None


class Usage(Message):
    """Numbers of tokens."""

    prompt_tokens: int
    completion_tokens: int


class Completed(Message):
    """A generated text."""

    type: Literal["completed"] = "completed"
    text: str
    """What was not sent in parts."""
    finish_reason: FinishReason
    usage: Usage


class Called(Message):
    """The output of a pipeline."""

    type: Literal["called"] = "called"
    output: Any
    notes: list[str] = []
    """Its warnings, such as that a text was cut."""


class Embedded(Message):
    """Embeddings of texts."""

    type: Literal["embedded"] = "embedded"
    vectors: list[list[float]]
    n_tokens: int
    notes: list[str] = []
    """Which texts were cut."""


class Inspected(Message):
    """The page of an inspection."""

    type: Literal["inspected"] = "inspected"
    page: str
    policy: str
    """Content-Security-Policy."""


Result = Translated | Completed | Called | Embedded | Inspected


# Requests.

ResultT = TypeVar("ResultT", Translated, Completed, Called, Embedded, Inspected, covariant=True)


class Request(Message, Generic[ResultT]):
    """What a model computes; `ResultT` is the type of the result."""

    model: str
    """Name of the model."""


class Requirements(Message):
    """What a translation must contain."""

    glossary: str | None = None
    """Name of a glossary of the server."""
    memory: str | None = None
    """Name of a translation memory of the server."""
    terms: list[list[str]] = []
    """Pairs of the forms of a term, separated by |."""
    protect: list[str] = []


class Translate(Request[Translated]):
    """Translate a text line by line."""

    type: Literal["translate"] = "translate"
    text: str
    spans: list[JsonObject] = []
    """Tags that were taken out of the text, of one line (`documents.inline.Inner`)."""
    options: JsonObject = {}
    """Options of decoding."""
    requirements: Requirements = Requirements()


class Continue(Request[Translated]):
    """Translate a line so that the translation begins with a prefix and continues in several ways."""

    type: Literal["continue"] = "continue"
    text: str
    prefix: str
    n: int
    """Number of ways."""
    options: JsonObject = {}
    """Options of decoding."""
    requirements: Requirements = Requirements()


class Complete(Request[Completed]):
    """Generate a text: the continuation of a text, or what a text-to-text model generates for it."""

    type: Literal["complete"] = "complete"
    text: str
    options: JsonObject = {}
    """Options of decoding."""
    max_tokens: int | None = None
    stop: list[str] = []
    """Texts before which the generated text ends."""


class Call(Request[Called]):
    """Call the pipeline of a model that does not generate text."""

    type: Literal["call"] = "call"
    inputs: Any
    parameters: JsonObject = {}


class Embed(Request[Embedded]):
    """Compute embeddings of texts."""

    type: Literal["embed"] = "embed"
    texts: list[str]


class Inspect(Request[Inspected]):
    """Inspect what a model computes for a text."""

    type: Literal["inspect"] = "inspect"
    text: str
    tag: str = ""


AnyRequest = Translate | Continue | Complete | Call | Embed | Inspect


# What the server sends.


class Configuration(Message):
    """What the model process loads."""

    type: Literal["configuration"] = "configuration"
    models: dict[str, str]
    """Folders by name."""
    glossaries: dict[str, str]
    """Files by name."""
    memories: dict[str, str]
    """Files or folders by name."""
    precision: Precision
    threads: int | None


class Begin(Message):
    """A request to compute."""

    type: Literal["begin"] = "begin"
    job_id: int
    request: AnyRequest = Field(discriminator="type")


class Cancel(Message):
    """A request that is not needed any more."""

    type: Literal["cancel"] = "cancel"
    job_id: int


# What the model process sends.


class ModelInfo(Message):
    """What the server needs to know of a model."""

    id: str
    task: str
    pipeline: str | None
    languages: list[str]
    features: list[str]
    """What it can add to its outputs."""
    tags: list[str]
    """Tags that translations can have."""
    labels: list[str]
    inputs: list[str]
    speed: float
    """Tokens in a second."""
    embeds: bool
    """Whether it computes embeddings of texts."""
    detection: str | None
    """File of the language detection."""
    created: int


class Failures(Message):
    """Errors of what could not be loaded, by name."""

    models: dict[str, str] = {}
    glossaries: dict[str, str] = {}
    memories: dict[str, str] = {}


class Ready(Message):
    """The models are loaded."""

    type: Literal["ready"] = "ready"
    models: list[ModelInfo]
    failures: Failures


class Alive(Message):
    """The process computes."""

    type: Literal["alive"] = "alive"
    silent_s: float = 0.0
    """Seconds in which it may send nothing."""


class Part(Message):
    """A part of a generated text."""

    type: Literal["part"] = "part"
    job_id: int
    text: str


class Done(Message):
    """The result of a job."""

    type: Literal["done"] = "done"
    job_id: int
    result: Result = Field(discriminator="type")


class Failed(Message):
    """A request that cannot be computed."""

    type: Literal["failed"] = "failed"
    job_id: int
    error: str
    code: str | None = None
    """Code of the error in the API of OpenAI, if it has one."""


class Unloaded(Message):
    """A request that needs what could not be loaded."""

    type: Literal["unloaded"] = "unloaded"
    job_id: int
    reason: str


Command = Configuration | Begin | Cancel
Reply = Ready | Alive | Part | Done | Failed | Unloaded

COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="type")])
REPLIES: TypeAdapter[Reply] = TypeAdapter(Annotated[Reply, Field(discriminator="type")])
ReadT = TypeVar("ReadT", Command, Reply)


def read(data: bytes, messages: TypeAdapter[ReadT]) -> ReadT:
    """The message of a text in JSON.

    Args:
        messages: those that are expected.

    Raises:
        ValueError: it is none of them.
    """
    try:
        return messages.validate_json(data)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "message"
        raise ValueError(f"unexpected message: {where}: {problem['msg']}") from None
