"""A text and its translation in a file of two languages."""

from dataclasses import dataclass

from glassformer.documents.document import State


@dataclass(frozen=True, slots=True)
class Unit:
    """A text and its translation, each in one line and without codes. An empty text if there is none."""

    src: str
    tgt: str
    state: State
    number: int
    """Its line in the file, or, where these are not known, its number; counted from 1."""
    languages: tuple[str, str] = ("", "")
    """Languages as the file has them."""
    marked: tuple[str, str] | None = None
    """Both texts with a character for each code, if they have the same codes."""
    is_swapped: bool = False
    """The file translates in the other direction, by the languages that it names."""
