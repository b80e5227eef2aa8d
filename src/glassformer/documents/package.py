"""Files that are zip archives of XML: Office, OpenDocument, EPUB."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from glassformer.documents.document import ADDRESSES, Document, Entry, Only, Segment
from glassformer.documents.inline import Position
from glassformer.documents.origin import Origin
from glassformer.errors import CorpusError

MAX_FILES = 20_000
MAX_TOTAL_BYTES = 512 << 20
MAX_RATIO = 500
"""Limits of an archive: files, bytes in all, and how much its files may be compressed."""

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of files of Office before 2007, and of encrypted ones."""


@dataclass(frozen=True, slots=True)
class Package:
    """An archive, some files of which are documents. The others are copied."""

    parts: dict[str, Document]
    notes: tuple[str, ...] = ()
    data: bytes = field(default=b"", repr=False)
    """The archive."""

    protect = ADDRESSES
    languages = None

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate, file by file."""
        return [segment for part in self.parts.values() for segment in part.segments]

    @property
    def entries(self) -> list[Entry]:
        """None: the files have one language."""
        return []

    def only(self, only: Only) -> "Package":
        """The package as it is."""
        return self

    def render(
        self,
        translations: Sequence[str],
        positions: Sequence[Sequence[Position]] = (),
        languages: tuple[str, str] | None = None,
        origins: Sequence[Origin] = (),
    ) -> bytes:
        """The archive with translations, see `Document.render`."""
        changed: dict[str, bytes] = {}
        position = 0
        for name, part in self.parts.items():
            end = position + len(part.segments)
            changed[name] = part.render(translations[position:end], positions[position:end], languages)
            position = end
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.data)) as old, zipfile.ZipFile(out, "w") as new:
            new.comment = old.comment
            for info in old.infolist():
                data = changed.get(info.filename)
                new.writestr(replaced(info), old.read(info) if data is None else data)
        return out.getvalue()

    def to_record(self) -> dict[str, Any]:
        """The package as JSON-serializable data, without the archive."""
        return {"parts": {name: part.to_record() for name, part in self.parts.items()}, "notes": self.notes}

    @classmethod
    def from_record(cls, record: dict[str, Any], data: bytes) -> "Package":
        """The package of a record, and the archive."""
        parts = {name: Document.from_record(part) for name, part in record["parts"].items()}
        return cls(parts, tuple(record["notes"]), data)


def replaced(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """What an archive says of a file, for another archive."""
    other = zipfile.ZipInfo(info.filename, info.date_time)
    other.compress_type = info.compress_type if info.compress_type in (0, 8) else zipfile.ZIP_DEFLATED
    other.external_attr, other.comment, other.create_system = info.external_attr, info.comment, info.create_system
    return other


def open_package(name: str, data: bytes) -> zipfile.ZipFile:
    """An archive within the limits.

    Raises:
        CorpusError: it is none, is encrypted, or beyond the limits.
    """
    if data.startswith(OLE):
        raise CorpusError(
            f"{name}: encrypted, or a file of Office before 2007.\n"
            "  Open it, remove the password, and save it as .docx, .xlsx, .pptx or OpenDocument."
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise CorpusError(
            f"{name}: not what its suffix says: no zip archive ({error})."
            "\n  Give it the suffix of its format, or save it again."
        ) from None
    if any(info.flag_bits & 1 for info in infos):
        raise CorpusError(f"{name}: encrypted.\n  Remove the password, and save it again.")
    total = sum(info.file_size for info in infos)
    is_bomb = any(info.file_size > (1 << 20) and info.file_size > MAX_RATIO * info.compress_size for info in infos)
    if len(infos) > MAX_FILES or total > MAX_TOTAL_BYTES or is_bomb:
        raise CorpusError(
            f"{name}: {len(infos):,} files of {total:,} bytes, or compressed more than {MAX_RATIO} times:"
            " beyond the limits.\n  Divide it, or unpack it yourself if you trust it."
        )
    if not all(info.filename for info in infos):
        raise CorpusError(f"{name}: a file without a name in the archive.\n  Save it again.")
    if len({info.filename for info in infos}) < len(infos):
        raise CorpusError(f"{name}: two files of one name in the archive.\n  Save it again.")
    return archive


def files_of(name: str, archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """The files of an archive, in order.

    Raises:
        CorpusError: one is damaged.
    """
    for info in archive.infolist():
        if info.is_dir():
            continue
        try:
            yield info.filename, archive.read(info)
        except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, EOFError) as error:
            raise CorpusError(f"{name}: {info.filename} is damaged ({error}).\n  Save the file again.") from None


def without_texts(document: Document) -> bool:
    """Whether nothing of a document is translated."""
    return not document.segments and not document.attributes
