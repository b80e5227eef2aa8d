"""`glassformer evaluate`"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.options import flags, given
from glassformer.config import DecodeConfig

Flags: Any = flags(DecodeConfig, "nbest")


def evaluate(
    model: Path,
    /,
    *,
    src: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    ref: Path | None = None,
    out: Path | None = None,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a",
    lowercase: bool = False,
    json: bool = False,
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    threads: int | None = None,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Translate a file and score it against a reference: BLEU, chrF and TER with sacrebleu's signatures.

    Example:  glassformer evaluate en-fr --src test.en --ref test.fr

    Args:
        model: folder written by `glassformer train`.
        src: source text, or a TSV or JSONL of pairs.
        ref: reference translations, line by line; nothing for TSV and JSONL.
        out: also write the translations here.
        tokenize: sacrebleu's tokenizer for BLEU; none for text that is tokenized.
        lowercase: ignore case.
        json: figures as JSON.
        device: where to compute.
        threads: processor threads. Default: all cores.
    """
    from glassformer.cli.lines import counting, open_model
    from glassformer.corpora.corpus import read_pairs

    decoding = DecodeConfig.resolve(given(options))
    pairs = list(read_pairs([src], [ref] if ref else []))
    translator = open_model(model, device, threads)
    with counting("translating", len(pairs)) as progress:
        hypotheses, scores = translator.scores(
            pairs, decoding, tokenize=tokenize, lowercase=lowercase, progress=progress
        )
    if out:
        out.write_text("".join(line + "\n" for line in hypotheses), encoding="utf-8")
    if json:
        record = {s.name: {"score": s.value, "signature": s.signature} for s in scores}
        print(json_module.dumps({"n_sentences": len(pairs), **record}))
    else:
        for score in scores:
            print(f"{score.name:6} {score.value:6.2f}  {score.signature}")
        sys.stdout.flush()
