"""Translation of files: catalogues, memories, documents."""

import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.checkpoint import write_synced
from glassformer.corpora.bilingual import is_hidden
from glassformer.corpora.lines import open_bytes
from glassformer.decode_config import DecodeConfig, Precision
from glassformer.documents.document import Only, Segment
from glassformer.documents.exchange import SUFFIXES, Exchange, exchanged
from glassformer.documents.inline import Position
from glassformer.documents.languages import differing
from glassformer.documents.notes import notes_of
from glassformer.documents.origin import Origin
from glassformer.documents.reader import AnyDocument, read_in_child
from glassformer.errors import ConfigError, CorpusError, UserError
from glassformer.limits import MAX_DOCUMENT_BYTES
from glassformer.tasks.code_positions import code_positions
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

WITHOUT_EFFECT = ("nbest", "align", "confidence", "prefix")
"""Options of translation that a file does not show."""


@dataclass(frozen=True, slots=True)
class TranslatedFile:
    """What was done with a file."""

    path: Path
    """Where it was written."""
    n_translated: int
    """Number of its texts that were translated."""
    n_kept: int
    """Number of entries that already had a translation, or are not to be changed."""
    n_doubtful: int
    """Number of texts whose translation a person has to check, or that were not translated: less confident than asked
    for."""
    n_exact: int
    """Number of texts that the memory has."""
    n_similar: int
    """Number of texts whose translation is that of a similar text of the memory, with changes."""
    notes: tuple[str, ...]
    """What a person should know."""

    def summary(self) -> str:
        """What was done, in one line."""
        parts = [f"{self.n_translated:,} texts translated"]
        if self.n_exact or self.n_similar:
            parts.append(f"{self.n_exact:,} by the memory, {self.n_similar:,} with a similar text of it")
        if self.n_doubtful:
            parts.append(f"{self.n_doubtful:,} of them below the confidence asked for")
        if self.n_kept:
            parts.append(f"{self.n_kept:,} entries kept")
        return f"{self.path}: {', '.join([*parts, *self.notes])}."


class Memo:
    """Translations of texts, each computed once."""

    def __init__(self, task: "TextToTextTask[Any]"):
        self.task = task
        self.known: dict[tuple[str, str], Translation] = {}

    def translate(
        self, segments: Sequence[Segment], options: DecodeConfig, progress: Callable[[int], None]
    ) -> list[Translation]:
        """The translation of each segment; with the word alignment, if it has codes within."""
        plain, aligned = options, options.model_copy(update={"align": True})
        names = {id(each): each.model_dump_json() for each in (plain, aligned)}
        wanted = [aligned if segment.detached and segment.detached.inner else plain for segment in segments]
        keys = [(segment.text, names[id(each)]) for segment, each in zip(segments, wanted, strict=True)]
        new = [key for key in dict.fromkeys(keys) if key not in self.known]
        for each in (plain, aligned):
            texts = [text for text, name in new if name == names[id(each)]]
            for text, nbest in zip(texts, self.task.translate(texts, each, progress=progress), strict=True):
                self.known[text, names[id(each)]] = nbest[0]
        return [self.known[key] for key in keys]


def translate_document(
    task: "TextToTextTask[Any]",
    document: AnyDocument,
    options: DecodeConfig,
    *,
    only: Only = "empty",
    to: Exchange | None = None,
    name: str = "",
    memo: Memo | None = None,
    progress: Callable[[int], None] = no_op,
) -> tuple[bytes, TranslatedFile]:
    """A document in the other language.

    Args:
        options: options of translation. With `min_confidence`, less confident translations are marked in PO and XLIFF,
            in which a person will check them; in other files the text stays as it is.
        only: which entries of a file of two languages are translated.
        to: write the texts and their translations as a file of two languages, instead of the document.
        name: name of the document in such a file.
        memo: translations of other files.
        progress: called with the number of texts that were translated.

    Raises:
        ConfigError: an option without effect on files; or `to`, and the model does not say its languages.
        CorpusError: a translation cannot be written in the encoding of the file.
    """
    languages = check_file_options(task, options, to)
    entries = document.entries
    selected = document.only(only)
    n_kept = len(entries) - len(selected.entries)
    least = options.min_confidence
    marks = least is not None and bool(entries or to)
    """Whether less confident translations are marked in the file instead of left out."""
    protect = tuple(dict.fromkeys((*options.protect, *document.protect)))
    changes = {"protect": protect} | ({"confidence": True, "min_confidence": None} if marks else {})
    changed = options.model_copy(update=changes)
    segments = selected.segments
    translations = (memo or Memo(task)).translate(segments, changed, progress)
    origins = [origin_of(translation, least if marks else None) for translation in translations]
    positions = [] if to else positions_in(task, segments, translations, options.precision)
    texts = [translation.text for translation in translations]
    if to and languages:
        data = exchanged(to, name, languages, [segment.text for segment in segments], texts, origins)
    else:
        data = selected.render(texts, positions, languages, origins)
    similarities = [origin.similarity for origin in origins if origin.used and origin.similarity is not None]
    n_exact = similarities.count(1)
    n_doubtful = sum(origin.is_doubtful for origin in origins)
    n_cut = sum(translation.is_truncated and not translation.is_untranslated for translation in translations)
    n_empty = sum(bool(segment.text) and not text.strip() for segment, text in zip(segments, texts, strict=True))
    return data, TranslatedFile(
        Path(), len(segments), n_kept, n_doubtful, n_exact, len(similarities) - n_exact,
        (
            *document.notes,
            *notes_of(n_cut, n_empty, [t.missing for t in translations], [t.read_as for t in translations]),
        ),
    )  # fmt: skip


