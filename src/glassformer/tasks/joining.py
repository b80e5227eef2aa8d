"""Joining of the translations of the parts of a text, into which `tasks/splitting.py` divides it."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from glassformer.corpora.terms import unmet
from glassformer.documents.words import UNSPACED
from glassformer.tasks.terms import Output, Part
from glassformer.tasks.translated import Translation

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

FULL_WIDTH_END = re.compile(r"[。！？，、；：」』）〉》】]\Z")
"""Punctuation that has the space after it in itself."""
UNSPACED_END = re.compile(rf"{UNSPACED.pattern}\Z")
"""The end of a text in a script without spaces."""


def space_after(before: str, space: str) -> str:
    """The space between two sentences of a translation.

    Args:
        before: the translation before it.
        space: white space between the sentences of the source.
    """
    if FULL_WIDTH_END.search(before):
        return "" if space == " " else space
    return space or ("" if UNSPACED_END.search(before) else " ")


def join(
    task: "TextToTextTask[Any]",
    source: str,
    rank: int,
    parts: Sequence[tuple[Part, Sequence[Output]]],
    repeated: bool = False,
) -> Translation:
    """Join the outputs of rank `rank` of the parts of a text. If a part has fewer, its worst."""
    selected = [(part, nbest[min(rank, len(nbest) - 1)]) for part, nbest in parts]
    hypotheses = [output.hypothesis for _, output in selected]
    text = ""
    for part, output in selected:
        text += (space_after(text, part.space) if text else "") + output.text
    return Translation(
        source=source,
        text=text,
        score=sum(hypothesis.score for hypothesis in hypotheses),
        tokens=[task.tokenizer.token(i) for hypothesis in hypotheses for i in hypothesis.ids],
        log_probs=[p for hypothesis in hypotheses for p in hypothesis.log_probs],
        ids=tuple(i for hypothesis in hypotheses for i in hypothesis.ids),
        repeated=repeated,
        is_truncated=any(output.is_truncated for _, output in selected),
        forced=tuple(form for _, output in selected for form in output.forced),
        missing=tuple("|".join(r.targets) for part, output in selected for r in unmet(part.required, output.text)),
    )
