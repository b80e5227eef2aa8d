"""`glassformer export`"""

from pathlib import Path
from typing import Literal


def export(model: Path, /, *, out: Path, to: Literal["huggingface"] = "huggingface") -> None:
    """Write a model as a folder that other programs read: Hugging Face's AutoModel and AutoTokenizer.

    Example:  glassformer export de-en/ --out de-en-hf

    Args:
        model: folder written by `glassformer train` or `glassformer import`.
        out: the new folder.
        to: whose form.
    """
    from glassformer.interop.huggingface import export_folder

    print(f"{out}: {export_folder(model, out)}. Load it with transformers' from_pretrained({str(out)!r}).")
