"""A teacher behind the API of OpenAI: chat completions of any server that has them."""

import json
import queue
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from math import inf

from glassformer.config import JsonObject
from glassformer.errors import ConfigError, UserError
from glassformer.synthetic.answers import Answer
from glassformer.synthetic.ask import REPORTED_EVERY_S
from glassformer.tasks.base import Log
from glassformer.tasks.texts import no_op
from glassformer.tokens.tokenizer import well_formed

MAX_TRIES = 6
FIRST_WAIT_S, MAX_WAIT_S = 1.0, 60.0
"""Waiting time after the first failure, which doubles with each one; and its maximum."""

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)
"""Statuses of HTTP after which the same request may succeed."""

REFUSED = (400, 413, 422)
"""Statuses of requests that the server does not take, such as texts that are too long for it."""

MAX_REFUSED = 10
"""Texts that are refused before the first answer, after which the server is not asked for others."""

THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "'": "'", "`": "`", "「": "」"}

TEXT = "{text}"

KEY = re.compile(r"[!-~]+")
"""A key that a header of HTTP can have."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How an endpoint is asked."""

    url: str
    """Address of the server, such as http://127.0.0.1:8000/v1."""
    model: str
    prompt: str
    """The message, in which {text} is replaced by the source."""
    api_key: str | None = None
    per_minute: float | None = None
    """Maximum number of requests in a minute."""
    connections: int = 8
    """Number of requests at the same time."""
    timeout_s: float = 120.0
    """Seconds without an answer after which a request failed."""


class Refused(Exception):
    """The server does not take a request."""


class RateLimiter:
    """Spreads requests evenly over time."""

    def __init__(self, per_minute: float | None) -> None:
        self.interval_s = 60 / per_minute if per_minute else 0.0
        self.next_s = time.monotonic()
        self.lock = threading.Lock()

    def wait(self, stopped: threading.Event) -> None:
        """Wait for the turn of a request."""
        with self.lock:
            turn_s = max(self.next_s, time.monotonic())
            self.next_s = turn_s + self.interval_s
        stopped.wait(max(0.0, turn_s - time.monotonic()))

    def delay(self, seconds: float) -> None:
        """No request before so many seconds: the server asked for it."""
        with self.lock:
            self.next_s = max(self.next_s, time.monotonic() + seconds)


