"""Teachers: what translates the sources of a corpus that another model is trained on."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.generate.shortlist import FILE as SHORTLIST
from glassformer.manifest import read_manifest
from glassformer.synthetic.answers import Answer
from glassformer.tasks.base import Log
from glassformer.tasks.confidence import FILE as CONFIDENCE
from glassformer.tasks.registry import find_model, load
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import Translation

CHUNK = 512
"""Number of sources whose answers a model computes before they are written: what a kill loses at most."""


class Teacher(Protocol):
    """What translates sources."""

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def identity(self) -> str:
        """What determines the answers."""

    def answers(
        self, sources: Sequence[str], log: Log = no_op, *, has_answered: bool = False
    ) -> Iterator[list[tuple[str, Answer]]]:
        """The sources with their answers, in any order, as they come.

        Args:
            log: called with what delays them.
            has_answered: it has answered other sources before.
        """


def identity_of(folder: Path) -> str:
    """Digest of the files of a model folder that determine its translations."""
    _, entries = read_manifest(folder)
    used = sorted((name, digest) for name, _, digest in entries if name not in (SHORTLIST, CONFIDENCE))
    return hashlib.sha256(json.dumps(used).encode()).hexdigest()


class ModelTeacher:
    """A model folder, or several as an ensemble."""

    def __init__(self, folders: Sequence[Path], options: DecodeConfig, device: str = "auto") -> None:
        """
        Raises:
            ConfigError: a folder does not contain a translator, or their vocabularies differ.
        """
        folders = [find_model(folder) for folder in folders]
        tasks: list[TextToTextTask[Any]] = []
        for folder in folders:
            task = load(folder, device=device)
            if not isinstance(task, TextToTextTask):
                raise ConfigError(
                    f"{folder}: was trained for {task.name}, which does not translate.\n  Name a translator."
                )
            tasks.append(task)
        self.task = tasks[0].with_members(tasks[1:])
        self.options = options
        self.name = " and ".join(map(str, folders))
        self.identity = " ".join([*map(identity_of, folders), options.model_dump_json(exclude_defaults=True)])

    def answers(
        self, sources: Sequence[str], log: Log = no_op, *, has_answered: bool = False
    ) -> Iterator[list[tuple[str, Answer]]]:
        for start in range(0, len(sources), CHUNK):
            part = sources[start : start + CHUNK]
            translations = self.task.translate(part, self.options)
            yield [(source, self.answer(nbest)) for source, nbest in zip(part, translations, strict=True)]

    def answer(self, nbest: Sequence[Translation]) -> Answer:
        """The answer that translations are."""
        best = nbest[0]
        n = len(best.log_probs)
        return Answer(
            tuple(translation.text for translation in nbest),
            is_truncated=best.is_truncated,
            score=sum(best.log_probs) / n if n else None,
        )
