"""`glassformer import`"""

from pathlib import Path


def import_(folder: Path, /, *, out: Path) -> None:
    """Make a model folder of one of Hugging Face's: BERT, RoBERTa, DistilBERT, GPT-2, T5, MarianMT, Pegasus.

    Nothing in the folder is run, and no pickle is read.

    Example:  glassformer import bert-base-uncased/ --out bert

    Args:
        folder: with config.json, model.safetensors and a tokenizer; or its name on the hub.
        out: the new folder.
    """
    from glassformer.interop.hub import folder_of
    from glassformer.interop.huggingface import import_folder

    task = import_folder(folder_of(folder.as_posix()), out)
    n_parameters = sum(p.numel() for p in task.model.parameters())
    print(f"{out}: {task.name}, {n_parameters / 1e6:.1f} M parameters, {task.tokenizer.vocab_size:,} units.")
