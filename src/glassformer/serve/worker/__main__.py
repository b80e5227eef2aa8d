"""Entry point of the model process."""

import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from glassformer.corpora.terms import Glossary
from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.serve.channel import Channel
from glassformer.serve.messages import Configuration, Failures, Ready
from glassformer.serve.worker.loop import Worker
from glassformer.serve.worker.served_model import ServedModel
from glassformer.tasks.memories import memory_of
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.threads import set_n_threads

NICENESS = 5
"""The server process, which has little to compute, comes first: it answers in time when all cores are busy."""

Loaded = TypeVar("Loaded")


def load_each(paths: dict[str, str], read: Callable[[str, Path], Loaded], failed: dict[str, str]) -> dict[str, Loaded]:
    """What can be loaded of several files or folders by name. The errors of the others are added to `failed`."""
    loaded: dict[str, Loaded] = {}
    for name, path in paths.items():
        try:
            loaded[name] = read(name, Path(path))
        except UserError as error:
            failed[name] = str(error)
    return loaded


def read_glossary(path: Path, models: Iterable[ServedModel]) -> Glossary:
    """The glossary of a file, in the languages of the first model that it has terms for.

    Raises:
        UserError: it cannot be read, or has no such terms.
    """
    error: UserError | None = None
    for languages in dict.fromkeys(tuple(getattr(model.task, "languages", ())) for model in models):
        try:
            return Glossary.read(path, languages)
        except UserError as found:
            error = error or found
    raise error or UserError(f"{path}: no model is served.")


def readable_memory(path: Path, models: Iterable[ServedModel]) -> Path:
    """A translation memory that at least one model can use; it is read for these.

    Raises:
        UserError: none can, or it cannot be read.
    """
    errors: list[UserError] = []
    n_read = 0
    for model in models:
        if isinstance(model.task, TextToTextTask):
            try:
                memory_of(model.task, DecodeConfig(memory=(path,)))
                n_read += 1
            except UserError as error:
                errors.append(error)
    if errors and not n_read:
        raise errors[0]
    return path


def main() -> None:
    """Load the models, and compute requests. The file descriptor of the connection is the argument."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(NICENESS)
    warnings.simplefilter("ignore")
    sys.setswitchinterval(0.001)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    (config,) = channel.receive(60)
    if not isinstance(config, Configuration):
        raise ValueError(f"unexpected message: {config.type}")
    if config.threads:
        set_n_threads(config.threads)
    failures = Failures(models={}, glossaries={}, memories={})
    models = load_each(config.models, lambda name, folder: ServedModel(name, folder, config.precision), failures.models)
    glossaries = load_each(config.glossaries, lambda _, path: read_glossary(path, models.values()), failures.glossaries)
    memories = load_each(config.memories, lambda _, path: readable_memory(path, models.values()), failures.memories)
    channel.send(Ready(models=[model.info() for model in models.values()], failures=failures))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Worker(channel, models, glossaries, memories).run()


if __name__ == "__main__":
    main()
