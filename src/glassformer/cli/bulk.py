"""Files of lines that a command names: processed in chunks, which are kept."""

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from glassformer.bulk.chunks import CHUNK_ITEMS, Workers
from glassformer.bulk.folder import output_folder
from glassformer.bulk.run import WORK, Run, Source, Summary
from glassformer.bulk.workers import Processes, ThisProcess
from glassformer.cli.bulk_worker import open_answer
from glassformer.cli.files import check_tables
from glassformer.cli.jobs import Job
from glassformer.cli.options import BulkOptions
from glassformer.cli.reading import check_pair_options
from glassformer.corpora.lines import refuse_streams
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import ConfigError
from glassformer.tasks.files import outputs
from glassformer.tasks.texts import no_op
from glassformer.threads import n_threads

LOG_EVERY_S = 60
"""Seconds between two lines about the progress, where no terminal shows it."""
MAX_WARNINGS = 5
"""Number of different warnings that are printed at the end."""


def process_files(
    job: Job,
    files: Sequence[Path],
    out: Path,
    bulk: BulkOptions = BulkOptions(),  # noqa: B008
    *,
    quiet: bool = False,
) -> None:
    """Compute the outputs for files of lines, into files of the same names in a folder.

    Raises:
        UserError: an option is wrong, or the outputs cannot be written.
        SystemExit: with code 1, if a file or a line could not be processed.
    """
    refuse_streams(files, "the same command reads it again to go on after an interruption")
    detected = no_op if quiet else log
    sources = [
        Source(path, target, target.relative_to(out).as_posix(), partial(job.items, path, detected))
        for path, target in outputs(files, out, None)
    ]
    if job.kind in ("run", "pairs"):
        check_tables([source.path for source in sources], job.reading["keys"], json=job.json)
    if job.kind == "score":
        check_pair_options([source.path for source in sources], ReadOptions(**job.reading))
    share = parse_shard(bulk.shard)
    job = job.with_found_models()
    with (
        open_workers(job, bulk, quiet=quiet) as opened,
        output_folder(out, share, {"lines in a chunk": CHUNK_ITEMS, **job.identity()}),
        progress_of_lines(quiet=quiet) as progress,
        closing(Run(out, opened, share, log, progress)) as run,
    ):
        start_s = time.monotonic()
        summary = run_sources(run, sources)
    if not quiet:
        report(summary, time.monotonic() - start_s, out)
    for path, number, why in summary.failed_items:
        log(f"error: {path}:{number}: {why}")
    if n := summary.n_failed_items:
        log(f"{n:,} lines failed; their outputs are empty. All reasons are in {manifests_in(out)}.")
    if summary.failed:
        names = ", ".join(map(str, summary.failed))
        log(f"{len(summary.failed)} of {len(sources)} files not processed: {names}")
    if summary.failed or summary.n_failed_items:
        raise SystemExit(1)


def run_sources(run: Run, sources: Sequence[Source]) -> Summary:
    """Do a run. If it is stopped, say that it can go on."""
    try:
        return run.run(sources)
    except BaseException:
        log(f"Stopped. What is done is in {run.out / WORK}; the same command goes on.")
        raise


def log(message: str) -> None:
    """Print a message."""
    print(message, file=sys.stderr)


def parse_shard(text: str | None) -> tuple[int, int]:
    """I and N of I/N.

    Raises:
        ConfigError: it is something else.
    """
    if text is None:
        return 1, 1
    i, _, n = text.partition("/")
    if not (i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise ConfigError(f"--shard {text}: expected I/N, such as 1/8 for the first of 8.\n  I counts from 1 to N.")
    return int(i), int(n)


@contextmanager
def open_workers(job: Job, bulk: BulkOptions, *, quiet: bool) -> Iterator[Workers]:
    """What processes the chunks: this process, or several others. At the end, they end.

    Raises:
        UserError: the model or an option cannot be used.
    """
    job = replace(job, cache=str(bulk.cache) if bulk.cache else None)
    with broken_pipes_are_errors(), closing(workers_of(job, bulk, quiet=quiet)) as workers:  # one may be killed
        yield workers


def workers_of(job: Job, bulk: BulkOptions, *, quiet: bool) -> Workers:
    """See `open_workers`."""
    n = bulk.workers or 1
    if bulk.ray:
        from glassformer.bulk.ray_actors import Actors

        threads = job.threads or max(1, n_threads() // n)
        return Actors(bulk.ray, n, threads, open_answer, job.with_absolute_paths().to_json(threads))
    if n == 1:
        return ThisProcess(job.open(quiet=quiet))
    threads = max(1, (job.threads or n_threads()) // n)
    return Processes(n, [sys.executable, "-m", "glassformer.cli.bulk_worker"], job.to_json(threads))


@contextmanager
def broken_pipes_are_errors() -> Iterator[None]:
    """Inside this context, writing to a pipe without a reader is an OSError, and does not end the process."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


@contextmanager
def progress_of_lines(*, quiet: bool) -> Iterator["Progress"]:
    """Show how many lines are done: on a terminal all the time, elsewhere from time to time."""
    if quiet or not sys.stderr.isatty():
        yield Progress(None if quiet else LOG_EVERY_S)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:,.0f} lines"), TimeElapsedColumn(), TextColumn("{task.fields[rate]}")
    with Bar(SpinnerColumn(), *text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate="")
        yield Progress(None, lambda n, rate: bar.update(task, completed=n, rate=f"{rate:,.0f} lines/s"))


class Progress:
    """Counts lines."""

    def __init__(self, every_s: float | None, show: Callable[[int, float], None] | None = None) -> None:
        """
        Args:
            every_s: seconds between two lines that are printed. Default: none is.
            show: called with the number of lines that are done, and of those done in a second.
        """
        self.every_s, self.show = every_s, show
        self.n = 0
        self.start_s = self.logged_s = time.monotonic()

    def __call__(self, n: int) -> None:
        """Count lines that are done."""
        self.n += n
        now_s = time.monotonic()
        rate = self.n / max(now_s - self.start_s, 1e-9)
        if self.show:
            self.show(self.n, rate)
        if self.every_s is not None and now_s - self.logged_s >= self.every_s:
            self.logged_s = now_s
            log(f"{self.n:,} lines done, {rate:,.0f} lines/s")


def report(done: Summary, time_s: float, out: Path) -> None:
    """Print what was done."""
    parts = [f"{done.n_files:,} files done"]
    if done.n_before:
        parts.append(f"{done.n_before:,} done before")
    if done.waiting:
        parts.append(f"{len(done.waiting):,} wait for other shards")
    lines = [f"{done.n_items:,} lines in {time_s:,.0f} s ({done.n_items / time_s:,.0f} lines/s)"]
    if done.n_known:
        lines.append(f"{done.n_known:,} equal to earlier ones")
    if done.n_kept:
        lines.append(f"{done.n_kept:,} done before")
    log(f"{out}: {', '.join(parts)}; {', '.join(lines)}.")
    for what, n in done.warned.most_common(MAX_WARNINGS):
        log(f"warning: {n:,} line{'s' * (n > 1)}: {what}")
    if len(done.warned) > MAX_WARNINGS:
        log(f"warning: and {len(done.warned) - MAX_WARNINGS:,} other warnings, in {manifests_in(out)}")


def manifests_in(out: Path) -> str:
    """The files of the records, in a message."""
    return shlex.quote(str(out / WORK)) + "/*/manifest.jsonl"
