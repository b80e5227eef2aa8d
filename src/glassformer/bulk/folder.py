"""The output folder of a run, which belongs to one model and its options."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from glassformer.bulk.run import WORK, folder_of
from glassformer.checkpoint import make_folder, to_json, write_error, write_text
from glassformer.errors import ConfigError
from glassformer.lock import locked
from glassformer.manifest import read_json, sha256

RUN = "run.json"
"""File that says what the outputs are those of."""


@contextmanager
def output_folder(out: Path, shard: tuple[int, int], identity: Mapping[str, object]) -> Iterator[None]:
    """Hold an output folder, for one shard.

    Args:
        identity: what determines the outputs; name -> JSON value.

    Raises:
        ConfigError: the folder has outputs of something else.
        UserError: it cannot be read or written, or another process works at the same shard.
    """
    own = out / WORK / folder_of(shard)
    try:
        make_folder(own)
    except OSError as error:
        raise write_error(own, error) from None
    with locked(own, "working"):
        path = out / WORK / RUN
        now = json.loads(json.dumps(identity))
        if not path.exists():
            write_text(path, to_json(now))
        before = read_json(path)
        if different := [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]:
            was, is_ = (describe(different[0], values.get(different[0])) for values in (before, now))
            raise ConfigError(
                f"{out}: was begun {was}, not {is_}.\n"
                f"  Name another --out, or remove {out / WORK} and the files of this run."
            )
        yield


def describe(name: str, value: object) -> str:
    """A part of what determines outputs, in a message."""
    if value in (None, False, []):
        return f"without {name}"
    return f"with {name}" if value is True else f"with {name} {json.dumps(value, ensure_ascii=False)}"


def content_of(path: Path) -> str:
    """SHA-256 of a file, or of a folder with all its files."""
    if not path.is_dir():
        return sha256(path)
    files = [p for p in sorted(path.rglob("*")) if p.is_file()]
    return hashlib.sha256("".join(f"{p.relative_to(path)}\0{sha256(p)}\n" for p in files).encode()).hexdigest()
