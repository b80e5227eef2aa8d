"""`glassformer translate`"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import refuse_without_files
from glassformer.cli.options import BulkOptions, Device, Ensemble, Json, Quiet, Threads, decode_options, flags, given
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
    lines: bool = False,
    bulk: BulkOptions = BulkOptions(),  # noqa: B008
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

    Example:  glassformer translate en-fr corpus/*.gz --workers 4 --out done

    Args:
        model: Model folder written by `glassformer train`.
        files: Files to translate, or folders of them: Word, PowerPoint, Excel, OpenDocument, EPUB, HTML, Markdown,
            text, subtitles, PO, XLIFF, TMX, properties, strings of Android and Apple, JSON. All but the texts stays.
            Files of lines, each of which is a text: named .gz, or with --lines.
        out: Folder for the translated files, under their names. None is overwritten. What is done is kept, of files of
            lines each chunk: after an interruption, the same command goes on.
        only: Which entries of PO, XLIFF and TMX are translated: those without a translation (empty, the default); also
            those that are fuzzy; or all that are not locked. With --min-confidence, less confident translations are
            marked as fuzzy in PO and XLIFF, and left out in TMX.
        to: Write the texts and their translations as TMX or XLIFF, for review, instead of the translated files.
        lines: The files are text with a text on each line, whatever their names say.
        json: Print one JSON object for each line: input, output, score, tokens and log_probs, and nbest with
            all translations.
        quiet: Print no progress and no warnings.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    decoding = decode_options(options)
    if not files:
        from glassformer.cli.lines import translate_lines

        refuse_without_files("translate", model, out=out, only=only, to=to, lines=lines, **given(bulk))
        translate_lines(
            model, decoding, sys.stdout, ensemble=ensemble, json=json, quiet=quiet, device=device, threads=threads
        )
        return
    from glassformer.cli.translate_files import are_lines, check_files, translate_files

    lines = lines or are_lines(files)
    folder = check_files(files, model, out, lines=lines)
    from glassformer.cli.bulk import process_files
    from glassformer.cli.jobs import Job

    job = Job("translate", str(model), decoding.given(), tuple(map(str, ensemble)), json, device, threads)
    if not lines:
        job = replace(job, kind="documents", only=only or "empty", to=to)
        translate_files(job, files, folder, bulk, quiet=quiet)
        return
    if only or to:
        raise ConfigError(f"--{'only' if only else 'to'}: without effect on lines of text.\n  Leave it out.")
    process_files(job, files, folder, bulk, quiet=quiet)
