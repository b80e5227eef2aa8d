"""F1 of named entities, which count where type and both ends are right; accuracy of tags."""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from glassformer.metrics.labels import ClassScore, scores_of_counts
from glassformer.metrics.score import Score, divide, f1_from, mean_from, same_length

Span = tuple[str, int, int]
"""Type, first word, word after the last."""

_SPAN_TAG = re.compile("O|[BIES]-.+", re.DOTALL)


def are_span_tags(tags: Sequence[str]) -> bool:
    """Whether the tags mark spans (O, B-x, I-x, also E-x and S-x) rather than, say, parts of speech."""
    return any(tag != "O" for tag in tags) and all(map(_SPAN_TAG.fullmatch, tags))


def find_spans(tags: Sequence[str]) -> list[Span]:
    """The spans that BIO tags mark, as conlleval reads them.

    An I- that continues nothing of its type begins a span, so IOB1 is read too; E- and S- of BIOES end one.

    Raises:
        ValueError: a tag that marks no span.

    Source: Tjong Kim Sang & De Meulder 2003, and their script conlleval.
    """
    found: list[Span] = []
    kind, start = "", 0
    for i, tag in enumerate([*tags, "O"]):
        if not _SPAN_TAG.fullmatch(tag):
            raise ValueError(f"tag {i}, {tag!r}: expected O, B-… or I-…")
        prefix, _, type = tag.partition("-")
        if kind and not (prefix in "IE" and type == kind):
            found.append((kind, start, i))
            kind = ""
        if prefix != "O" and not kind:
            kind, start = type, i
        if prefix in "ES":
            found.append((kind, start, i + 1))
            kind = ""
    return found


def predicted_spans(tags: Sequence[str]) -> list[Span]:
    """The spans of predicted tags; a tag that is not a span tag counts as O.

    A model can predict any tag of its training text, even where the expected tags are all span tags.
    """
    return find_spans([tag if _SPAN_TAG.fullmatch(tag) else "O" for tag in tags])


def entity_statistics(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]
) -> Float[np.ndarray, "n 3"]:
    """Per sentence of BIO tags: spans that are right, predicted, expected. `f1_from` makes the F1 of their sums."""
    pairs = [(set(predicted_spans(said)), set(find_spans(true))) for said, true in _paired(predicted, expected)]
    return np.array([[len(said & true), len(said), len(true)] for said, true in pairs], dtype=np.float64)


def tag_statistics(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 2"]:
    """Per sentence: tags that are right, tags. `mean_from` makes the accuracy of their sums."""
    return np.array(
        [[sum(map(str.__eq__, said, true)), len(true)] for said, true in _paired(predicted, expected)],
        dtype=np.float64,
    )


def _paired(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]
) -> list[tuple[Sequence[str], Sequence[str]]]:
    same_length(predicted, expected)
    pairs = list(zip(predicted, expected, strict=True))
    for i, (said, true) in enumerate(pairs):
        if len(said) != len(true):
            raise ValueError(f"sentence {i}: {len(said)} tags predicted for {len(true)} words")
    return pairs


def entity_f1(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """F1 over all spans of all types (micro average); 0 where neither side has any."""
    return float(f1_from(entity_statistics(predicted, expected).sum(0)))


def tag_accuracy(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """Share of words that got their tag."""
    return float(mean_from(tag_statistics(predicted, expected).sum(0)))


def entity_scores(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> list[ClassScore]:
    """Precision, recall and F1 of each type of span, in alphabetical order."""
    counts: dict[str, list[int]] = {}
    for tags in _paired(predicted, expected):
        said, true = set(predicted_spans(tags[0])), set(find_spans(tags[1]))
        for column, spans in enumerate((said & true, said, true)):
            for kind, _, _ in spans:
                counts.setdefault(kind, [0, 0, 0])[column] += 1
    kinds = sorted(counts)
    return scores_of_counts(kinds, np.array([counts[kind] for kind in kinds], dtype=np.int64).reshape(-1, 3))


def tag_scores(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> list[Score]:
    """Accuracy of tags and, where the expected tags mark spans, precision, recall and F1 of the spans."""
    scores = [Score("accuracy", tag_accuracy(predicted, expected), "of:tags")]
    if are_span_tags([tag for tags in expected for tag in tags]):
        sums = entity_statistics(predicted, expected).sum(0)
        how = "of:entities|match:exact|average:micro"
        scores += [
            Score("precision", float(divide(sums[0], sums[1])), how),
            Score("recall", float(divide(sums[0], sums[2])), how),
            Score("F1", float(f1_from(sums)), how),
        ]
    return scores
