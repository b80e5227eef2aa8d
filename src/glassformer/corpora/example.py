"""An example of a parallel corpus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair, with its file (of two, the source file) and its line, counted from 1."""

    src: str
    tgt: str
    path: str
    line: int
    marked: tuple[str, str] | None = None
    """Both texts with a character for each code, if the file has codes in them."""

    @property
    def has_both_sides(self) -> bool:
        """Whether neither side is blank."""
        return bool(self.src.strip() and self.tgt.strip())
