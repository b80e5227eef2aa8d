"""What pipelines read of the Hugging Face folder that a model comes from."""

from pathlib import Path
from typing import Self

from pydantic import ValidationError

from glassformer.config import Config, JsonObject
from glassformer.errors import CheckpointError
from glassformer.manifest import COPY_AGAIN, read_json

FILE = "huggingface.json"


class Origin(Config):
    """Contents of files of a Hugging Face folder, by which pipelines give the outputs of transformers.

    An imported model keeps them when it is saved again. A model trained from it (`--init-from`, `update`) does not have
    them: it was trained with other texts, so prefixes and generation parameters of the original need not suit it.
    """

    pipelines: tuple[str, ...] = ()
    """Pipelines that apply the model. The first is the default."""
    config: JsonObject = {}
    """config.json."""
    generation_config: JsonObject = {}
    """generation_config.json; empty if there is none."""
    tokenizer_config: JsonObject = {}
    """tokenizer_config.json, with the special tokens and the chat template of other files."""

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the file of a model folder.

        Raises:
            CheckpointError: it is damaged.
        """
        try:
            return cls.model_validate(read_json(path))
        except ValidationError:
            raise CheckpointError(f"{path}: damaged.{COPY_AGAIN}") from None
