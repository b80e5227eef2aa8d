"""What a training run tells: to the terminal, to `train.log_file`, to `metrics.jsonl`, to TensorBoard."""

import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from glassformer.errors import ConfigError

PLAIN_EVERY_S = 30.0


def duration(seconds: float) -> str:
    """Seconds as 1:05 or 2:01:05."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


def named(metric: str, value: float) -> str:
    """A figure with its name, with as many digits as it deserves."""
    return f"BLEU {value:.2f}" if metric == "bleu" else f"{metric} {value:.4f}"


class Reporter:
    """A bar on a terminal, plain lines otherwise, nothing but files when quiet."""

    def __init__(self, folder: Path, *, step: int, quiet: bool = False, tensorboard: bool = False) -> None:
        """Goes on with the folder's files; of metrics.jsonl the lines after `step` are dropped: they come again."""
        self.quiet = quiet
        self.log_file = open(folder / "train.log", "a", encoding="utf-8")
        keep_until(folder / "metrics.jsonl", step)
        self.metrics = open(folder / "metrics.jsonl", "a", encoding="utf-8")
        self.console = Console(file=sys.stderr)
        self.bar: Progress | None = None
        self.last_plain_s = time.monotonic()
        self.score = ""
        self.events: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigError(
                    "tensorboard: not installed.\n  Install it with: pip install 'glassformer[tensorboard]'"
                ) from None
            self.events = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)  # type: ignore[no-untyped-call]

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
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()
        self.log_file.close()
        self.metrics.close()
        if self.events:
            self.events.close()

    def log(self, message: str) -> None:
        """A line for the user and the log."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        self.log_file.write("".join(f"{stamp} {line}\n" for line in message.split("\n")))
        self.log_file.flush()
        if not self.quiet:
            self.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def step(self, progress: float, record: dict[str, Any], left_s: float) -> None:
        """Figures of a stretch of updates: `record` goes into metrics.jsonl as it is."""
        self.write(record)
        line = f"step {record['step']:,} · loss {record['loss']:.3f} · {record['tokens_per_s']:,.0f} tokens/s"
        line += self.score
        line += f" · {duration(left_s)} left"
        if self.bar:
            self.bar.update(self.task, completed=progress, description=line)
        elif time.monotonic() - self.last_plain_s >= PLAIN_EVERY_S:
            self.log(f"{progress:4.0%} {line}")
            self.last_plain_s = time.monotonic()

    def validation(self, record: dict[str, Any], metric: str, note: str) -> None:
        """Figures of a validation, the one that counts first."""
        self.write(record)
        score = f"dev {named(metric, record[f'dev_{metric}'])}"
        self.score = f" · {score}"
        loss = f", dev loss {record['dev_loss']:.3f}" if "dev_loss" in record and metric != "loss" else ""
        self.log(f"step {record['step']:,}: {score}{loss} ({duration(record['elapsed_s'])} of training){note}")

    def write(self, record: dict[str, Any]) -> None:
        self.metrics.write(json.dumps(record) + "\n")
        self.metrics.flush()
        if self.events:
            for name, value in record.items():
                if name != "step":
                    self.events.add_scalar(name, value, record["step"])


def keep_until(path: Path, step: int) -> None:
    """Drop the records after a step, and a last line that was cut off."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError):
            continue
    fresh = path.with_name(".metrics.tmp")
    fresh.write_text("".join(kept), encoding="utf-8")
    os.replace(fresh, path)
