"""`glassformer translate`"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.options import OptionalInt, flags, given
from glassformer.config import DecodeConfig

Flags: Any = flags(DecodeConfig)


def translate(
    model: Path,
    /,
    *,
    json: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    threads: OptionalInt = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Translate standard input, line by line, to standard output.

    Example:  echo "The black cat sat on the couch." | glassformer translate en-fr

    Args:
        model: folder written by `glassformer train`.
        json: one JSON object a line: source, and of each translation text, score, tokens and their log-probabilities.
        quiet: no progress and no warnings.
        device: where to compute.
        threads: processor threads. Default: all cores.
    """
    from glassformer.cli.lines import translate_lines

    translate_lines(
        model,
        DecodeConfig.resolve(given(options), environment=os.environ),
        sys.stdout,
        json=json,
        quiet=quiet,
        device=device,
        threads=threads,
    )
