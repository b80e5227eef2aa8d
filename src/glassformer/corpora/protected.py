"""Protected spans of a text, such as placeholders, which stay as they are in its translation."""

import re

from glassformer.corpora.terms import matches
from glassformer.documents.inline import Detached, detach


def take_out(text: str, protect: re.Pattern[str]) -> Detached | None:
    """Take the protected spans out of a text; None if it has none."""
    spans = list(matches(protect, text))
    return detach(text, spans) if spans else None
