"""`glassformer translate`"""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import refuse_texts
from glassformer.cli.options import Device, Ensemble, Json, Quiet, Threads, decode_options, flags
from glassformer.decode_config import TRANSLATION

Flags: Any = flags(*TRANSLATION)


def translate(
    model: Path,
    /,
    *texts: Annotated[str, Parameter(show=False)],
    ensemble: Ensemble = (),
    json: Json = False,
    quiet: Quiet = False,
    device: Device = "auto",
    threads: Threads = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Translate each line of standard input.

    Example:  echo "The black cat sat on the couch." | glassformer translate en-fr

    Args:
        model: Model folder written by `glassformer train`.
        texts: Refused: the texts are read from standard input.
        json: Print one JSON object for each line: input, output, score, tokens and log_probs, and nbest with
            all translations.
        quiet: Print no progress and no warnings.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer.cli.lines import translate_lines

    refuse_texts(texts, "translate", model)

    translate_lines(
        model,
        decode_options(options),
        sys.stdout,
        ensemble=ensemble,
        json=json,
        quiet=quiet,
        device=device,
        threads=threads,
    )
