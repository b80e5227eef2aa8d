"""Pieces of a file of XML: what is put in the place of parts of it, and the rest as it is."""

from glassformer.documents.document import Piece
from glassformer.documents.xml import Node

MAX_INDENT = 200
"""Maximum number of characters before an element that is indented like another."""


class Splicer:
    """The pieces of a file: what is put in the place of parts of it, and the rest as it is."""

    def __init__(self, data: bytes):
        self.data = data
        self.replaced: list[tuple[int, int, list[Piece]]] = []

    def raw(self, start: int, end: int) -> str:
        """A part of the file."""
        return self.data[start:end].decode()

    def space_before(self, node: Node) -> str:
        """The white space before an element, by which it is indented."""
        before = self.data[max(0, node.start - MAX_INDENT) : node.start]
        return before[len(before.rstrip()) :].decode()

    def replace(self, start: int, end: int, *pieces: Piece) -> None:
        """Put pieces in the place of a part. Parts do not overlap."""
        self.replaced.append((start, end, list(pieces)))

    def pieces(self, start: int = 0, end: int | None = None) -> list[Piece]:
        """All pieces of a part of the file."""
        results: list[Piece] = []
        position = start
        end = len(self.data) if end is None else end
        for a, b, pieces in sorted(self.replaced, key=lambda part: part[:2]):
            results += [self.raw(position, a), *pieces]
            position = b
        return [piece for piece in [*results, self.raw(position, end)] if piece != ""]
