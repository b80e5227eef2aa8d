"""Repair of the translation of a similar text: what differs is replaced by the model's own translation of it.

Source of the idea: Koehn and Senellart 2010; Ortega et al. 2016.
"""

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from glassformer.corpora.memory import Match
from glassformer.corpora.terms import unmet
from glassformer.decode_config import DecodeConfig
from glassformer.documents.words import space_between, unit_spans
from glassformer.generate.policy import length_penalty
from glassformer.tasks.alignment import align
from glassformer.tasks.terms import Terms
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

Links = Sequence[tuple[int, int]]
"""Pairs of a source word and a target word (`unit_spans`)."""

MIN_SURPRISE = 0.4
"""Mean negative log-probability, in nats for each token, that the translation of a similar text has at least if it is
used: others are what the model says itself."""

MARKS = ".,;:!?…()[]{}«»“”„\"'¿¡。、，！？；：（）「」『』"
"""Punctuation around words."""
ENDS = frozenset(".,;:!?…。、，！？；：")
"""Of these, what may be after other words as well."""


def from_similar(
    task: "TextToTextTask[Any]",
    given: Sequence[tuple[str, Translation, Match]],
    options: DecodeConfig,
    terms: Terms | None,
    tag: Sequence[int] = (),
) -> list[Translation]:
    """Translations with the similar texts, some of them replaced by their translations, repaired: where these say what
    the model does not.

    Args:
        given: texts, the translations by the model, and similar texts of the memory.
        tag: token ids before each source.
    """
    results = [replace(translation, match=replace(match, used=False)) for _, translation, match in given]
    matches = [match for *_, match in given]
    log_probs = task.score([match.source for match in matches], [match.target for match in matches], no_op, tag)
    new = [i for i, of_tokens in enumerate(log_probs) if -sum(of_tokens) / len(of_tokens) > MIN_SURPRISE]
    outputs = [given[i][0] for i in new], [results[i].text for i in new]
    links = align(task, *outputs) if new else []
    similar = [matches[i].source for i in new], [matches[i].target for i in new]
    of_matches = align(task, *similar) if new else []
    texts: dict[int, str] = {}
    for i, of_output, of_match in zip(new, links, of_matches, strict=True):
        text = repaired(given[i][0], results[i].text, of_output, matches[i], of_match)
        lacks = terms and text and unmet(terms.required(given[i][0]), text)
        if text and text != results[i].text and not lacks and may_be_output(text, options):
            texts[i] = text
    eos, limit = task.tokenizer.eos_id, task.config.max_len
    sources, targets = (
        [[*begin, *ids, eos] for ids in tokenizer.encode_batch(side)]
        for tokenizer, begin, side in zip(
            task.tokenizer.sides, (tag, ()), ([given[i][0] for i in texts], [*texts.values()]), strict=True
        )
    )
    fitting = [k for k, ids in enumerate(zip(sources, targets, strict=True)) if max(map(len, ids)) <= limit]
    scored = task.log_probs([sources[k] for k in fitting], [targets[k] for k in fitting], range(len(fitting)))
    indices = list(texts)
    for k, of_tokens in zip(fitting, scored, strict=True):
        i = indices[k]
        results[i] = replace(
            results[i],
            text=texts[i],
            score=sum(of_tokens) / length_penalty(len(of_tokens), options.length_penalty),
            tokens=[task.tokenizer.token(token) for token in targets[k]],
            log_probs=of_tokens,
            ids=tuple(targets[k]),
            repeated=False,
            is_truncated=False,
            forced=(),
            missing=(),
            match=matches[i],
        )
    return results


def without_spans(match: Match, terms: Terms | None) -> Match:
    """A similar text and its translation without protected spans."""
    source, target = (
        detached.core if terms and (detached := terms.take_out(text)) else text for text in (match.source, match.target)
    )
    return replace(match, source=source, target=target)


def may_be_output(text: str, options: DecodeConfig) -> bool:
    """Whether a translation has the prefix and no banned text."""
    return text.startswith(options.prefix) and not any(banned in text for banned in options.ban)


