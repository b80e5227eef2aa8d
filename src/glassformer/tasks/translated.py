"""A translation, and its record."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from glassformer.config import JsonObject
from glassformer.corpora.memory import Match
from glassformer.tasks.base import Record


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text."""

    source: str
    text: str
    score: float
    """Sum of `log_probs` divided by ((5 + length) / 6)^length_penalty, at most 0. For a text in parts, the sum over the
    parts. transformers divides by length^length_penalty."""
    tokens: list[str]
    log_probs: list[float]
    """Natural log-probability of each token, given the source and the previous tokens."""
    repeated: bool = False
    """A first translation repeated itself ("salad salad salad"), and this one was decoded without repeated n-grams."""
    recased: bool = False
    """The model was given the text, which is in capitals or in title case, in the case that it knows."""
    read_as: tuple[tuple[str, str], ...] = ()
    """Words with a typing error, each with the word that the model was given instead."""
    missing: tuple[str, ...] = ()
    """Terms of the glossary that are in the source and not in the translation."""
    ids: tuple[int, ...] = ()
    """Token ids."""
    words: tuple[tuple[str, float], ...] | None = None
    """If requested: each word of the translation, without protected spans, with the probability that it is right. Words
    of a term that the glossary put in have 1."""
    match: Match | None = None
    """A text of the translation memory: an equal one, whose translation this is; or a similar one, of whose translation
    parts were replaced, or that was not used."""
    forced: tuple[str, ...] = ()
    """Forms of terms that the glossary put in."""
    is_untranslated: bool = False
    """The confidence was too low, and the text is the source."""
    is_truncated: bool = False
    """It was cut off at the maximum length: the end, or the end of a part, is missing."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """If requested: pairs of a word of the source and a word of the translation, counted from 0. Words are separated by
    white space."""

    @property
    def confidence(self) -> float | None:
        """Expected fraction of right words, if requested. Without words it is 1 if there was nothing to translate,
        else 0."""
        if self.words is None:
            return None
        return sum(p for _, p in self.words) / len(self.words) if self.words else float(not self.log_probs)


class TranslationRecord(Record, total=False):
    """JSON record of a line: its best translation, with the fields of `Translation`."""

    score: float
    tokens: list[str]
    log_probs: list[float]
    repeated: bool
    """True if a first translation repeated itself, and this one was decoded without repeated n-grams."""
    recased: bool
    """True if the input is in capitals or in title case, and the model was given it in the case that it knows."""
    read_as: list[list[str]]
    """Words with a typing error, each with the word that the model was given instead, if there are any."""
    missing: list[str]
    """Terms of the glossary that are in the source and not in the translation, if there are any."""
    match: JsonObject
    """The equal or most similar text of the translation memory, if there is one: similarity, source, target, used."""
    confidence: float
    """Expected fraction of right words, if requested."""
    words: list[list[str | float]]
    """Each word and the probability that it is right, if requested."""
    untranslated: bool
    """True if the confidence was too low; the output is the source."""
    truncated: bool
    """True if it was cut off at the maximum length: the end, or the end of a part, is missing."""
    alignment: list[list[int]]
    """Pairs of source and target word, if requested."""
    nbest: list[JsonObject]
    """All translations, best first, if there are several: output, score, tokens and log_probs of each."""


def record_of(nbest: Sequence[Translation]) -> TranslationRecord:
    """JSON record of the translations of one text, best first."""
    best = nbest[0]
    record: TranslationRecord = {
        "input": best.source,
        "output": best.text,
        "score": best.score,
        "tokens": best.tokens,
        "log_probs": best.log_probs,
    }
    if best.repeated:
        record["repeated"] = True
    if best.recased:
        record["recased"] = True
    if best.read_as:
        record["read_as"] = [list(pair) for pair in best.read_as]
    if best.missing:
        record["missing"] = list(best.missing)
    if best.match:
        record["match"] = asdict(best.match)
    if best.confidence is not None and best.words is not None:
        record["confidence"] = best.confidence
        if not best.is_untranslated:  # they are those of the translation
            record["words"] = [list(pair) for pair in best.words]
    if best.is_untranslated:
        record["untranslated"] = True
    if best.is_truncated:
        record["truncated"] = True
    if best.alignment is not None:
        record["alignment"] = [list(pair) for pair in best.alignment]
    if len(nbest) > 1:
        record["nbest"] = [
            {
                "output": t.text,
                "score": t.score,
                "tokens": t.tokens,
                "log_probs": t.log_probs,
                **({"untranslated": True} if t.is_untranslated else {}),
                **({"truncated": True} if t.is_truncated else {}),
            }
            for t in nbest
        ]
    return record
