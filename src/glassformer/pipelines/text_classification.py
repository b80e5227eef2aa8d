"""text-classification: classes or scores of texts."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from glassformer.config import JsonObject
from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Output, Pipeline, warn_truncated
from glassformer.pipelines.tokenizer_adapter import Window, encoder_batches
from glassformer.tasks.classification import LabelTask
from glassformer.tasks.regression import Regressor


class TextClassificationOptions(Options):
    """Arguments of text-classification."""

    top_k: int | None = None
    """Number of labels, most probable first; None: all. If it is not given, a single dictionary is returned."""
    return_all_scores: bool | None = None
    """Return all labels in their original order. Ignored if top_k is given."""
    function_to_apply: Literal["sigmoid", "softmax", "none"] | None = None
    max_length: int | None = None
    """Maximum number of tokens, including special tokens."""

    @field_validator("function_to_apply", mode="before")
    @classmethod
    def lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value


class TextClassification(Pipeline[TextClassificationOptions]):
    """{"label", "score"} of a text, or of a pair of texts {"text": …, "text_pair": …}.

    The score is a probability: a softmax over the labels, or a sigmoid if there is a single label or the labels are
    independent. For regression models it is the predicted number.
    """

    options_type = TextClassificationOptions
    model: LabelTask

    def each(self, inputs: object, options: Mapping[str, object]) -> Output:
        results = super().each(inputs, options)
        return [results] if isinstance(inputs, str) and "top_k" not in options else results

    def run(self, inputs: list[object], options: TextClassificationOptions) -> list[Output]:
        windows = [self.read(text, options) for text in inputs]
        return [self.format_output(logits, options) for logits in self.logits(windows)]

    def read(self, value: Any, options: TextClassificationOptions) -> Window:
        """Encode a text, a dictionary with a pair of texts, or the old format [[text, pair]]."""
        pair: str | None = None
        match value:
            case {"text": str(text), "text_pair": str(pair)} if len(value) == 2:
                pass
            case {"text": str(text)} if len(value) == 1:
                pass
            case [[str(text), str(pair)]]:
                pass
            case str(text):
                pass
            case _:
                raise ConfigError(
                    f"{self.task}: expected a text, a list of texts, or a pair of texts"
                    f' {{"text": …, "text_pair": …}}, found {value!r:.60}.'
                )
        limit = self.tokenizer.limit(truncates=options.truncates, max_length=options.max_length)
        window, *overflow = self.tokenizer.encode_windows(text, pair, max_length=limit)
        if overflow and not options.truncates and not options.max_length:
            warn_truncated(limit, "end")
        return window

    def logits(self, windows: list[Window]) -> NDArray[np.float32]:
        """Outputs of the head, [windows, labels]; for regression the predicted numbers."""
        results = np.empty((len(windows), self.model.config.n_labels), np.float32)
        encoder = self.model.encoder
        for indices, hidden in encoder_batches(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            results[indices] = encoder.outputs(self.model.pooled(hidden))
        if isinstance(self.model, Regressor):
            low, high = self.model.range
            results = low + (high - low) * (results + 0.5)
        return results

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the outputs of the head."""
        if not isinstance(self.model, Regressor):
            return self.model.labels
        return (str(self.source.config.get("id2label", {}).get("0", "LABEL_0")),)

    @property
    def default_function(self) -> str:
        """Function that is applied to the outputs by default: "none", "sigmoid" or "softmax"."""
        problem_type = self.source.config.get("problem_type")
        if problem_type == "regression" or (isinstance(self.model, Regressor) and not self.source.follows_transformers):
            return "none"
        return "sigmoid" if problem_type == "multi_label_classification" or len(self.labels) == 1 else "softmax"

    def format_output(self, logits: NDArray[np.float32], options: TextClassificationOptions) -> Output:
        function = options.function_to_apply or self.default_function
        scores: NDArray[Any]
        if function == "sigmoid":
            scores = 1.0 / (1.0 + np.exp(-logits))
        elif function == "softmax":
            scores = np.exp(logits - logits.max())
            scores = scores / scores.sum()
        else:
            scores = logits
        rows: list[JsonObject] = [
            {"label": label, "score": float(x)} for label, x in zip(self.labels, scores, strict=True)
        ]
        if "top_k" not in options.model_fields_set:
            return rows if options.return_all_scores else rows[int(scores.argmax())]
        return sorted(rows, key=lambda row: -row["score"])[: options.top_k]