def positions_in(
    task: "TextToTextTask[Any]", segments: Sequence[Segment], translations: Sequence[Translation], precision: Precision
) -> list[list[Position]]:
    """Where the tags of each segment belong in its translation."""
    with_tags = [
        (i, segment.detached, translation)
        for i, (segment, translation) in enumerate(zip(segments, translations, strict=True))
        if segment.detached and segment.detached.inner
    ]
    found = code_positions(
        task,
        [detached for _, detached, _ in with_tags],
        [translation for *_, translation in with_tags],
        [translation.alignment or () for *_, translation in with_tags],
        precision,
    )
    positions: list[list[Position]] = [[] for _ in segments]
    for (i, _, _), at in zip(with_tags, found, strict=True):
        positions[i] = at
    return positions


def origin_of(translation: Translation, least: float | None) -> Origin:
    """Where a translation comes from.

    Args:
        least: confidence below which a person has to check it. Default: only one that was not translated.
    """
    match, confidence = translation.match, translation.confidence
    is_doubtful = translation.is_untranslated if least is None else (confidence or 0) < least
    if match is None:
        return Origin(is_doubtful, confidence)
    return Origin(is_doubtful, confidence, match.similarity, match.source, match.target, match.used)


def check_file_options(
    task: "TextToTextTask[Any]", options: DecodeConfig, to: Exchange | None
) -> tuple[str, str] | None:
    """Check that no option is given that a file does not show, or that needs languages that the model does not say.

    Returns:
        Source and target language, if the model says them.

    Raises:
        ConfigError: one is given.
    """
    given = [name for name in WITHOUT_EFFECT if name in options.model_fields_set and getattr(options, name)]
    if given and not (given == ["nbest"] and options.nbest == 1):
        raise ConfigError(f"--{given[0]}: without effect on files.\n  Leave it out.")
    languages = (own[0], own[1]) if (own := getattr(task, "languages", ())) else None
    if to and languages is None:
        raise ConfigError("--to: the model does not say its languages.\n  Train it with --languages.")
    return languages


def read_file(path: Path, languages: Sequence[str]) -> AnyDocument:
    """The document of a file.

    Args:
        languages: source and target language, or none.

    Raises:
        CorpusError: it cannot be read, or has other languages.
    """
    return document_of(path, read_bytes(path), languages)


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        CorpusError: it cannot be read, is empty or too large.
    """
    if path.is_file() and path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise CorpusError(f"{path}: more than {MAX_DOCUMENT_BYTES:,} bytes.\n  Split it.")
    with open_bytes(path) as file:
        data = file.read()
    if not data:
        raise CorpusError(f"{path}: empty file.\n  Was it written completely?")
    return data


def document_of(path: Path, data: bytes, languages: Sequence[str]) -> AnyDocument:
    """`read_file`, given the content of the file."""
    asked = (languages[0], languages[1]) if languages else ("", "")
    document = read_in_child(str(path), data, asked)
    if other := differing(document.languages or ("", ""), asked):
        raise CorpusError(
            f"{path}: {other}, and the model translates from {asked[0]} to {asked[1]}.\n"
            "  Use a model of its languages, or correct the language that the file states."
        )
    return document


def check_new(path: Path) -> None:
    """Check that a file does not exist.

    Raises:
        UserError: it does.
    """
    if path.exists():
        raise UserError(f"{path}: exists already, and is not overwritten.\n  Name another --out, or remove it.")


def write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist, completely or not at all.

    Raises:
        UserError: it exists, or cannot be written.
    """
    check_new(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent}: cannot be made a folder ({error.strerror}).\n  Name another --out.") from None
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_synced(temporary, data)
        try:
            os.link(temporary, path)  # fails if another program has made it since
        except FileExistsError:
            check_new(path)
        except OSError:  # a file system without links
            temporary.rename(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).\n  Check the folder and the disk.") from None
    finally:
        temporary.unlink(missing_ok=True)


def outputs(
    paths: Iterable[Path], out: Path, supported: Sequence[str] | None, to: Exchange | None = None
) -> list[tuple[Path, Path]]:
    """Each file to translate, and where it is written: in the folder `out`, under its name; those of a folder under
    their path in it, without those of `out` if it is inside.

    Args:
        supported: suffixes of the files of a folder that are taken. Default: all. Hidden files, and those in hidden
            folders, are not.
        to: its suffix is added to the names.

    Raises:
        UserError: a folder has no file to translate, or two files have one name.
    """

    def is_taken(path: Path, folder: Path) -> bool:
        has_suffix = supported is None or path.suffix.lower() in supported
        return has_suffix and not is_hidden(str(path.relative_to(folder)))

    found: list[tuple[Path, Path]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, out / path.name))
            continue
        is_inside = out.resolve() != path.resolve() and out.resolve().is_relative_to(path.resolve())
        files = [p for p in sorted(path.rglob("*")) if not (is_inside and p.resolve().is_relative_to(out.resolve()))]
        inside = [p for p in files if p.is_file() and is_taken(p, path)]
        if not inside:
            which = f" that can be translated: {', '.join(supported)}" if supported is not None else ""
            raise UserError(f"{path}: a folder without files{which}.\n  Name another folder, or files.")
        found += [(p, out / p.relative_to(path)) for p in inside]
    if to:
        found = [(path, target.with_name(target.name + SUFFIXES[to])) for path, target in found]
    names: dict[Path, Path] = {}
    for path, target in found:
        other = names.setdefault(target, path)
        if other != path:
            raise UserError(f"{path} and {other}: would both be {target}.\n  Translate them into different folders.")
    return found