class EndpointTeacher:
    """A teacher behind an endpoint."""

    def __init__(self, options: EndpointOptions) -> None:
        """
        Raises:
            ConfigError: the prompt does not contain {text} once, or the address cannot be used.
        """
        if options.prompt.count(TEXT) != 1:
            raise ConfigError(f"--prompt {options.prompt!r}: must contain {TEXT} once, which each source replaces.")
        if not options.url.startswith(("http://", "https://")):
            raise ConfigError(f"{options.url}: not an address that begins with http:// or https://.")
        if options.api_key and not KEY.fullmatch(options.api_key):
            raise ConfigError(
                "the key in the environment variable OPENAI_API_KEY has a space, a line end or another character that"
                " no key has.\n  Set it again, without quotation marks."
            )
        self.options = options
        self.name = f"{options.model} at {options.url}"
        self.identity = f"{self.name} {options.prompt}"
        path = options.url.rstrip("/")
        if not path.endswith("/chat/completions"):
            path += "/chat/completions" if path.endswith("/v1") else "/v1/chat/completions"
        self.address = path
        self.rate_limiter = RateLimiter(options.per_minute)
        self.stopped = threading.Event()
        self.log: Log = no_op
        self.told_s = -inf

    def answers(
        self, sources: Sequence[str], log: Log = no_op, *, has_answered: bool = False
    ) -> Iterator[list[tuple[str, Answer]]]:
        """See `Teacher`. Requests that fail are repeated.

        Raises:
            UserError: the endpoint cannot be reached, refuses all requests, or answers with something else.
        """
        # A connection gets its next source when its answer was taken (and is on the disk): a kill loses one for each.
        waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[str, Answer | BaseException]] = queue.SimpleQueue()
        left = iter(sources)
        refused: list[str] = []
        refusal = Refused()

        def work() -> None:
            if hasattr(signal, "pthread_sigmask"):  # a server that closes a connection must not end this program
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
            while (source := waiting.get()) is not None:
                try:
                    done.put((source, self.answer(source)))
                except BaseException as error:
                    done.put((source, error))

        self.log = log
        self.stopped.clear()
        for _ in range(self.options.connections):
            waiting.put(next(left, None))
            threading.Thread(target=work, daemon=True).start()  # an interrupted program does not wait for requests
        try:
            for _ in sources:
                source, answer = done.get()
                if isinstance(answer, Refused):
                    refused.append(source)
                    refusal = answer
                    if not has_answered and len(refused) == MAX_REFUSED:
                        break
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    has_answered = True
                    yield [(source, answer)]
                if has_answered and refused:
                    yield [(each, Answer()) for each in refused]
                    refused.clear()
                waiting.put(next(left, None))
            if refused:
                raise UserError(
                    f"{self.address}: refuses the request: {refusal}.\n  Check the address, --endpoint-model"
                    f" {self.options.model} and the key in the environment variable OPENAI_API_KEY."
                )
        finally:
            self.stopped.set()
            for _ in range(self.options.connections):
                waiting.put(None)

    def answer(self, source: str) -> Answer:
        """The answer to a source.

        Raises:
            Refused: the server does not take it.
            UserError: as `answers`.
        """
        failure, wait_s = "", FIRST_WAIT_S
        for n_left in reversed(range(MAX_TRIES)):
            self.rate_limiter.wait(self.stopped)
            if self.stopped.is_set():
                break
            try:
                return self.ask(source)
            except urllib.error.HTTPError as error:
                failure = f"status {error.code}: {message_of(error)}"
                if (asked := retry_after(error)) is not None:
                    self.rate_limiter.delay(min(asked, MAX_WAIT_S))
            except (OSError, TimeoutError, HTTPException) as error:
                failure = str(getattr(error, "reason", None) or error)
            if n_left:
                self.tell(f"  {self.address}: {failure}; trying again")
                self.stopped.wait(wait_s)
            wait_s = min(2 * wait_s, MAX_WAIT_S)
        raise UserError(
            f"{self.address}: no answer after {MAX_TRIES} tries: {failure}.\n"
            "  The answers so far are kept: run the same command again when the endpoint answers."
        )

    def tell(self, message: str) -> None:
        """Log what delays the answers, not more often than the progress is."""
        if time.monotonic() - self.told_s > REPORTED_EVERY_S:
            self.told_s = time.monotonic()
            self.log(message)

    def ask(self, source: str) -> Answer:
        """Send one request."""
        body = {
            "model": self.options.model,
            "messages": [{"role": "user", "content": self.options.prompt.replace(TEXT, source)}],
            "temperature": 0,
        }
        headers = {"Content-Type": "application/json"}
        if self.options.api_key:
            headers["Authorization"] = f"Bearer {self.options.api_key}"
        request = urllib.request.Request(self.address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=self.options.timeout_s) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            if error.code in RETRIED:
                raise
            if error.code in REFUSED:
                raise Refused(f"status {error.code}: {message_of(error)}") from None
            raise UserError(
                f"{self.address}: status {error.code}: {message_of(error)}.\n  Check the address, --endpoint-model and"
                " the key in the environment variable OPENAI_API_KEY."
            ) from None
        return answer_of(content, source, self.address)


def answer_of(content: bytes, source: str, address: str) -> Answer:
    """The answer of the body of a response.

    Raises:
        UserError: it is no chat completion.
    """
    try:
        record: JsonObject = json.loads(content)
        choice = record["choices"][0]
        text = choice["message"]["content"] or ""
        if not isinstance(text, str):
            raise TypeError
        usage = record.get("usage") or {}
        tokens = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError):
        start = content[:80].decode("utf-8", "replace")
        raise UserError(f"{address}: answers with something that is no chat completion: {start!r}.") from None
    return Answer(
        (cleaned(well_formed(text), source),), is_truncated=choice.get("finish_reason") == "length", tokens=tokens
    )


def cleaned(text: str, source: str) -> str:
    """An answer without the thoughts of a model, and without quotation marks around it that the source has not."""
    text = THOUGHT.sub("", text).strip()
    if len(text) > 2 and QUOTES.get(text[0]) == text[-1] and source.strip()[:1] != text[0]:
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:
            return inner.strip()
    return text


def message_of(error: urllib.error.HTTPError) -> str:
    """The message of a server about an error."""
    content = error.read()[:10_000].decode("utf-8", "replace")
    try:
        message = json.loads(content)["error"]
        content = str(message["message"] if isinstance(message, dict) else message)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return " ".join(content.split())[:200] or str(error.reason)


def retry_after(error: urllib.error.HTTPError) -> float | None:
    """Seconds after which the server asks to repeat a request; None if it does not."""
    value = error.headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
