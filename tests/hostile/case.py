"""What a hostile case is, and what is expected of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Setup = Callable[[Path, Path], Any]
"""Called with the folder of the case, which is the current folder, and the folder of models and corpora."""


@dataclass(frozen=True)
class Expect:
    """What a case may do. An error is one message; nothing that existed before may be changed."""

    codes: frozenset[int]
    says: tuple[str, ...] = ()
    """Parts of the error message."""
    warns: tuple[str, ...] = ()
    """Parts of standard error of a success."""
    n_lines: int | None = None
    """Lines of standard output of a success."""
    partial: bool = False
    """Standard output may have the answers to the lines before the one with the error."""
    findings: bool = False
    """Exit code 1 is no error: doctor has found something."""
    changes: tuple[str, ...] = ()
    """Beginnings of the names of files that may be changed."""
    check: Callable[[Any], str | None] | None = None
    """Called with the result of a success: what is wrong with it."""

    def may_change(self, names: Iterable[str]) -> bool:
        return all(name.startswith(self.changes) for name in names) if self.changes else not [*names]


def fails(*codes: int, says: str | Iterable[str] = (), **more: Any) -> Expect:
    """An error message and one of these exit codes."""
    return Expect(frozenset(codes), says=(says,) if isinstance(says, str) else tuple(says), **more)


def works(n_lines: int | None = None, codes: frozenset[int] = frozenset({0}), **more: Any) -> Expect:
    """Success."""
    return Expect(codes, n_lines=n_lines, **more)


def either(*codes: int, n_lines: int | None = None, **more: Any) -> Expect:
    """Success, or an error message and one of these exit codes (default: 1 and 2)."""
    return Expect(frozenset({0, *(codes or (1, 2))}), n_lines=n_lines, **more)


@dataclass(frozen=True)
class Case:
    """A command line, or a Python call, with what it reads and what is expected of it."""

    id: str
    arguments: tuple[str, ...]
    expect: Expect
    setup: Setup | None = None
    stdin: bytes | str = b""
    """Bytes, or "closed", or the path of a file or device."""
    stdout: str = "file"
    """file, closed, full (/dev/full) or reader gone (a pipe that nobody reads)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    call: Callable[[Path, Path], str | None] | None = None
    """A Python call in place of a command: returns what is wrong with its result, or None."""

    @property
    def group(self) -> str:
        return self.id.partition("/")[0]


def command(id: str, line: str | Iterable[str], expect: Expect, setup: Setup | None = None, **more: Any) -> Case:
    """A case of a command line. {m} is the folder of models and corpora, {t} the folder of the case."""
    arguments = line.split(" ") if isinstance(line, str) else line
    return Case(id, tuple(arguments), expect, setup, **more)
