"""Progress of a training run: terminal output, `train.log`, `metrics.jsonl` and TensorBoard."""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.metrics.registry import format_metric

PLAIN_INTERVAL_S = 30.0
"""Seconds between progress lines if the output is not a terminal."""


def duration(seconds: float) -> str:
    """Format seconds as 1:05 or 2:01:05."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


class Reporter:
    """Reports progress: a progress bar on a terminal, else plain lines; if `quiet`, only to files."""

    def __init__(self, folder: Path, *, step: int, quiet: bool = False, tensorboard: bool = False) -> None:
        """
        Args:
            folder: run folder; existing files are continued.
            step: step at which the run starts or resumes. Later records of metrics.jsonl are removed, since the run
                writes them again.
            quiet: write nothing to the terminal.
            tensorboard: also write TensorBoard events.

        Raises:
            ConfigError: tensorboard is not installed.
        """
        self.quiet = quiet
        self.has_failed = False
        """Whether a file could not be written."""
        self.targets_name = "tokens"
        """What the targets of the loss are called."""
        self.log_file = open(folder / "train.log", "a", encoding="utf-8", newline="\n")
        truncate_records(folder / "metrics.jsonl", step)
        self.metrics_file = open(folder / "metrics.jsonl", "a", encoding="utf-8", newline="\n")
        self.console = Console(file=sys.stderr)
        self.bar: Progress | None = None
        self.last_plain_s = time.monotonic()
        self.score_text = ""
        self.events: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigError(
                    "tensorboard: not installed.\n  Install it with: pip install 'glassformer[tensorboard]'"
                ) from None
            self.events = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def __enter__(self) -> Self:
        if not self.quiet and self.console.is_terminal:
            self.bar = Progress(
                TextColumn("[bold]{task.percentage:3.0f}%"),
                BarColumn(bar_width=None),
                TextColumn("{task.description}"),
                console=self.console,
                refresh_per_second=4,
            )
            self.task = self.bar.add_task("starting", total=1.0)
            self.bar.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()
        for file in (self.log_file, self.metrics_file):
            with suppress(OSError):  # `append` has reported it
                file.close()
        if self.events:
            self.events.close()

    def log(self, message: str) -> None:
        """Write a message to the terminal and to train.log."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        self.append(self.log_file, "".join(f"{stamp} {line}\n" for line in message.split("\n")))
        if not self.quiet:
            self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def step(self, progress: float, record: JsonObject, remaining_s: float) -> None:
        """Report the metrics of the latest updates.

        Args:
            progress: fraction of the training completed, 0 to 1.
            record: written to metrics.jsonl unchanged.
            remaining_s: estimated remaining time in seconds.
        """
        self.write(record)
        loss = "not finite" if record["loss"] is None else f"{record['loss']:.3f}"
        line = f"step {record['step']:,} · loss {loss} · {record['tokens_per_s']:,.0f} {self.targets_name}/s"
        line += self.score_text
        line += f" · {duration(remaining_s)} left"
        if self.bar:
            self.bar.update(self.task, completed=progress, description=line)
        elif time.monotonic() - self.last_plain_s >= PLAIN_INTERVAL_S:
            self.log(f"{progress:4.0%} {line}")
            self.last_plain_s = time.monotonic()

    def validation(self, record: JsonObject, metric_name: str, note: str) -> None:
        """Report the metrics of a validation.

        Args:
            record: written to metrics.jsonl unchanged.
            metric_name: name of the task's main metric.
            note: appended to the message.
        """
        self.write(record)
        score = f"dev {format_metric(metric_name, record[f'dev_{metric_name}'])}"
        self.score_text = f" · {score}"
        loss = f", dev loss {record['dev_loss']:.3f}" if "dev_loss" in record and metric_name != "loss" else ""
        self.log(f"step {record['step']:,}: {score}{loss} ({duration(record['elapsed_s'])} of training){note}")

    def write(self, record: JsonObject) -> None:
        """Append a record to metrics.jsonl and to TensorBoard."""
        self.append(self.metrics_file, json.dumps(record) + "\n")
        if self.events:
            for name, value in record.items():
                if name != "step" and value is not None:
                    self.events.add_scalar(name, value, record["step"])

    def append(self, file: TextIO, text: str) -> None:
        """Append lines to a file. If it cannot be written, what Python's buffer does not hold is lost; this is shown
        once."""
        try:
            file.write(text)
            file.flush()
        except OSError as error:
            if not (self.has_failed or self.quiet):
                message = f"warning: {file.name}: cannot be written, lines will be missing: {error.strerror}."
                self.console.print(message, markup=False, highlight=False, soft_wrap=True)
            self.has_failed = True


def truncate_records(path: Path, step: int) -> None:
    """Remove the records after a step from a JSONL file, and an incomplete last line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError):
            continue
    temporary = path.with_name(".metrics.tmp")
    temporary.write_text("".join(kept), encoding="utf-8", newline="\n")
    os.replace(temporary, path)


class SilentReporter(Reporter):
    """Reports nothing, in the processes other than rank 0."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def log(self, message: str) -> None:
        pass

    def step(self, progress: float, record: JsonObject, remaining_s: float) -> None:
        pass

    def validation(self, record: JsonObject, metric_name: str, note: str) -> None:
        pass
