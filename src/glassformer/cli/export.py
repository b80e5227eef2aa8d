"""`glassformer export`"""

import time
from pathlib import Path
from typing import Literal

from glassformer.errors import ConfigError


def export(
    model: Path,
    /,
    *,
    out: Path,
    to: Literal["huggingface", "int8", "ctranslate2", "onnx", "html"] = "huggingface",
    src: Path | None = None,
    split: bool = False,
) -> None:
    """Convert a model folder: for Hugging Face's AutoModel and AutoTokenizer, CTranslate2 or ONNX Runtime, to 8-bit
    weights, or to a page that contains it.

    A folder for CTranslate2 or ONNX is read again and its outputs are compared with those of the original. If they
    differ, nothing is written and the exit code is 1.

    Example:  glassformer export de-en/ --out de-en-hf

    Example:  glassformer export de-en/ --to html --out de-en.html

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        out: Folder to create; for html the file.
        to: Format to write. int8: a folder for translate, run and evaluate on a CPU, with weights of 8 bits; it is
            loaded faster and needs less memory. html: one file that does what the model
            does in the browser, also offline.
        src: File with lines of text for the comparison. Default: the dev set of the run, else random tokens.
        split: With --to html, a folder for a web site: the page, and the model in a file of its own, which is loaded
            while it arrives.
    """
    if split and to != "html":
        raise ConfigError(f"--split: the folder for {to} is as that program reads it.\n  Use it with --to html.")
    if src is not None and to not in ("ctranslate2", "onnx"):
        raise ConfigError(f"--src: a folder for {to} is not compared.\n  Use it with --to ctranslate2 or onnx.")
    if to == "huggingface":
        from glassformer.interop.huggingface import export_folder

        print(f"{out}: {export_folder(model, out)}. Load it with transformers' from_pretrained({str(out)!r}).")
    elif to == "int8":
        export_int8(model, out)
    elif to == "html":
        export_site(model, out) if split else export_page(model, out)
    else:
        from glassformer.interop.export import export_verified

        print(f"{out}: {export_verified(model, out, to, src)}")


def export_page(model: Path, out: Path) -> None:
    """Write a page that contains a model."""
    from glassformer.browser.page import page
    from glassformer.cli.files import check_writable, write_page
    from glassformer.tasks.registry import load

    check_writable(out)
    if out.exists():
        raise ConfigError(f"{out} exists.\n  Name another file, or delete it.")
    write_page(out, page(load(model, device="cpu"), out.stem))


def export_site(model: Path, out: Path) -> None:
    """Write a folder for a web site: a page, and the model that it loads."""
    from glassformer import checkpoint
    from glassformer.browser.page import site
    from glassformer.tasks.registry import load

    checkpoint.check_empty(out)
    files = site(load(model, device="cpu"), out.name)
    with checkpoint.replace_folder(out) as folder:
        for name, content in files.items():
            checkpoint.write_synced(folder / name, content)
    sizes = ", ".join(f"{name} ({len(content) / 1e6:.1f} MB)" for name, content in files.items())
    print(f"{out}: {sizes}. Put both on a web server, in one folder.")


def export_int8(model: Path, out: Path) -> None:
    """Write a folder with 8-bit weights, and print its size and the time to load it."""
    from glassformer import checkpoint
    from glassformer.tasks.registry import find_model, load

    checkpoint.check_empty(out)
    contents = dict(load(model, device="cpu").contents(precision="int8"))
    if (training := find_model(model) / "training.json").exists():
        contents[training.name] = training.read_text(encoding="utf-8")
    checkpoint.save_folder(out, contents)
    start = time.perf_counter()
    load(out, device="cpu")
    seconds = time.perf_counter() - start
    sizes = [sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6 for folder in (model, out)]
    print(f"{out}: weights {sizes[1]:.1f} MB (before: {sizes[0]:.1f} MB), loaded in {seconds:.2f} s.")
