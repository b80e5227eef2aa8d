"""Asking a teacher for all sources that have no answer yet."""

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from glassformer.checkpoint import write_error
from glassformer.lock import locked
from glassformer.synthetic.answers import ANSWERS, Answer, Answers
from glassformer.synthetic.teachers import Teacher
from glassformer.tasks.base import Log
from glassformer.training.progress import duration
from glassformer.training.signals import Stopped

REPORTED_EVERY_S = 10.0
"""Seconds between two messages about the progress."""


def print_log(message: str) -> None:
    """Print a message on standard error."""
    print(message, file=sys.stderr, flush=True)


def ask(teacher: Teacher, sources: Sequence[str], folder: Path, log: Log) -> list[Answer]:
    """The answers of a teacher to sources, in their order. Those of earlier runs are in `folder`, where new ones go.

    Raises:
        Stopped: the user interrupted; the answers so far are kept.
        UserError: the teacher does not answer, or the folder cannot be written or is in use.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(folder, error) from None
    with locked(folder), closing(Answers(folder / ANSWERS, teacher.identity)) as answers:
        missing = answers.missing(sources)
        n_different = len(set(sources))
        known = f", {n_different - len(missing):,} of them known from before" if len(missing) < n_different else ""
        log(f"Teacher {teacher.name}: {n_different:,} sentences{known}.")
        has_answered = any(answer.texts for answer in answers.found.values())
        started_s = reported_s = time.monotonic()
        n_done, tokens_in, tokens_out = 0, 0, 0
        try:
            for answered in teacher.answers(missing, log, has_answered=has_answered):
                answers.add(answered)
                n_done += len(answered)
                tokens_in += sum(answer.tokens[0] for _, answer in answered)
                tokens_out += sum(answer.tokens[1] for _, answer in answered)
                if time.monotonic() - reported_s > REPORTED_EVERY_S:
                    reported_s = time.monotonic()
                    left_s = (reported_s - started_s) / n_done * (len(missing) - n_done)
                    log(f"  {n_done:,} of {len(missing):,} sentences · {duration(left_s)} left")
        except KeyboardInterrupt:
            raise Stopped(
                signal.SIGINT,
                f"Stopped: {n_done:,} new answers are in {answers.path}. Run the same command again to go on.",
            ) from None
        if tokens_in or tokens_out:
            log(f"The endpoint counted {tokens_in:,} tokens of requests and {tokens_out:,} of answers.")
        found = [answers.get(source) for source in sources]
    assert all(answer is not None for answer in found)
    return [answer for answer in found if answer is not None]
