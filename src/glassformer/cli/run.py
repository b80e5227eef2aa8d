"""`glassformer run` and the commands named after tasks"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import refuse_texts
from glassformer.cli.options import Device, Json, Quiet, Threads, flags, given
from glassformer.config import DecodeConfig

Flags: Any = flags(DecodeConfig, exclude=("nbest",))

TASKS_OF_COMMAND: dict[str, tuple[str, ...]] = {
    "run": (),
    "summarize": ("summarization",),
    "complete": ("causal-lm",),
    "generate": ("causal-lm",),
    "classify": ("classification",),
    "tag": ("tagging",),
    "answer": ("question-answering",),
    "similarity": ("regression", "feature-extraction"),
    "embed": ("feature-extraction",),
    "fill_mask": ("masked-lm", "bert-pretraining"),
    "correct": ("translation",),
}
"""Command -> the tasks whose models it accepts; an empty tuple: the models of all tasks."""


def make_command(command: str, tasks: tuple[str, ...], pairs: bool = False) -> Callable[..., None]:
    """Make a `run` command that accepts the models of some tasks.

    Args:
        command: name of the command.
        tasks: tasks whose models the command accepts; an empty tuple: all tasks.
        pairs: each line of input must have two texts separated by a tab.
    """

    def run(
        model: Path,
        /,
        *texts: Annotated[str, Parameter(show=False)],
        json: Json = False,
        quiet: Quiet = False,
        device: Device = "auto",
        threads: Threads = None,
        options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
    ) -> None:
        """Apply a model to each line of standard input and print one line of output for each.

        Input by task: text; for pairs TEXT TAB TEXT; for question answering QUESTION TAB CONTEXT; for masked-token
        prediction text with <mask>; for tagging words separated by spaces.

        Example:  echo "what a lovely film" | glassformer run sentiment

        Args:
            model: Model folder written by `glassformer train` or `glassformer import`.
            texts: Refused: the texts are read from standard input.
            json: Print one JSON object for each line: input, output, and scores.
            quiet: Print no warnings.
            device: Device to compute on.
            threads: Number of CPU threads. Default: all cores.
        """
        from glassformer.cli.lines import run_lines

        refuse_texts(texts, command, model)

        run_lines(
            model,
            DecodeConfig.resolve(given(options), environment=os.environ),
            json=json,
            quiet=quiet,
            device=device,
            threads=threads,
            tasks=tasks,
            pairs=pairs,
        )

    return run


for name, tasks in TASKS_OF_COMMAND.items():
    globals()[name] = make_command(name.replace("_", "-"), tasks, pairs=name == "similarity")
