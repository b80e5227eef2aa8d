"""`glassformer import`"""

from pathlib import Path


def import_(folder: Path, /, *, out: Path) -> None:
    """Make a model folder of one of Hugging Face's transformers: BERT, RoBERTa, DistilBERT, GPT-2, T5, MarianMT.

    Nothing in the folder is run, and no pickle is read.

    Example:  glassformer import bert-base-uncased/ --out bert

    Args:
        folder: with config.json, model.safetensors and a tokenizer.
        out: the new folder.
    """
    from glassformer.interop.huggingface import import_folder

    task = import_folder(folder, out)
    n_parameters = sum(p.numel() for p in task.model.parameters())
    print(f"{out}: {task.name}, {n_parameters / 1e6:.1f} M parameters, {task.tokenizer.vocab_size:,} units.")
