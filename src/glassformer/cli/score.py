"""`glassformer score`"""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import BulkOptions, Device, Json, Quiet, Threads, given
from glassformer.cli.reading import ReadFlags, pair_options, reading_of


def score(
    model: Path,
    /,
    *files: Path,
    src: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    tgt: Path | None = None,
    read: Annotated[ReadFlags, Parameter(name="*")] = ReadFlags(),  # noqa: B008
    out: Path | None = None,
    bulk: BulkOptions = BulkOptions(),  # noqa: B008
    json: Json = False,
    quiet: Quiet = False,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Print the natural log-probability of each target given its source, one line for each pair.

    Example:  glassformer score en-fr --src test.en --tgt test.fr

    Example:  glassformer score en-fr corpus/*.tsv.gz --workers 4 --out scores

    Args:
        model: Model folder written by `glassformer train`.
        files: Files of pairs in any format that `train` reads, or folders of them.
        src: Source text, or a file of pairs, to standard output.
        tgt: Target text, line by line. Not for files of pairs.
        out: Folder for the scores of `files`, in files of the same names. None is overwritten. The files are processed
            in chunks, which are kept: after an interruption, the same command goes on.
        json: Print one JSON object for each pair, with the log-probability of each token.
        quiet: Print no progress and no warnings.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer.cli.bulk import log
    from glassformer.cli.files import check_exist, check_folder, check_no_options, refuse_without_files
    from glassformer.cli.lines import make_warn, open_translator, scores_of_pairs
    from glassformer.cli.standard_input import MAX_CHUNK_LINES
    from glassformer.corpora.corpus import read_pairs
    from glassformer.corpora.lines import chunks
    from glassformer.errors import ConfigError, CorpusError
    from glassformer.tasks.texts import no_op

    if files:
        from glassformer.cli.bulk import process_files
        from glassformer.cli.jobs import Job

        if src or tgt or out is None:
            raise ConfigError(
                f"{files[0]}: {'and --src or --tgt' if src or tgt else 'where to? Name a folder for the scores'}.\n"
                f"  Use: glassformer score {shlex.quote(str(model))} FILE … --out FOLDER, or … --src FILE --tgt FILE"
            )
        check_exist(files)
        job = Job("score", str(model), {}, (), json, device, threads, reading=asdict(reading_of(given(read))))
        process_files(job, files, check_folder(out), bulk, quiet=quiet)
        return
    refuse_without_files("score", model, out=out, **given(bulk))
    if src is None:
        raise ConfigError("no text given.\n  Name files of pairs and --out FOLDER, or --src FILE --tgt FILE.")
    check_no_options([src], "score")
    translator = open_translator(model, device, threads, quiet=quiet)
    reading = pair_options(read, translator, [src])
    pairs = read_pairs([src], [tgt] if tgt else [], log=no_op if quiet else log, **asdict(reading))
    n_done = 0
    for chunk in chunks(pairs, MAX_CHUNK_LINES):
        warn = make_warn(n_done + 1, quiet=quiet)
        for text in scores_of_pairs(translator, [(pair.src, pair.tgt) for pair in chunk], warn, json=json):
            print(text)
        n_done += len(chunk)
    if not n_done:
        raise CorpusError(f"{src}: no pairs to score.\n  Give a file that has some.")
