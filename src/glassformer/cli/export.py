"""`glassformer export`"""

import time
from pathlib import Path
from typing import Literal


def export(model: Path, /, *, out: Path, to: Literal["huggingface", "int8"] = "huggingface") -> None:
    """Convert a model folder: for Hugging Face's AutoModel and AutoTokenizer, or to 8-bit weights.

    Example:  glassformer export de-en/ --out de-en-hf

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        out: Folder to create.
        to: Format to write. int8: a folder for translate, run and evaluate on a CPU, with weights of 8 bits; it is
            loaded faster and needs less memory.
    """
    from glassformer.tasks.registry import load

    if to == "huggingface":
        from glassformer.interop.huggingface import export_folder

        print(f"{out}: {export_folder(model, out)}. Load it with transformers' from_pretrained({str(out)!r}).")
        return
    load(model, device="cpu").save(out, precision="int8")
    start = time.perf_counter()
    load(out, device="cpu")
    seconds = time.perf_counter() - start
    sizes = [sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6 for folder in (model, out)]
    print(f"{out}: weights {sizes[1]:.1f} MB (before: {sizes[0]:.1f} MB), loaded in {seconds:.2f} s.")
