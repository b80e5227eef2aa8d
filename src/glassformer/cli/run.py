"""`glassformer run`, and the names it has for each task"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.options import OptionalInt, flags, given
from glassformer.config import DecodeConfig

Flags: Any = flags(DecodeConfig, "nbest")


ALIASES: dict[str, tuple[str, ...]] = {
    "run": (),
    "summarize": ("summarization",),
    "generate": ("causal-lm",),
    "complete": ("causal-lm",),
    "classify": ("classification",),
    "tag": ("tagging",),
    "answer": ("question-answering",),
    "similarity": ("regression",),
    "fill-mask": ("masked-lm",),
    "correct": ("translation",),
}
"""Each name of the command, and the tasks that it reads well for; none: all."""


def alias(tasks: tuple[str, ...], pairs: bool = False) -> Callable[..., None]:
    """The command by a name that asks for one of these tasks.

    Args:
        pairs: every line of input must have two texts separated by a tab.
    """

    def run(
        model: Path,
        /,
        *,
        json: bool = False,
        quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
        device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
        threads: OptionalInt = None,
        options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
    ) -> None:
        """Lines of standard input to as many lines of standard output, by whatever the model was trained for.

        Translations, summaries, what follows; classes and numbers (of pairs: text TAB text); tags of words that spaces
        separate; answers (question TAB context); masked words (write <mask>).

        Example:  echo "what a lovely film" | glassformer run sentiment

        Args:
            model: folder written by `glassformer train` or `glassformer import`.
            json: one JSON object a line, with probabilities.
            quiet: no warnings.
            device: where to compute.
            threads: processor threads. Default: all cores.
        """
        from glassformer.cli.lines import run_lines

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


for name, tasks in ALIASES.items():
    globals()[name] = alias(tasks, pairs=name == "similarity")
