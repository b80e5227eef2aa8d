"""Lines in, lines out: the loop around a translator."""

import json as json_module
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

import torch
from rich.console import Console
from rich.progress import Progress

from glassformer.config import DecodeConfig
from glassformer.corpora.lines import STDIN, read_lines
from glassformer.errors import ConfigError, CorpusError
from glassformer.tasks.base import no_op
from glassformer.tasks.registry import load
from glassformer.tasks.translation import record_of

Item = TypeVar("Item")

WINDOW = 4096
"""Lines read before any is written: enough to decode equally long ones together."""


TRANSLATIONS = ("translation", "multitask")


def open_model(folder: Path, device: str, threads: int | None, tasks: tuple[str, ...] = ()) -> Any:
    """The model of a command, with the threads asked for.

    Args:
        tasks: those that the command is for; none: any.

    Raises:
        ConfigError: the model was trained for another.
    """
    if threads:
        torch.set_num_threads(threads)
    task = load(folder, device=device)
    if tasks and task.name not in tasks:
        raise ConfigError(
            f"{folder}: was trained for {task.name}, not for {' or '.join(tasks)}.\n  Use: glassformer run {folder}"
        )
    return task


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, moved on by the number it is told; nothing otherwise."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.update(task, advance=n)


def windows(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """Up to `size` items at a time, taken as they come."""
    while window := list(islice(items, size)):
        yield window


def translate_lines(
    folder: Path,
    options: DecodeConfig,
    out: TextIO,
    *,
    json: bool,
    quiet: bool,
    device: str,
    threads: int | None,
) -> None:
    """Translate standard input to `out`, as many lines as come in (times nbest)."""
    translator = open_model(folder, device, threads, TRANSLATIONS)
    console = Console(stderr=True, quiet=quiet)
    typed = sys.stdin.isatty()
    n_done = 0
    for window in windows(read_lines(STDIN), 1 if typed else WINDOW):

        def warn(index: int, what: str, first: int = n_done + 1) -> None:
            console.print(f"warning: line {first + index}: {what}", markup=False, highlight=False, soft_wrap=True)

        with progress_bar(f"lines {n_done + 1:,} to {n_done + len(window):,}", len(window)) as progress:
            found = translator.translate(window, options, warn=warn, progress=no_op if quiet or typed else progress)
        for best in found:
            texts = [json_module.dumps(record_of(best), ensure_ascii=False)] if json else [t.text for t in best]
            out.writelines(text + "\n" for text in texts)
        out.flush()
        n_done += len(window)


def run_lines(
    folder: Path,
    options: DecodeConfig,
    *,
    json: bool,
    quiet: bool,
    device: str,
    threads: int | None,
    tasks: tuple[str, ...] = (),
    pairs: bool = False,
) -> None:
    """Standard input through a task to standard output, as many lines as come in.

    Args:
        tasks: those that the command's name promises; none: any.
        pairs: every line that is not blank must have two texts separated by a tab.
    """
    task = open_model(folder, device, threads, tasks)
    console = Console(stderr=True, quiet=quiet)
    typed = sys.stdin.isatty()
    is_streamed = sys.stdout.isatty() and not json and task.streams and task.options(options).do_sample
    n_done = 0
    for window in windows(read_lines(STDIN), 1 if typed or is_streamed else WINDOW):

        def warn(index: int, what: str, first: int = n_done + 1) -> None:
            console.print(f"warning: line {first + index}: {what}", markup=False, highlight=False, soft_wrap=True)

        if pairs:
            check_pairs(window, n_done + 1)
        if is_streamed:
            if window[0].strip():
                for piece in task.stream(window[0], options, warn=lambda what: warn(0, what)):
                    before, newline, _ = piece.partition("\n")
                    sys.stdout.write(before)
                    sys.stdout.flush()
                    if newline:  # as without a terminal: one line of output for each line of input
                        break
            sys.stdout.write("\n")
        elif json:
            records = task.records(window, options, warn=warn)
            sys.stdout.writelines(json_module.dumps(record, ensure_ascii=False) + "\n" for record in records)
        else:
            sys.stdout.writelines(line + "\n" for line in task.run(window, options, warn=warn))
        sys.stdout.flush()
        n_done += len(window)


def check_pairs(lines: list[str], first: int) -> None:
    """Check that each line has two texts separated by a tab; a blank line may have none.

    Args:
        first: number of the first of these lines in the input.

    Raises:
        CorpusError: a line without a tab, or with more than one.
    """
    for number, line in enumerate(lines, first):
        if line.strip() and line.count("\t") != 1:
            raise CorpusError(
                f"standard input:{number}: expected 2 texts separated by a tab, found {line.count(chr(9)) + 1}.\n"
                f"  The line begins {line[:40]!r}.\n"
                "  Write text TAB text on each line. A model trained on single texts is used by `glassformer run`."
            )
