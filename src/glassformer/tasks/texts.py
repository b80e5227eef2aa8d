"""Texts that tasks are called with, and lines of text."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

Item = TypeVar("Item")

no_op: Callable[..., None] = lambda *_: None  # noqa: E731

Warn = Callable[[int, str], None]


def python_warning(_: int, what: str) -> None:
    """The default of `warn`: a Python warning, which is shown once."""
    warnings.warn(f"at least one text: {what}", UserWarning, stacklevel=2)


Text = str | tuple[str, str]
"""A text or a pair of texts."""


def map_nonblank(
    lines: Sequence[str], process: Callable[[list[str], Warn], Sequence[str]], warn: Warn = python_warning
) -> list[str]:
    """Apply a function to the lines that are not blank. The output of a blank line is an empty string.

    Args:
        process: returns one output per line. The indices of its warnings refer to the lines it was given.
        warn: called with indices into `lines`.
    """
    nonblank = [i for i, line in enumerate(lines) if line.strip()]
    results = process([lines[i] for i in nonblank], lambda i, what: warn(nonblank[i], what))
    out = [""] * len(lines)
    for i, text in zip(nonblank, results, strict=True):
        out[i] = text
    return out


@overload
def check_texts(task: object, texts: object, *extra: object) -> list[str]: ...


@overload
def check_texts(task: object, texts: object, *extra: object, pairs: Literal[True]) -> list[Text]: ...


def check_texts(task: object, texts: object, *extra: object, pairs: bool = False) -> list[Any]:
    """Check the argument of a task call and return its texts as a list.

    Args:
        extra: further positional arguments; any is an error.
        pairs: also accept a pair of texts (a tuple) as one text.

    Raises:
        TypeError: neither a text nor a sequence of texts.
    """
    single = "a text (str) or a pair of texts (tuple)" if pairs else "a text (str)"
    expected = f"{type(task).__name__}(…) takes {single}, or a list of them"

    def is_text(value: object) -> bool:
        is_pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(side, str) for side in value)
        return isinstance(value, str) or (pairs and is_pair)

    if extra:
        hint = (
            " Write a pair as one tuple: task((a, b))." if pairs else " Write several texts as one list: task([a, b])."
        )
        raise TypeError(f"{expected}; got {1 + len(extra)} arguments.{hint}")
    if is_text(texts):
        return [texts]
    if isinstance(texts, list) and all(map(is_text, texts)):
        return list(texts)
    wrong = next((t for t in texts if not is_text(t)), texts) if isinstance(texts, list | tuple) else texts
    received = "a list with " + type(wrong).__name__ if wrong is not texts else type(texts).__name__
    raise TypeError(f"{expected}; got {received}.")


def evenly_spaced(items: Sequence[Item], n: int | None) -> Sequence[Item]:
    """n evenly spaced items in order, so that a sample of sorted items is representative. None: all items."""
    return items if n is None or n >= len(items) else [items[i * len(items) // n] for i in range(n)]
