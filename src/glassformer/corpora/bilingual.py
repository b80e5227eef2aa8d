"""Pairs of the files that translators have: translation memories, XLIFF, gettext catalogues, archives of them, and two
catalogues of one language each, by key.
"""

import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import IO

from glassformer.corpora.example import Example
from glassformer.corpora.lines import content, decompressed, open_bytes
from glassformer.documents.catalogues import catalogue
from glassformer.documents.codes import plain
from glassformer.documents.document import State
from glassformer.documents.languages import primary
from glassformer.documents.po import po_units
from glassformer.documents.tmx import tmx_units
from glassformer.documents.unit import Unit
from glassformer.documents.xliff import xliff_units
from glassformer.errors import CorpusError
from glassformer.limits import MAX_DOCUMENT_BYTES

Languages = tuple[str, str]
"""Source and target language; an empty text for one that the file says."""

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "tmx": (".tmx",),
    "xliff": (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
    "po": (".po",),
}
"""Formats with both languages -> suffixes of file names."""

SKIP_ADVICE = "\n  To leave out files that cannot be read: --skip-bad"
"""End of the error for a file that cannot be read."""

KNOWN_SUFFIXES = ", ".join(suffix for names in SUFFIXES.values() for suffix in names)

ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz")
"""Suffixes of archives of such files."""


@dataclass(slots=True)
class Counts:
    """What was used of the entries of files, and what was left out."""

    states: Counter[str] = field(default_factory=Counter)
    n_swapped: int = 0
    """Entries of files that translate in the other direction."""
    files: int = 0
    languages: Languages = ("", "")
    first_path: str = ""
    bad: list[str] = field(default_factory=list)
    """The errors of files that were left out."""

    def begin(self, path: str) -> None:
        """Count a file."""
        self.files += 1
        self.first_path = self.first_path or path

    def add(self, unit: Unit) -> None:
        """Count an entry."""
        self.languages = self.languages if any(self.languages) else unit.languages
        self.states[unit.state] += 1
        self.n_swapped += unit.is_swapped

    def warning(self) -> str:
        """What a person should know of files that were left out; an empty text if none was."""
        if not self.bad:
            return ""
        first = self.bad[0].split("\n")[0]
        n = len(self.bad)
        return (
            f"warning: {n:,} of {self.files:,} files cannot be read and {'was' if n == 1 else 'were'} left out: {first}"
        )

    def summary(self, *, fuzzy: bool) -> str:
        """What a person should know."""
        n_used = self.states["translated"] + self.states["locked"] + (self.states["fuzzy"] if fuzzy else 0)
        which = "".join(f" {word} {code}" for word, code in zip(("from", "to"), self.languages, strict=True) if code)
        left_out = [f"{self.states['empty']:,} without a translation"] if self.states["empty"] else []
        if self.states["forms"]:
            left_out.append(f"{self.states['forms']:,} with plural forms of ICU")
        if self.states["fuzzy"] and not fuzzy:
            left_out.append(f"{self.states['fuzzy']:,} fuzzy or made by a machine (--fuzzy uses them)")
        files = self.first_path if self.files == 1 else f"{self.files:,} files"
        rest = f"; left out: {', '.join(left_out)}" if left_out else ""
        if self.n_swapped:
            rest += f"; {self.n_swapped:,} entries the other way round, by the languages that the file names"
        return f"{files}: {n_used:,} pair{'s' * (n_used != 1)}{which}{rest}."


def both_sided_format(path: Path) -> str | None:
    """The format of a file with both languages, by its name without .gz; None for others."""
    name = path.name.lower()
    if name.endswith(ARCHIVES):
        return "archive"
    suffix = PurePath(name.removesuffix(".gz")).suffix
    return next((format for format, suffixes in SUFFIXES.items() if suffix in suffixes), None)


def read_entries(
    path: Path, format: str, languages: Languages, *, fuzzy: bool, skip_bad: bool, counts: Counts
) -> Iterator[Example]:
    """The translated entries of a file, in one line each and without codes.

    Args:
        format: one of SUFFIXES, or "archive".
        languages: source and target language.
        fuzzy: also those that a person has to check.
        skip_bad: leave out files that cannot be read; of a memory, what follows the place of the error.
        counts: gets the numbers of entries.

    Raises:
        CorpusError: it cannot be read, or is in other languages.
    """
    used = ("translated", "locked", "fuzzy") if fuzzy else ("translated", "locked")
    for where, units in read_units(path, format, languages):
        counts.begin(where)
        try:
            for unit in units:
                counts.add(unit)
                if unit.state in used and unit.src:
                    yield Example(unit.src, unit.tgt, where, unit.number, unit.marked)
        except CorpusError as error:
            if not skip_bad:
                raise CorpusError(f"{error}{SKIP_ADVICE}") from None
            counts.bad.append(str(error))


