"""What a person should know of the translations of a document."""

from collections.abc import Iterator, Sequence

MAX_TERMS = 10
"""Number of missing terms that a note names."""


def notes_of(n_cut: int, n_empty: int, missing: Sequence[Sequence[str]]) -> Iterator[str]:
    """Notes about translations.

    Args:
        n_cut: number of translations that were cut off at the maximum length.
        n_empty: number of empty translations of texts that are not.
        missing: the terms of the glossary that are not in each translation.
    """
    if n_cut:
        yield f"{n_cut:,} cut off at the maximum length"
    if n_empty:
        yield f"{n_empty:,} as they were, because the model's translation is empty"
    if lacking := [terms for terms in missing if terms]:
        names = [*dict.fromkeys(term for terms in lacking for term in terms)]
        more = ", …" if len(names) > MAX_TERMS else ""
        yield f"{len(lacking):,} without a term of the glossary: {', '.join(names[:MAX_TERMS])}{more}"