def repaired(source: str, output: str, links: Links, match: Match, links_of_match: Links) -> str | None:
    """The translation of a text, made of that of a similar one. None: what differs cannot be told apart in it.

    Args:
        source: the text.
        output: the model's translation of it.
        links: its word alignment.
        match: the similar text, with its translation.
        links_of_match: the word alignment of this.
    """
    new, old, own = ([text[start:end] for start, end in unit_spans(text)] for text in (source, match.source, output))
    spans = unit_spans(match.target)
    words: list[list[str]] = [[match.target[a:b]] for a, b in spans]
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if j2 - j1 == i2 - i1 == 1 and copied(old[i1], new[j1], own, words):
            continue
        replacement = span([t for s, t in links if j1 <= s < j2], links, j1, j2)
        replaced = span([t for s, t in links_of_match if i1 <= s < i2], links_of_match, i1, i2)
        if (j2 > j1 and replacement is None) or (i2 > i1 and replaced is None):
            return None
        text = own[slice(*replacement)] if replacement else []
        if replaced:
            begin, end = replaced
        else:
            before = [t for s, t in links_of_match if s == i1 - 1]
            after = [t for s, t in links_of_match if s == i1]
            if i1 and not before:
                return None
            begin = end = max(before) + 1 if before else 0
            if after and min(after) != end:
                return None
        if begin < end and without_marks(old[i1:i2]) == without_marks(new[j1:j2]):  # the marks are what differs
            words[begin:end] = [text, *([] for _ in range(end - begin - 1))]
        elif not put(without_marks(text), words, begin, end) or bool(without_marks(text)) != bool(text):
            return None
    result, last = "", -1
    for i, several in enumerate(words):
        for k, word in enumerate(several):
            are_neighbors = result and k == 0 and last == i - 1
            result += match.target[spans[last][1] : spans[i][0]] if are_neighbors else space_between(result, word)
            result += word
            last = i
    return result


def put(text: Sequence[str], words: list[list[str]], begin: int, end: int) -> bool:
    """Put words without punctuation around them in the place of others, whose punctuation stays. Returns whether it was
    possible.

    Args:
        words: what is at each position of a text; some are replaced.
        begin, end: which of them; equal: the words are put before this one.
    """
    if begin == end:
        if not text:
            return False
        if begin == 0:
            words[:1] = [[*text, *word] for word in words[:1]]
            return True
        *others, word = words[begin - 1] or [""]
        closing = marks_of(word)[1]
        words[begin - 1] = [*others, word.removesuffix(closing), *text[:-1], text[-1] + closing]
        return word.strip(MARKS) != "" and ENDS.issuperset(closing)
    while begin < end and not any(word.strip(MARKS) for word in words[begin]):
        begin += 1
    while begin < end and not any(word.strip(MARKS) for word in words[end - 1]):
        end -= 1
    if begin == end or any(len(several) != 1 for several in words[begin:end]):
        return False
    opening, closing = marks_of(words[begin][0])[0], marks_of(words[end - 1][0])[1]
    if text:
        marked = [opening + text[0], *text[1:]]
        words[begin:end] = [[*marked[:-1], marked[-1] + closing], *([] for _ in range(end - begin - 1))]
    else:
        words[begin:end] = [[] for _ in range(begin, end)]
    return bool(text) or not opening + closing


def marks_of(word: str) -> tuple[str, str]:
    """The punctuation before and after a word."""
    rest = word.lstrip(MARKS)
    return word[: len(word) - len(rest)], rest[len(rest.rstrip(MARKS)) :]


def without_marks(words: Sequence[str]) -> list[str]:
    """Words without the punctuation before the first and after the last."""
    kept = [i for i, word in enumerate(words) if word.strip(MARKS)]
    if not kept:
        return []
    found = list(words[kept[0] : kept[-1] + 1])
    found[0] = found[0].lstrip(MARKS)
    found[-1] = found[-1].rstrip(MARKS)
    return found


def copied(old: str, new: str, own: Sequence[str], words: list[list[str]]) -> bool:
    """Replace a word that is copied into translations, as names and codes are. Returns whether it was possible."""
    old, new = old.strip(MARKS), new.strip(MARKS)
    found = [several for several in words if len(several) == 1 and several[0].strip(MARKS) == old]
    if not old or not new or old == new or len(found) != 1 or new not in {word.strip(MARKS) for word in own}:
        return False
    found[0][0] = found[0][0].replace(old, new)
    return True


def span(targets: Sequence[int], links: Links, first: int, last: int) -> tuple[int, int] | None:
    """Begin and end of the target words of source words; None if there are none, or others among them."""
    if not targets:
        return None
    begin, end = min(targets), max(targets) + 1
    return (begin, end) if all(first <= s < last for s, t in links if begin <= t < end) else None
