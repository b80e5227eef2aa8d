"""`glassformer translate`"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.options import Device, Ensemble, Json, Quiet, Threads, decode_options, flags
from glassformer.decode_config import TRANSLATION
from glassformer.documents.document import Only
from glassformer.documents.exchange import Exchange
from glassformer.errors import ConfigError

Flags: Any = flags(*TRANSLATION)


def translate(
    model: Path,
    /,
    *files: Path,
    out: Path | None = None,
    only: Only | None = None,
    to: Exchange | None = None,
    ensemble: Ensemble = (),
    json: Json = False,
    quiet: Quiet = False,
    device: Device = "auto",
    threads: Threads = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Translate each line of standard input, or files.

    Example:  echo "The black cat sat on the couch." | glassformer translate en-fr
    Example:  glassformer translate en-fr manual.docx messages.po film.srt --out fr

    Args:
        model: Model folder written by `glassformer train`.
        files: Files to translate, or folders of them: Word, PowerPoint, Excel, OpenDocument, EPUB, HTML, Markdown,
            text, subtitles, PO, XLIFF, TMX, properties, strings of Android and Apple, JSON. All but the texts stays.
        out: Folder for the translated files, under their names. None is overwritten.
        only: Which entries of PO, XLIFF and TMX are translated: those without a translation (empty, the default); also
            those that are fuzzy; or all that are not locked. With --min-confidence, less confident translations are
            marked as fuzzy in PO and XLIFF, and left out in TMX.
        to: Write the texts and their translations as TMX or XLIFF, for review, instead of the translated files.
        json: Print one JSON object for each line: input, output, score, tokens and log_probs, and nbest with
            all translations.
        quiet: Print no progress and no warnings.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    if files:
        from glassformer.cli.translate_files import check_files, translate_files

        translate_files(
            model,
            files,
            check_files(files, model, out),
            decode_options(options),
            only=only or "empty",
            to=to,
            ensemble=ensemble,
            quiet=quiet,
            json=json,
            device=device,
            threads=threads,
        )
        return
    if out or only or to:
        name = "out" if out else "only" if only else "to"
        raise ConfigError(
            f"--{name}: for files, and none is named.\n"
            f"  Name them: glassformer translate {shlex.quote(str(model))} FILE … --out FOLDER"
        )
    from glassformer.cli.lines import translate_lines

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
