"""A model folder in the model process, and what the server needs to know of it."""

import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from glassformer.corpora.language_id import FILE as LANGUAGE_PROFILES
from glassformer.decode_config import DecodeConfig, Precision
from glassformer.devices import require_torch
from glassformer.errors import UserError
from glassformer.generate.engine import Engine
from glassformer.generate.request import Sources
from glassformer.pipelines import pipeline
from glassformer.pipelines.base import Pipeline
from glassformer.serve.messages import ModelInfo
from glassformer.tasks.base import AnyTask
from glassformer.tasks.causal_lm import DecoderTask
from glassformer.tasks.classification import LabelTask
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.registry import find_model, load
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.translation import Translator
from glassformer.tokens.tags import tags_of

WARM_UP_SENTENCES, WARM_UP_TOKENS = 16, 20
"""Size of the batch that measures the speed of a model."""

READING_SPEED = 4000.0
"""Tokens in a second that models which do not generate text read at least."""


class ServedModel:
    """A model folder, and how it is used.

    Args:
        name: name of the model in requests.
        folder: model folder.
        precision: precision of inference.
    """

    def __init__(self, name: str, folder: Path, precision: Precision) -> None:
        self.name, self.folder = name, folder
        self.task: AnyTask = load(folder)
        has_int8 = self.task.device.type == "cpu"
        self.precision: Precision = precision if precision != "int8" or has_int8 else "auto"
        if isinstance(self.task, EncoderTask):
            self.task.precision = self.precision
        self.engine: Engine | None = None
        if isinstance(self.task, TextToTextTask | DecoderTask):
            self.engine = self.task.engine(DecodeConfig(precision=self.precision))
        self.speed = self.warm_up()

    @cached_property
    def pipeline(self) -> Pipeline[Any]:
        """The pipeline of the model's task."""
        return pipeline(model=self.task, precision=self.precision)

    def warm_up(self) -> float:
        """Decode a batch with beam size 4. Returns the speed: generated tokens of hypotheses in a second; for other
        models, tokens read in a second."""
        if self.engine is None:
            return READING_SPEED
        n_tokens = min(WARM_UP_TOKENS, self.task.config.max_len // 2)
        options = DecodeConfig(beam=4, precision=self.precision, max_length=n_tokens, min_length=n_tokens - 1)
        ids = [i for i in range(self.task.tokenizer.vocab_size) if i not in self.engine.banned_ids]
        source = [*(ids[len(ids) // 2 :] * n_tokens)[: n_tokens - 1], self.task.tokenizer.eos_id]
        start = time.perf_counter()
        self.engine.decode(Sources([source] * WARM_UP_SENTENCES, options))
        return WARM_UP_SENTENCES * n_tokens * 4 / (time.perf_counter() - start)

    def check_inspection(self) -> None:
        """Check that the model can be inspected.

        Raises:
            UserError: it cannot.
        """
        require_torch("The inspection of a model")
        if self.task.source.stored is not None and self.task.source.stored.is_int8:
            raise UserError(
                f"{self.name}: this folder is in int8: serve the folder that it was made from to inspect it"
            )

    @property
    def features(self) -> list[str]:
        """What the model can add to its outputs."""
        features = []
        with suppress(UserError):
            self.check_inspection()
            features.append("inspect")
        if isinstance(self.task, TextToTextTask):
            features += ["prefix", "align"]
            if self.task.confidence:
                features.append("confidence")
        return features

    def info(self) -> ModelInfo:
        """Description of the model for the server."""
        task = self.task
        detection = find_model(self.folder) / LANGUAGE_PROFILES
        return ModelInfo(
            id=self.name,
            task=task.name,
            pipeline=task.pipelines[0] if task.pipelines else None,
            languages=list(task.languages if isinstance(task, Translator) else ()),
            features=self.features,
            tags=list(tags_of(task.tokenizer)),
            labels=list(task.labels),
            inputs=list(task.inputs) if isinstance(task, LabelTask) else [],
            speed=self.speed,
            embeds=isinstance(task, SentenceEmbedder),
            detection=str(detection.resolve()) if detection.exists() else None,
            created=int(find_model(self.folder).stat().st_mtime),
        )
