"""Where a translation comes from, and how files of two languages say it."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a translation comes from."""

    is_doubtful: bool = False
    """A person has to check it."""
    confidence: float | None = None
    """Expected fraction of right words, if it is known."""
    similarity: float | None = None
    """Similarity of the text of a translation memory: 1 for an equal one."""
    source: str = ""
    """The similar text."""
    target: str = ""
    """Its translation."""
    used: bool = True
    """Whether the translation was made of it: it is that of an equal text, or parts of that of a similar one were
    replaced."""


@dataclass(frozen=True, slots=True)
class Either:
    """What depends on whether a person has to check a translation."""

    sure: str
    doubtful: str


Form = Literal["qualifier", "sub-state", "confidence", "proposal", "creator"]
"""How a file says where a translation comes from: `state-qualifier` of XLIFF 1.2 and `subState` of XLIFF 2,
`mtConfidence` of the Internationalization Tag Set, the similar text of a memory as `alt-trans`, and TMX's `creationid`.
"""


@dataclass(frozen=True, slots=True)
class Quality:
    """What a file says of the origin of a translation."""

    form: Form
    prefix: str = ""
    """Namespace prefix of the elements."""

    def written(self, origin: Origin) -> str:
        """How it is written; nothing if there is nothing to say."""
        similarity, confidence = origin.similarity if origin.used else None, origin.confidence
        match self.form:
            case "qualifier":
                if similarity is None:
                    return "mt-suggestion"
                return "exact-match" if similarity == 1 else "fuzzy-match"
            case "sub-state":
                machine = "mt" if confidence is None else f"mt-{percentage(confidence)}"
                return "glassformer:" + (machine if similarity is None else f"tm-{percentage(similarity)}")
            case "confidence":
                if confidence is None or similarity == 1:
                    return ""
                return (
                    ' xmlns:its="http://www.w3.org/2005/11/its" its:annotatorsRef="mt-confidence|glassformer"'
                    f' its:mtConfidence="{confidence:.2f}"'
                )
            case "proposal":
                if origin.similarity is None or origin.similarity == 1:
                    return ""
                name, source, target = f"{self.prefix}alt-trans", html.escape(origin.source), html.escape(origin.target)
                quality = f'match-quality="{percentage(origin.similarity)}%"'
                return (
                    f'<{name} {quality} origin="{MEMORY}"><{self.prefix}source>{source}'
                    f"</{self.prefix}source><{self.prefix}target>{target}</{self.prefix}target></{name}>"
                )
            case "creator":
                return "" if similarity == 1 else f' creationid="{MACHINE_ID}"'


MEMORY = "memory"
"""The origin of a similar text."""

MACHINE_ID = "MT!"
"""What an entry of a memory has that we have translated."""


def percentage(fraction: float) -> int:
    """A fraction in percent, rounded down: only 1 is 100."""
    return int(100 * fraction + 1e-9)


def common_origin(origins: Sequence[Origin]) -> Origin:
    """The origin of a translation in several segments: as doubtful, unsure and dissimilar as the worst of them."""
    confidences = [origin.confidence for origin in origins if origin.confidence is not None]
    least = min(origins, key=lambda origin: origin.similarity or 0)
    return replace(
        least,
        is_doubtful=any(origin.is_doubtful for origin in origins),
        confidence=min(confidences) if len(confidences) == len(origins) else None,
    )
