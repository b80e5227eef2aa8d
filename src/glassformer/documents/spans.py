"""Spans of a text that are no text for a model, with what is written together with them, such as the rest of a path."""

import re
from collections.abc import Sequence

TAG = re.compile(r"""<(/?)([A-Za-z][\w:.-]*)(?![\w:.-])(?:"[^"]*"|'[^']*'|[^'"<>])*?(/?)>""")

SIGNS = r"[@#~=+/\\&_^*%$§€£¥\u20a0-\u20bf-]"
BETWEEN = re.compile(rf"(?:{SIGNS}|[:.,×–—x]){{0,3}}")
"""What may be between two spans that are one, such as `{width}x{height}`."""
TOKEN = re.compile(r"[!-~\u00a3-\u00a7\u00c0-\u024f\u20a0-\u20bf]*")
"""What a text without spaces, such as a path, consists of: no letters of scripts without spaces between words."""
TOKEN_BEFORE = re.compile(rf"{TOKEN.pattern}\Z")
MAX_TOKEN = 256
"""Maximum length of the text beside a span that may belong to it."""
TECHNICAL_BEFORE = re.compile(rf"(?=\S*\w)(?:\S*[@_\\]|[-/.~$&?]\S*[/=]|\S*[:._@\\-]\S*[/=]|/)|{SIGNS}+")
"""What belongs to a span after it: the beginning of a path, an address or a setting, or only signs, such as `€`."""
TECHNICAL_AFTER = re.compile(rf"@\S+|\.[a-z0-9]{{1,5}}|_\S+|[=/\\]\S*[=/\\@]\S*|{SIGNS}+")
"""What belongs to a span before it."""
MORE_AFTER = "=/\\@_.&#?-"
"""With what the rest of a path, an address or a setting begins, whose beginning belongs to a span."""
ENTITY = re.compile(r"&[#\w]+;")
"""A span to which nothing belongs."""
CUT_ENTITY = re.compile(r"&[#\w]+$")
"""The end of a text that ends within an entity."""


def extended(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with what is written together with them and is no text: `/home/{user}/files`, `--name={name}`, `€{price}`;
    those with only signs between them are one: `{a}/{b}`. Tags stay as they are, unless only signs are between them.
    """
    results: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(spans):
        is_tag = TAG.fullmatch(text, start, end) is not None
        if not is_tag and not ENTITY.fullmatch(text, start, end):
            following = spans[i + 1][0] if i + 1 < len(spans) else len(text)
            before, after = glued(text[results[-1][1] if results else 0 : start], text[end:following])
            start, end = start - len(before), end + len(after)
        if results and BETWEEN.fullmatch(text, results[-1][1], start):
            tags = [match for a, b in (results[-1], (start, end)) if (match := TAG.fullmatch(text, a, b))]
            if not tags or (all(tag[3] for tag in tags) and results[-1][1] < start):
                results[-1] = results[-1][0], end
                continue
        results.append((start, end))
    return results


def glued(before: str, after: str) -> tuple[str, str]:
    """What belongs to a span of the text before it, and of that after it."""
    begin, rest = TOKEN_BEFORE.search(before[-MAX_TOKEN:]), TOKEN.match(after[:MAX_TOKEN])
    first = begin[0].lstrip("([{<\"'") if begin else ""
    first = first if TECHNICAL_BEFORE.fullmatch(first) else ""
    last = rest[0].rstrip(".,;:!?)]}>\"'") if rest else ""
    if CUT_ENTITY.search(last) and rest and rest[0].startswith(";", len(last)):
        last += ";"
    goes_on = first == "/" or any(map(str.isalnum, first))
    is_part = TECHNICAL_AFTER.fullmatch(last) or (goes_on and last[:1] and last[0] in MORE_AFTER)
    is_whole = len(begin[0] if begin else "") < MAX_TOKEN > len(rest[0] if rest else "")
    return (first, last if is_part else "") if is_whole else ("", "")
