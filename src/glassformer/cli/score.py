"""`glassformer score`"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import Device, Json, Threads, given
from glassformer.cli.reading import PairFlags, languages_of


def score(
    model: Path,
    /,
    *,
    src: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    tgt: Path | None = None,
    read: Annotated[PairFlags, Parameter(name="*")] = PairFlags(),  # noqa: B008
    json: Json = False,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Print the natural log-probability of each target given its source, one line for each pair.

    Example:  glassformer score en-fr --src test.en --tgt test.fr

    Args:
        model: Model folder written by `glassformer train`.
        src: Source text, or a TSV or JSONL file of pairs.
        tgt: Target text, line by line. Not for TSV and JSONL.
        json: Print one JSON object for each pair, with the log-probability of each token.
        device: Device to compute on.
        threads: Number of CPU threads. Default: all cores.
    """
    from glassformer.cli.files import check_no_options
    from glassformer.cli.lines import MAX_CHUNK_LINES, open_translator, scores_of_pairs
    from glassformer.corpora.corpus import read_pairs
    from glassformer.corpora.lines import chunks
    from glassformer.tasks.texts import no_op

    check_no_options([src], "score")
    translator = open_translator(model, device, threads)
    pairs = read_pairs([src], [tgt] if tgt else [], languages=languages_of(translator), **given(read))
    for chunk in chunks(pairs, MAX_CHUNK_LINES):
        for text in scores_of_pairs(translator, [(pair.src, pair.tgt) for pair in chunk], no_op, json=json):
            print(text)
