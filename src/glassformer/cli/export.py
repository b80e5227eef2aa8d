"""`glassformer export`"""

from pathlib import Path
from typing import Literal


def export(model: Path, /, *, out: Path, to: Literal["huggingface"] = "huggingface") -> None:
    """Convert a model folder to a folder that Hugging Face's AutoModel and AutoTokenizer load.

    Example:  glassformer export de-en/ --out de-en-hf

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        out: Folder to create.
        to: Format to write.
    """
    from glassformer.interop.huggingface import export_folder

    print(f"{out}: {export_folder(model, out)}. Load it with transformers' from_pretrained({str(out)!r}).")