def read_units(path: Path, format: str, languages: Languages) -> Iterator[tuple[str, Iterator[Unit]]]:
    """The entries of a file, with its name; of an archive, those of each of its files."""
    if format == "archive":
        others = []
        n = 0
        for member, read in members(path):
            inner = both_sided_format(Path(member))
            if is_hidden(member):
                continue
            if not inner or inner == "archive":
                others.append(member)
                continue
            n += 1
            where = f"{path}/{member}"
            yield where, units_of(where, inner, decompressed(read(), Path(where)), languages)
        if not n:
            listed = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
            raise CorpusError(
                f"{path}: an archive without translated files ({KNOWN_SUFFIXES}); it has {listed or 'nothing'}.\n"
                "  Unpack it, and name the files to read."
            )
        return
    with open_bytes(path) as file:
        chunks = content(file, path)
        first = next(chunks, b"")
        if not first:
            raise CorpusError(f"{path}: empty file.\n  Was it written completely?")
        yield str(path), units_of(str(path), format, chain([first], chunks), languages)


def units_of(name: str, format: str, chunks: Iterator[bytes], languages: Languages) -> Iterator[Unit]:
    """The entries of a file."""
    if format == "tmx":
        return tmx_units(name, chunks, languages)
    data = whole(name, chunks)
    return xliff_units(name, data, languages) if format == "xliff" else po_units(name, data, languages)


def whole(name: str, chunks: Iterator[bytes]) -> bytes:
    """The bytes of a file that is read at once.

    Raises:
        CorpusError: they are too many.
    """
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_DOCUMENT_BYTES:
            raise CorpusError(f"{name}: more than {MAX_DOCUMENT_BYTES:,} bytes.\n  Split it into several files.")
    return bytes(data)


def members(path: Path) -> Iterator[tuple[str, Callable[[], Iterator[bytes]]]]:
    """The files of an archive in the order of their names or of the archive, each with what reads it.

    Raises:
        CorpusError: it cannot be read.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for info in sorted(archive.infolist(), key=lambda info: info.filename):
                    if not info.is_dir():
                        yield info.filename, partial(parts, path, partial(archive.open, info))
            return
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isfile():
                    yield member.name, partial(parts, path, partial(tar.extractfile, member))
    except ARCHIVE_ERRORS as error:
        raise bad_archive(path, error) from None


ARCHIVE_ERRORS = (
    OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, ValueError,
    IndexError,
)  # fmt: skip
"""What the libraries raise for archives that are damaged: also names that are empty or not UTF-8."""


def bad_archive(path: Path, error: Exception) -> CorpusError:
    """The error for an archive that cannot be read."""
    return CorpusError(f"{path}: cannot be read as an archive ({error}).\n  Unpack it, and name the folder.")


def parts(path: Path, opened: Callable[[], IO[bytes] | None]) -> Iterator[bytes]:
    """The bytes of a file of an archive, in parts.

    Raises:
        CorpusError: it cannot be read.
    """
    try:
        file = opened()
        if file is None:
            return
        with file:
            while chunk := file.read(1 << 20):
                yield chunk
    except ARCHIVE_ERRORS as error:
        raise bad_archive(path, error) from None


def read_catalogue_pairs(src: Path, tgt: Path, counts: Counts) -> Iterator[Example]:
    """Pairs of two catalogues of one language each: the texts of each key of both.

    Raises:
        CorpusError: one cannot be read, or they have no key in common.
    """
    sides = []
    for path in (src, tgt):
        with open_bytes(path) as file:
            read = catalogue(path.name, whole(str(path), content(file, path)))
        sides.append((read, {item.key: plain(item.content) for item in read.items if not item.has_forms}))
    (source, texts), (_, translations) = sides
    if not texts.keys() & translations.keys():
        raise CorpusError(
            f"{src} and {tgt}: no key in common.\n  Name the catalogues of two languages of the same program."
        )
    counts.begin(str(src))
    line = position = 0
    for item in source.items:
        if item.has_forms:
            counts.states["forms"] += 1
            continue
        line += source.text.count("\n", position, item.start)
        position = item.start
        translation = translations.get(item.key, "")
        state: State = "translated" if translation and texts[item.key] else "empty"
        unit = Unit(texts[item.key], translation, state, line + 1)
        counts.add(unit)
        if state == "translated":
            yield Example(unit.src, unit.tgt, str(src), unit.number)


def files_in(folder: Path) -> list[Path]:
    """The files with both languages in a folder and the folders in it, by name.

    Raises:
        CorpusError: there is none.
    """
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and both_sided_format(path))
    found = [path for path in paths if not is_hidden(str(path.relative_to(folder)))]
    if not found:
        raise CorpusError(
            f"{folder}: is a folder without translated files ({KNOWN_SUFFIXES}).\n  Name the files to read."
        )
    return found


def is_hidden(name: str) -> bool:
    """Whether a file of an archive or a folder is hidden, in a hidden folder, or what macOS knows of another file.

    Args:
        name: its path in it.
    """
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePath(name).parts)


def expanded(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Files, with those of a folder in its place."""
    return tuple(file for path in paths for file in (files_in(path) if path.is_dir() else [path]))


def declared_languages(path: Path) -> tuple[str, ...]:
    """Codes of the languages of the first entry of a file with both; empty if they are not known."""
    format = both_sided_format(path)
    if not format or not path.is_file():
        return ()
    units = (unit for _, units in read_units(path, format, ("", "")) for unit in units)
    try:
        found = next((unit.languages for unit in units if all(unit.languages)), ("", ""))
    except CorpusError:  # the training reports it
        return ()
    codes = tuple(map(primary, found))
    return codes if all(codes) and codes[0] != codes[1] else ()
