"""Names of the Hugging Face hub as folders."""

import re
from pathlib import Path

from glassformer.errors import CheckpointError

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
FILES = ["*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "*.spm"]
"""What is read of a repository: no code and no pickle."""


def folder_of(name: str, *, revision: str | None = None, token: str | bool | None = None) -> Path:
    """A folder as it is; else the files of the repository of that name, from the hub or from where it was put before.

    Raises:
        CheckpointError: neither a folder nor a repository that can be had, or one whose weights are a pickle alone.
    """
    if Path(name).is_dir():
        return Path(name)
    if not HUB_NAME.fullmatch(name):
        raise CheckpointError(f"{name}: no such folder.\n  Name a folder of ours, or one of transformers'.")
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, revision=revision, token=token, allow_patterns=FILES))
    except Exception as error:  # the hub's client and what carries it raise dozens of kinds
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CheckpointError(
            f"{name}: no such folder, and not to be had from the hub: {reason}\n"
            "  Name a folder; or check the name, the network, HF_HUB_OFFLINE and HF_TOKEN."
        ) from None
    if not list(folder.glob("*.safetensors")):
        raise CheckpointError(
            f"{name}: the hub has its weights as a pickle alone, which can run code when it is read; not fetched.\n"
            "  Convert it where you trust it, by the class that config.json names under architectures:\n"
            f"  python -c \"from transformers import CLASS as M; M.from_pretrained('{name}').save_pretrained('DIR')\"\n"
            "  and put the tokenizer's files beside the weights."
        )
    return folder
