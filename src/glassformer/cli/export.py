"""`glassformer export`"""

from pathlib import Path
from typing import Literal


def export(
    model: Path,
    /,
    *,
    out: Path,
    to: Literal["huggingface", "ctranslate2"] = "huggingface",
    src: Path | None = None,
) -> None:
    """Convert a model folder to a folder that other programs load.

    The folder for CTranslate2 is read again and its outputs are compared with those of the original. If they differ,
    nothing is written and the exit code is 1.

    Example:  glassformer export de-en/ --out de-en-hf

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        out: Folder to create.
        to: Program: huggingface (AutoModel and AutoTokenizer) or ctranslate2.
        src: File with lines of text for the comparison. Default: the dev set of the run, else random tokens.
    """
    if to == "huggingface":
        from glassformer.interop.huggingface import export_folder

        print(f"{out}: {export_folder(model, out)}. Load it with transformers' from_pretrained({str(out)!r}).")
    else:
        from glassformer.interop.export import export_verified

        print(f"{out}: {export_verified(model, out, to, src)}")
