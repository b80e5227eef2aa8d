"""`glassformer serve`"""

import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import Int, Threads
from glassformer.decode_config import Precision
from glassformer.errors import ConfigError
from glassformer.serve.limits import DEADLINE_S

Texts = Annotated[tuple[str, ...], Parameter(show_default=False)]
NAME = re.compile(r"[\w][\w.@-]{0,99}")


def serve(
    *models: str,
    languages: Texts = (),
    glossary: Texts = (),
    memory: Texts = (),
    host: str = "127.0.0.1",
    port: Int = 5000,
    public_name: Texts = (),
    cors: Texts = (),
    keys: Path | None = None,
    new_key: str | None = None,
    corrections: Path | None = None,
    precision: Precision = "auto",
    threads: Threads = None,
    deadline: Annotated[float, Parameter(name="--deadline")] = DEADLINE_S,
    limits: bool = False,
) -> None:
    """Serve models: a page, and the HTTP APIs of LibreTranslate, OpenAI, Hugging Face and Apertium.

    Example:  glassformer serve en-fr fr-en sentiment

    SIGHUP loads the folders again without a failed request; SIGTERM and Ctrl-C end the server. docs/serving.md has the
    details.

    Args:
        models: Model folders, or NAME=FOLDER. The name of a model is that of its folder, unless it is given.
        languages: MODEL=SOURCE,TARGET: languages of a model that has not stored them, for example en-fr=en,fr.
        glossary: NAME=FILE: a glossary that requests can name.
        memory: NAME=FILE: a translation memory that requests can name; or the folder of a training.
        host: Address to listen on; 0.0.0.0 for all of this machine.
        port: Port to listen on.
        public_name: Host name under which clients reach the server, if it is not an address of this machine.
        cors: Origin of pages on other servers that may use the APIs, for example https://intranet.example.org.
        keys: File of keys, of which each request that computes must have one.
        new_key: Add a key of this name to the file of --keys, print it, and end.
        corrections: Folder for corrected translations that users send, as JSONL for `train`.
        precision: Arithmetic; auto is the faster of int8 and fp32 on a CPU, measured; on a GPU bf16 if it has it.
        threads: Number of CPU threads. Default: all cores.
        deadline: Seconds in which a request must be answered; one that cannot is refused: with status 413 if it cannot
            without other requests, else 503.
        limits: Print the limits of requests, and end.
    """
    if limits:
        print_limits()
        return
    from glassformer.serve.keys import Keys, add_key

    if new_key is not None:
        if keys is None or not NAME.fullmatch(new_key):
            raise ConfigError("--new-key NAME needs --keys FILE, and a name of letters, digits and hyphens.")
        print(add_key(keys, new_key))
        return
    if sys.platform == "win32":
        raise ConfigError("the server is not available on Windows.\n  Use Windows Subsystem for Linux, or a container.")
    try:
        from glassformer.serve.server import serve as run
    except ImportError as error:
        raise ConfigError(f"{error}.\n  Install the server: pip install 'glassformer[serve]'") from None
    from glassformer.serve.settings import Settings

    folders = named_models(models)
    if not 0 < deadline <= 3600:
        raise ConfigError(f"--deadline {deadline}: expected 0 to 3600 seconds.")
    if not 0 <= port < 65536:
        raise ConfigError(f"--port {port}: expected 0 to 65535.")
    if corrections and not corrections.is_dir():
        raise ConfigError(f"--corrections {corrections}: no such folder.\n  Make it: mkdir {corrections}")
    settings = Settings(
        models=folders,
        languages=languages_by_model(languages, folders),
        glossaries={name: Path(path) for name, path in map(assignment, glossary)},
        memories={name: Path(path) for name, path in map(assignment, memory)},
        host=host,
        port=port,
        public_names=public_name,
        cors=cors,
        keys=Keys(keys) if keys else None,
        precision=precision,
        threads=threads,
        deadline_s=deadline,
        corrections=corrections,
    )
    run(settings)


def named_models(models: tuple[str, ...]) -> dict[str, Path]:
    """Folders by name.

    Raises:
        ConfigError: no model, or two of the same name.
    """
    if not models:
        raise ConfigError("no model.\n  For example: glassformer serve en-fr")
    folders: dict[str, Path] = {}
    for text in models:
        name, separator, path = text.partition("=")
        folder = Path(path if separator else text)
        name = name if separator else folder.name.strip(".") or folder.resolve().name
        if not NAME.fullmatch(name):
            raise ConfigError(f"{text}: the name {name!r} cannot be part of a URL.\n  Give another: NAME={folder}")
        if name in folders:
            raise ConfigError(f"{text}: there are two models named {name}.\n  Give another name: NAME={folder}")
        folders[name] = folder
    return folders


def assignment(text: str) -> tuple[str, str]:
    """The sides of NAME=VALUE.

    Raises:
        ConfigError: it has another form.
    """
    name, separator, value = text.partition("=")
    if not separator or not value or not NAME.fullmatch(name):
        raise ConfigError(f"{text}: expected NAME=VALUE.")
    return name, value


def languages_by_model(values: tuple[str, ...], folders: dict[str, Path]) -> dict[str, tuple[str, str]]:
    """The languages of models.

    Raises:
        ConfigError: an unknown model, or not two languages.
    """
    from glassformer.corpora.languages import languages_of

    found: dict[str, tuple[str, str]] = {}
    for name, value in map(assignment, values):
        if name not in folders:
            raise ConfigError(f"--languages {name}={value}: there is no model {name}; there are: {', '.join(folders)}.")
        source, target = languages_of((), (), given=tuple(value.split(",")))
        found[name] = source, target
    return found


def print_limits() -> None:
    """Print the limits, with what they mean."""
    import inspect

    from glassformer.serve import limits

    lines = inspect.getsource(limits).splitlines()
    for line, meaning in zip(lines, lines[1:], strict=False):
        if re.match(r"[A-Z_]+ = ", line):
            name = line.partition(" ")[0]
            value = getattr(limits, name)
            print(f"{name:24}{value:>14,}  " + meaning.strip(chr(34)))
