"""Model folders by path or by repository name on the Hugging Face hub."""

from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.manifest import HUB_NAME

DOWNLOADED_FILES = ["*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "*.spm", "*.jinja"]
"""Files downloaded from a repository. Code and pickles are excluded."""


def resolve_model_folder(name: str, *, revision: str | None = None, token: str | bool | None = None) -> Path:
    """Path of a model folder: `name` if it is a folder, else the downloaded or cached hub repository of that name.

    Args:
        name: path of a folder, or name of a repository on the hub.
        revision: branch, tag or commit of the repository.
        token: access token for the hub.

    Raises:
        CheckpointError: neither a folder nor an accessible repository, or the repository has no safetensors weights.
    """
    if Path(name).is_dir():
        return Path(name)
    if not HUB_NAME.fullmatch(name):
        raise CheckpointError(
            f"{name}: no such folder.\n  Give the path of a glassformer or transformers model folder."
        )
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, revision=revision, token=token, allow_patterns=DOWNLOADED_FILES))
    except Exception as error:  # the hub client and its HTTP library raise many exception types
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CheckpointError(
            f"{name}: no such folder, and the download from the Hugging Face hub failed: {reason}\n"
            "  Give the path of a folder, or check the name, the network, HF_HUB_OFFLINE and HF_TOKEN."
        ) from None
    if not list(folder.glob("*.safetensors")):
        raise CheckpointError(
            f"{name}: the hub has the weights as a pickle only, which can execute code when loaded; not downloaded.\n"
            "  If you trust the source, convert it with the class that config.json lists under architectures:\n"
            f"  python -c \"from transformers import CLASS as M; M.from_pretrained('{name}').save_pretrained('DIR')\"\n"
            "  and copy the tokenizer files into the same folder."
        )
    return folder
