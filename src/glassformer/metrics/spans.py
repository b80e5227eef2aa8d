"""F1 of named entities (exact match of type and both ends), and accuracy of tags."""

from collections.abc import Sequence

import numpy as np

from glassformer.corpora.tagged import SPAN_TAG
from glassformer.metrics.labels import ClassScore, scores_of_counts
from glassformer.metrics.score import common_length, f1_from, mean_from
from glassformer.shapes import Float

Span = tuple[str, int, int]
"""Type, index of the first word, index after the last word."""


def are_span_tags(tags: Sequence[str]) -> bool:
    """Whether the tags mark spans (O, B-x, I-x, also E-x and S-x), unlike for example part-of-speech tags."""
    return any(tag != "O" for tag in tags) and all(map(SPAN_TAG.fullmatch, tags))


def are_sentences_of_span_tags(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the tags of all sentences mark spans."""
    return are_span_tags([tag for tags in sentences for tag in tags])


def find_spans(tags: Sequence[str]) -> list[Span]:
    """Extract spans from BIO tags, with the rules of conlleval.

    An I- that does not continue a span of its type starts one, so that IOB1 is supported too. E- and S- of BIOES end
    a span.

    Raises:
        ValueError: a tag is not a span tag.

    Source: Tjong Kim Sang & De Meulder 2003, and their script conlleval.
    """
    spans: list[Span] = []
    open_type, start = "", 0
    for i, tag in enumerate([*tags, "O"]):
        if not SPAN_TAG.fullmatch(tag):
            raise ValueError(f"tag {i}, {tag!r}: expected O, B-… or I-…")
        prefix, _, type = tag.partition("-")
        if open_type and not (prefix in "IE" and type == open_type):
            spans.append((open_type, start, i))
            open_type = ""
        if prefix != "O" and not open_type:
            open_type, start = type, i
        if prefix in "ES":
            spans.append((open_type, start, i + 1))
            open_type = ""
    return spans


def predicted_spans(tags: Sequence[str]) -> list[Span]:
    """Extract spans from predicted tags. Tags that are not span tags are treated as O.

    A model can predict any tag of its training text, even if all expected tags are span tags.
    """
    return find_spans([tag if SPAN_TAG.fullmatch(tag) else "O" for tag in tags])


def entity_statistics(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]
) -> Float[np.ndarray, "n 3"]:
    """Per sentence of BIO tags: number of correct, predicted and expected spans, for `f1_from`."""
    pairs = [(set(predicted_spans(tags)), set(find_spans(gold))) for tags, gold in _paired(predicted, expected)]
    return np.array([[len(spans & gold), len(spans), len(gold)] for spans, gold in pairs], dtype=np.float64)


def tag_statistics(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 2"]:
    """Per sentence: number of correct tags, number of tags, for `mean_from`."""
    return np.array(
        [[sum(map(str.__eq__, tags, gold)), len(gold)] for tags, gold in _paired(predicted, expected)],
        dtype=np.float64,
    )


def _paired(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]
) -> list[tuple[Sequence[str], Sequence[str]]]:
    common_length(predicted, expected)
    pairs = list(zip(predicted, expected, strict=True))
    for i, (tags, gold) in enumerate(pairs):
        if len(tags) != len(gold):
            raise ValueError(f"sentence {i}: {len(tags)} tags predicted for {len(gold)} words")
    return pairs


def entity_f1(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """F1 over all spans of all types (micro average); 0 if there are no spans."""
    return float(f1_from(entity_statistics(predicted, expected).sum(0)))


def tag_accuracy(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """Fraction of words with the correct tag."""
    return float(mean_from(tag_statistics(predicted, expected).sum(0)))


def entity_scores(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> list[ClassScore]:
    """Precision, recall and F1 of each type of span, in alphabetical order."""
    counts: dict[str, list[int]] = {}
    for tags in _paired(predicted, expected):
        predictions, gold = set(predicted_spans(tags[0])), set(find_spans(tags[1]))
        for column, spans in enumerate((predictions & gold, predictions, gold)):
            for span_type, _, _ in spans:
                counts.setdefault(span_type, [0, 0, 0])[column] += 1
    types = sorted(counts)
    return scores_of_counts(types, np.array([counts[name] for name in types], dtype=np.int64).reshape(-1, 3))
