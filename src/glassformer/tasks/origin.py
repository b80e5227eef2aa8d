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

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Ids of the tokens that end a text, of those that have one or several."""
        found = (self.generation_config or self.config).get("eos_token_id")
        return tuple(i for i in (found if isinstance(found, list) else [found]) if isinstance(i, int))

    @property
    def chat_template(self) -> str | None:
        """The chat template of tokenizer_config.json; None: the model has none."""
        template = self.tokenizer_config.get("chat_template")
        return template if isinstance(template, str) else None

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
