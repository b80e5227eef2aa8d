"""`glassformer score`"""

import json as json_module
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from glassformer.cli.options import OptionalInt


def score(
    model: Path,
    /,
    *,
    src: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    tgt: Path | None = None,
    json: bool = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    threads: OptionalInt = None,
) -> None:
    """Natural log-probability that the model gives each target, given its source: one line a pair.

    Example:  glassformer score en-fr --src test.en --tgt test.fr

    Args:
        model: folder written by `glassformer train`.
        src: source text, or a TSV or JSONL of pairs.
        tgt: target text, line by line; nothing for TSV and JSONL.
        json: one JSON object a line, with each token's log-probability.
        device: where to compute.
        threads: processor threads. Default: all cores.
    """
    from glassformer.cli.lines import TRANSLATIONS, open_model, windows
    from glassformer.corpora.corpus import read_pairs

    pairs = read_pairs([src], [tgt] if tgt else [])
    translator = open_model(model, device, threads, TRANSLATIONS)
    for window in windows(pairs, 4096):
        rows = translator.score([pair.src for pair in window], [pair.tgt for pair in window])
        for pair, log_probs in zip(window, rows, strict=True):
            if json:
                record = {"source": pair.src, "target": pair.tgt, "score": sum(log_probs), "log_probs": log_probs}
                print(json_module.dumps(record, ensure_ascii=False))
            else:
                print(f"{sum(log_probs):.4f}")
