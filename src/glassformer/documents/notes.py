"""What a person should know of the translations of a document."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

MAX_NAMES = 10
"""Number of missing terms that a note names."""


def notes_of(
    n_cut: int, n_empty: int, missing: Sequence[Sequence[str]], read_as: Sequence[Sequence[tuple[str, str]]]
) -> Iterator[str]:
    """Notes about translations.

    Args:
        n_cut: number of translations that were cut off at the maximum length.
        n_empty: number of empty translations of texts that are not.
        missing: the terms of the glossary that are not in each translation.
        read_as: the words of each text that were read as others, and these.
    """
    if n_cut:
        yield f"{n_cut:,} cut off at the maximum length"
    if n_empty:
        yield f"{n_empty:,} as they were, because the model's translation is empty"
    if lacking := [terms for terms in missing if terms]:
        yield f"{len(lacking):,} without a term of the glossary: {first_of(chain(*lacking))}"
    if read := [pair for pairs in read_as for pair in pairs]:
        examples = first_of(f"{written} as {word}" for written, word in read)
        yield f"words read as known ones ({len(read):,}): {examples}"


def first_of(names: Iterable[str]) -> str:
    """The first different names, in one text."""
    different = [*dict.fromkeys(names)]
    return ", ".join(different[:MAX_NAMES]) + (", …" if len(different) > MAX_NAMES else "")
