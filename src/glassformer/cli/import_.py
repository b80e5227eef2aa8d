"""`glassformer import`"""

from pathlib import Path


def import_(folder: Path, /, *, out: Path) -> None:
    """Convert a Hugging Face model folder: BERT, RoBERTa, XLM-R, DistilBERT, GPT-2, Llama, Mistral, Qwen2, T5,
    BART, MarianMT or Pegasus.

    No code of the folder is executed, and no pickle file is read.

    Example:  glassformer import bert-base-uncased/ --out bert

    Args:
        folder: Folder with config.json, model.safetensors and a tokenizer, or a model name on the Hugging Face Hub.
        out: Folder to create.
    """
    from glassformer.interop.hub import resolve_model_folder
    from glassformer.interop.huggingface import import_folder

    task = import_folder(resolve_model_folder(folder.as_posix()), out)
    n_parameters = sum(p.numel() for p in task.model.parameters())
    print(f"{out}: {task.name}, {n_parameters / 1e6:.1f} M parameters, vocabulary of {task.tokenizer.vocab_size:,}.")
