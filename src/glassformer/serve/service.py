"""What all APIs share: models by name and by language, and the computation of requests."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request

from glassformer.corpora.language_id import LanguageProfiles
from glassformer.documents.reader import DocumentReader
from glassformer.errors import CheckpointError, UserError
from glassformer.serve import metrics
from glassformer.serve.admission import Overloaded, Scheduler, TooLong, Unit
from glassformer.serve.errors import ApiError, Disconnected
from glassformer.serve.languages import matching
from glassformer.serve.limits import MAX_RESULT_BYTES, RESULT_S
from glassformer.serve.messages import ModelInfo, ResultT
from glassformer.serve.settings import Settings
from glassformer.serve.supervisor import Refused, Supervisor, Unavailable

log = logging.getLogger("glassformer.serve")

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A file or a page that can be fetched for a while."""

    data: bytes
    name: str
    content_type: str
    policy: str
    """Content-Security-Policy."""
    expires_at: float


@dataclass
class Results:
    """Files and pages under random names."""

    stored: OrderedDict[str, StoredResult] = field(default_factory=OrderedDict)

    def add(self, data: bytes, name: str, content_type: str, policy: str = "default-src 'none'") -> str:
        """Store a result. Returns its random name."""
        key = secrets.token_urlsafe(24)
        self.stored[key] = StoredResult(data, name, content_type, policy, time.monotonic() + RESULT_S)
        self.remove_old()
        return key

    def remove_old(self) -> None:
        """Remove what is too old, and the oldest beyond the limit of memory."""
        now, n_bytes = time.monotonic(), sum(len(result.data) for result in self.stored.values())
        while self.stored:
            oldest = next(iter(self.stored.values()))
            if oldest.expires_at > now and n_bytes <= MAX_RESULT_BYTES:
                return
            n_bytes -= len(oldest.data)
            self.stored.popitem(last=False)

    def find(self, key: str) -> StoredResult:
        """The result of a name.

        Raises:
            ApiError: there is none.
        """
        self.remove_old()
        if key not in self.stored:
            raise ApiError(404, "there is no such result; results are removed after 30 minutes")
        return self.stored[key]


