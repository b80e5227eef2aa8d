"""Classes of texts."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import field_validator

from glassformer.errors import ConfigError
from glassformer.pipelines.base import Options, Pipeline, warn_cut
from glassformer.pipelines.tokenizer_adapter import Window, encoded
from glassformer.tasks.classification import Regressor


class ClassifyOptions(Options):
    """Arguments of text-classification."""

    top_k: int | None = None
    """How many labels, the most probable first; None: all. Left out: the best alone, and no list of one."""
    return_all_scores: bool | None = None
    """All labels in their own order; of no effect beside top_k."""
    function_to_apply: Literal["sigmoid", "softmax", "none"] | None = None
    max_length: int | None = None
    """Tokens of a text that are read, special tokens among them."""

    @field_validator("function_to_apply", mode="before")
    @classmethod
    def lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value


class TextClassification(Pipeline):
    """{"label", "score"} of a text, or of a pair: {"text": …, "text_pair": …}.

    The score is a probability: a softmax over the labels, a sigmoid where there is one label or each stands alone. Of
    a number that was learned (regression) it is the number.
    """

    tasks = ("classification", "regression")
    options_type = ClassifyOptions

    def each(self, inputs: Any, options: Mapping[str, Any]) -> Any:
        found = super().each(inputs, options)
        return [found] if isinstance(inputs, str) and "top_k" not in options else found

    def run(self, inputs: list[Any], options: ClassifyOptions) -> list[Any]:
        windows = [self.read(given, options) for given in inputs]
        return [self.format_output(logits, options) for logits in self.logits(windows)]

    def read(self, given: Any, options: ClassifyOptions) -> Window:
        """A text, a dictionary of a pair, or, as it was once, [[text, pair]]."""
        pair: str | None = None
        match given:
            case {"text": str(text), "text_pair": str(pair)} if len(given) == 2:
                pass
            case {"text": str(text)} if len(given) == 1:
                pass
            case [[str(text), str(pair)]]:
                pass
            case str(text):
                pass
            case _:
                raise ConfigError(
                    f"{self.task}: expected a text, a list of texts, or of a pair"
                    f' {{"text": …, "text_pair": …}}, found {given!r:.60}.'
                )
        limit = self.tokenizer.limit(cuts=options.cuts, max_length=options.max_length)
        window, *cut = self.tokenizer.read(text, pair, max_length=limit)
        if cut and not options.cuts and not options.max_length:
            warn_cut(limit, "end")
        return window

    def logits(self, windows: list[Window]) -> NDArray[np.float32]:
        """What the head says of each text; of a regression the number itself."""
        found = torch.empty(len(windows), self.model.model.config.n_labels)
        for places, hidden, ids in encoded(self.model, [(w.ids, w.token_type_ids) for w in windows]):
            with torch.inference_mode():
                found[places] = self.model.model.label_logits(hidden, ids).float().cpu()
        if isinstance(self.model, Regressor):
            low, high = self.model.range
            found = low + (high - low) * (found + 0.5)
        return found.numpy()

    @property
    def labels(self) -> tuple[str, ...]:
        """What the outputs of the head are called."""
        if not isinstance(self.model, Regressor):
            return self.model.labels
        return (str(self.source.config.get("id2label", {}).get("0", "LABEL_0")),)

    @property
    def default_function(self) -> str:
        """What makes a score of an output unless the caller says."""
        kind = self.source.config.get("problem_type")
        if kind == "regression" or (self.source.is_ours and isinstance(self.model, Regressor)):
            return "none"
        return "sigmoid" if kind == "multi_label_classification" or len(self.labels) == 1 else "softmax"

    def format_output(self, logits: NDArray[np.float32], options: ClassifyOptions) -> Any:
        function = options.function_to_apply or self.default_function
        scores: NDArray[Any]
        if function == "sigmoid":
            scores = 1.0 / (1.0 + np.exp(-logits))
        elif function == "softmax":
            scores = np.exp(logits - logits.max())
            scores = scores / scores.sum()
        else:
            scores = logits
        rows: list[dict[str, Any]] = [
            {"label": label, "score": float(x)} for label, x in zip(self.labels, scores, strict=True)
        ]
        if "top_k" not in options.model_fields_set:
            return rows if options.return_all_scores else rows[int(scores.argmax())]
        return sorted(rows, key=lambda row: -row["score"])[: options.top_k]
