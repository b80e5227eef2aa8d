"""Names of the Hugging Face hub as folders."""

import re
from pathlib import Path

from glassformer.errors import CheckpointError, UserError

FILES = ["*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "*.spm"]
"""What is read of a repository: no code and no pickle."""


def folder_of(name: str) -> Path:
    """A folder as it is; else the files of the repository of that name, from the hub or from where it was put before.

    Raises:
        CheckpointError: neither a folder nor a repository that can be had.
        UserError: huggingface_hub is not installed.
    """
    if Path(name).exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        return Path(name)
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(
            f"{name}: no such folder, and names of the hub need huggingface_hub: pip install 'glassformer[hf]'."
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except Exception as error:  # of the network, the hub or its cache
        raise CheckpointError(f"{name}: no such folder, and not to be had from the hub: {error}") from None