class Service:
    """The models of a server.

    Args:
        settings: options of the server.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.supervisor = Supervisor(settings.configuration())
        self.scheduler = Scheduler(self.supervisor)
        self.results = Results()
        self.progress: dict[str, list[int]] = {}
        """Files that are being translated: units that are done, and all."""
        self.reader = DocumentReader()
        self.profiles = LanguageProfiles()
        self.known: dict[str, ModelInfo] = {}
        """Last descriptions of the models by name, also of those that could not be loaded again."""
        self.abilities: dict[str, set[str]] = {}
        """Languages and features that each model had since the server started."""
        self.supervisor.on_use = self.refresh

    @property
    def models(self) -> dict[str, ModelInfo]:
        """Descriptions of the models that can be used, by name."""
        return {name: info for name, info in self.known.items() if name not in self.supervisor.failures.models}

    async def start(self) -> None:
        """Load the models.

        Raises:
            UserError: one of them cannot be loaded.
        """
        await self.supervisor.start()

    def refresh(self) -> None:
        """Take what the models of a new process have stored for the server."""
        self.known |= {info.id: info for info in self.supervisor.infos}
        for loss in self.losses:
            log.warning("warning: %s", loss)
        for name, info in self.known.items():
            self.abilities.setdefault(name, set()).update(self.abilities_of(info))
        try:
            paths = [Path(info.detection) for info in self.models.values() if info.detection]
            self.profiles = LanguageProfiles.read(paths)
        except (CheckpointError, OSError) as error:
            log.error("language detection is not replaced: %s", error)

    async def reload(self) -> None:
        """Load the models again. Folders that have lost their languages are refused."""
        await self.supervisor.reload(self.check_languages)

    def check_languages(self, infos: Sequence[ModelInfo]) -> None:
        """Check that the models translate between the languages that they had.

        Raises:
            UserError: one does not.
        """
        for info in infos:
            before = self.languages_of(self.known[info.id])
            if before and self.languages_of(info) != before:
                languages = " to ".join(before)
                raise UserError(
                    f"{info.id}: the new folder does not translate {languages}.\n"
                    f"  Train it with --languages {' '.join(before)}, or restart the server if this is intended."
                )

    def abilities_of(self, info: ModelInfo) -> set[str]:
        """The languages and the features of a model, in words."""
        words = {"align": "word alignment", "inspect": "inspection", "prefix": "alternatives"}
        languages = self.languages_of(info)
        return {
            *(words.get(feature, feature) for feature in info.features),
            *(["language detection"] if info.detection else []),
            *([f"{languages[0]} to {languages[1]}"] if languages else []),
        }

    @property
    def losses(self) -> list[str]:
        """What models had since the server started, and do not have now."""
        return [
            f"{name}: without {', '.join(sorted(lost))}, which an earlier folder had"
            for name, info in self.known.items()
            if (lost := self.abilities.get(name, set()) - self.abilities_of(info))
        ]

    @property
    def problems(self) -> list[str]:
        """What does not work as it did, without the details that only the log has."""
        failures = self.supervisor.failures
        return [
            *(f"model {name}: cannot be loaded" for name in failures.models),
            *(f"glossary {name}: cannot be read" for name in failures.glossaries),
            *(f"memory {name}: cannot be read" for name in failures.memories),
            *(["the last reload was refused"] if self.supervisor.is_refused else []),
            *self.losses,
        ]

    def languages_of(self, info: ModelInfo) -> tuple[str, str] | None:
        """Languages of a translation model: given in the settings, else stored in its folder."""
        languages = self.settings.languages.get(info.id) or info.languages
        return (languages[0], languages[1]) if len(languages) == 2 else None

    @property
    def pairs(self) -> dict[tuple[str, str], str]:
        """Languages -> the first model that translates between them."""
        pairs: dict[tuple[str, str], str] = {}
        for name, info in {**self.models, **self.known}.items():  # those that can be used first
            if info.pipeline == "translation" and (languages := self.languages_of(info)):
                pairs.setdefault(languages, name)
        return pairs

    def sources(self, target: str) -> set[str]:
        """The languages that need no translation to a language, or have a translator to it."""
        return {target, *(source for source, other in self.pairs if other == target)}

    @property
    def codes(self) -> list[str]:
        """All languages."""
        return list(dict.fromkeys(code for pair in self.pairs for code in pair))

    def model(self, name: str) -> ModelInfo:
        """The description of a model.

        Raises:
            ApiError: there is no such model.
        """
        if name in self.supervisor.failures.models:
            raise ApiError(
                503, f"the model {name} cannot be loaded; the log of the server has the reason", retry_after_s=60
            )
        if name not in self.models:
            raise ApiError(404, f"there is no model {name[:100]!r}; there are: {', '.join(self.models)}", param="model")
        return self.models[name]

    def code(self, given: str) -> str:
        """The code of a language in the form of the models.

        Raises:
            ApiError: no model has the language.
        """
        code = matching(given, self.codes)
        if code is None:
            known = ", ".join(self.codes) or "none: give --languages"
            raise ApiError(400, f"{given[:20]} is not supported; languages: {known}")
        return code

    def translator(self, source: str, target: str) -> str | None:
        """Name of the model that translates between two languages; None if they are the same.

        Raises:
            ApiError: there is none.
        """
        if source == target:
            return None
        if (source, target) not in self.pairs:
            pairs = ", ".join(f"{a} to {b}" for a, b in self.pairs)
            raise ApiError(400, f"{source} to {target} is not supported; there are: {pairs}")
        return self.pairs[source, target]

    async def compute(
        self, request: Request, units: Sequence[Unit[ResultT]], *, deadline_s: float | None = None, files: bool = False
    ) -> list[ResultT]:
        """Compute units, until the client has gone.

        Args:
            files: the units are those of a file: other requests of the client do not wait for them.

        Raises:
            ApiError: the server is overloaded, or cannot compute them, or not in time.
            Disconnected: the client has gone.
        """
        client = f"{client_of(request)}{' file' if files else ''}"
        deadline_s = deadline_s or self.settings.deadline_s
        self.admit(units, client, deadline_s, files=files)
        return await self.answer(request, self.scheduler.compute(units, client, deadline_s))

    def admit(self, units: Sequence[Unit[Any]], client: str, deadline_s: float, *, files: bool = False) -> None:
        """Check that units can be computed in time.

        Args:
            files: see `compute`.

        Raises:
            ApiError: they cannot.
        """
        try:
            self.scheduler.admit(units, client, deadline_s)
        except TooLong:
            advice = (
                "send less text at once, or a smaller beam or max_tokens, or the text as a file to /translate_file;"
                " the operator of the server can raise --deadline"
            )
            problem = f"this request would probably take longer than the limit of this server, {deadline_s:g} s"
            raise ApiError(413, f"{problem}: {'split the file' if files else advice}") from None
        except Overloaded as error:
            raise overloaded(error) from None

    async def answer(self, request: Request, computation: Awaitable[AnswerT]) -> AnswerT:
        """The result of a computation, which is cancelled when the client has gone. The body must have been read.

        Raises:
            ApiError: it cannot be computed.
            Disconnected: the client has gone.
        """
        work = asyncio.ensure_future(computation)
        gone = asyncio.ensure_future(wait_until_gone(request))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                metrics.DISCONNECTED.inc()
                raise Disconnected
            return await translate_errors(work)
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait([work])


def overloaded(error: Overloaded) -> ApiError:
    """The error of the APIs for a request that cannot be computed in time."""
    return ApiError(503, "Slowdown: the server is overloaded; try again later", retry_after_s=error.retry_after_s)


async def translate_errors(work: Awaitable[AnswerT]) -> AnswerT:
    """The result of a computation, with its errors as those of the APIs."""
    try:
        return await work
    except Overloaded as error:
        raise overloaded(error) from None
    except Unavailable as error:
        raise ApiError(503, str(error), retry_after_s=5) from None
    except Refused as error:
        raise ApiError(400, " ".join(str(error).split()), code=error.code) from None


async def wait_until_gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def client_of(request: Request) -> str:
    """Name of the client in the fair queue: of its key, else its address."""
    key: str | None = getattr(request.state, "key_name", None)
    return f"key {key}" if key else (request.client.host if request.client else "")
