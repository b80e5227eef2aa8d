"""Comparison of an exported model with the model that it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.generate.request import Sources
from glassformer.metrics.translation import bleu
from glassformer.tasks.base import AnyTask
from glassformer.tasks.causal_lm import DecoderTask
from glassformer.tasks.encoder import EncoderTask, text_of_line
from glassformer.tasks.regression import Regressor
from glassformer.tasks.text_to_text import TextToTextTask
from glassformer.tasks.texts import no_op

Ids = Sequence[int]
"""Token ids."""

Outputs = Mapping[str, NDArray[np.float32]]
"""Name -> output of an encoder for one text; the last axis has the features or the labels."""


@dataclass(frozen=True, slots=True)
class Source:
    """Input of a model: a text as token ids, with the special tokens of the task."""

    ids: list[int]
    token_type_ids: list[int] = field(default_factory=list)
    """For encoders: 0 for the first text of a pair, 1 for the second."""


MIN_EQUAL_TOKENS = 0.995
"""Smallest fraction of equal tokens."""

MAX_BLEU_DIFFERENCE = 0.05
"""Largest distance from 100 of the BLEU of the outputs, with those of the original model as references."""

MAX_DIFFERENCE = 0.001
"""Largest difference of a log-probability, in nats, or of an output of an encoder, relative to its root mean square.
Rounding of fp32 causes differences of about 0.00001."""

CONTINUATION_TOKENS = 32
"""Number of tokens that a decoder-only model generates after each source."""

RANDOM_SOURCES = 50
"""Number of sources of random tokens, for models without a dev set."""


class ExportedModel(Protocol):
    """A model that was read from an exported folder. Models that generate text have the first two methods, encoders the
    last."""

    def generate(self, sources: Sequence[Ids], max_new_tokens: int) -> list[list[int]]:
        """Greedy outputs, each with its end token if it was generated."""

    def log_probs(self, sources: Sequence[Ids], outputs: Sequence[Ids]) -> list[list[float]]:
        """Natural log-probabilities of the tokens of given outputs."""

    def outputs(self, ids: Ids, token_type_ids: Ids) -> Outputs:
        """Outputs for a text with its special tokens: some of those of `encoder_outputs`."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the outputs of an exported model agree with those of the original."""

    n_tokens: int
    """Number of tokens of the longer of each two outputs; for encoders the number of predictions."""
    n_equal: int
    """Number of positions at which both have the same token; for encoders the same largest output."""
    difference: float
    """Largest difference of a log-probability or output; see MAX_DIFFERENCE."""
    bleu: float | None = None
    """BLEU of the outputs, with those of the original model as references. None: an encoder."""

    def __str__(self) -> str:
        equal = f"{self.n_equal / max(self.n_tokens, 1):.2%} of {self.n_tokens:,}"
        if self.bleu is None:
            return f"{equal} predictions equal, largest relative difference of an output {self.difference:.1e}"
        return (
            f"{equal} tokens equal, ΔBLEU {100 - self.bleu:.2f},"
            f" largest difference of a log-probability {self.difference:.1e}"
        )

    def check(self) -> None:
        """Check the limits.

        Raises:
            UserError: the exported model is not equivalent to the original.
        """
        is_close = self.difference <= MAX_DIFFERENCE  # False for NaN
        has_equal_text = self.bleu is None or 100 - self.bleu <= MAX_BLEU_DIFFERENCE
        if not is_close or not has_equal_text or self.n_equal < MIN_EQUAL_TOKENS * self.n_tokens:
            raise UserError(
                f"the exported model is not equivalent to the original; nothing was written.\n"
                f"  {self}.\n"
                f"  Limits: {MIN_EQUAL_TOKENS:.1%} equal, ΔBLEU {MAX_BLEU_DIFFERENCE}, difference {MAX_DIFFERENCE}.\n"
                "  This is an error of the export, or the model is numerically unstable: train it with a lower --lr."
            )


# Sources


def encode_lines(task: AnyTask, lines: Sequence[str]) -> list[Source]:
    """The model's inputs for the lines that are not blank, truncated if they are too long."""
    lines = [line for line in lines if line.strip()]
    max_len = task.config.max_len
    if isinstance(task, EncoderTask):
        rows = task.encode_truncated([text_of_line(line) for line in lines], no_op)
        return [Source(*task.add_special_tokens(*row)) for row in rows]
    if isinstance(task, DecoderTask):
        return [Source(task.truncate_prompt(task.prompt(line), max_new_tokens(task), no_op)) for line in lines]
    return [Source([*ids[: max_len - 1], task.tokenizer.eos_id]) for ids in task.tokenizer.encode_batch(lines)]


def random_sources(task: AnyTask) -> list[Source]:
    """Sources of random tokens, with the special tokens of the task."""
    t = task.tokenizer
    sources = []
    for ids in random_rows(task, RANDOM_SOURCES, task.config.max_len // 2 - 1):
        if isinstance(task, EncoderTask):
            sources.append(Source(*task.add_special_tokens(ids, [])))
        else:
            sources.append(Source([t.bos_id, *ids] if isinstance(task, DecoderTask) else [*ids, t.eos_id]))
    return sources


def random_rows(task: AnyTask, n_rows: int, max_len: int) -> list[list[int]]:
    """Rows of 1 to `max_len` random tokens, but at most 40, none of them special."""
    added = task.tokenizer.backend.get_added_tokens_decoder()
    ordinary = [i for i in range(task.tokenizer.vocab_size) if i not in added]
    random = np.random.default_rng(1)
    lengths = random.integers(1, min(40, max_len), n_rows, endpoint=True)
    return [random.choice(ordinary, n).tolist() for n in lengths]


def max_new_tokens(task: AnyTask) -> int:
    """Maximum number of tokens that are generated for a source: none by an encoder."""
    if isinstance(task, EncoderTask):
        return 0
    max_len = int(task.config.max_len)
    return min(CONTINUATION_TOKENS, max_len // 2) if isinstance(task, DecoderTask) else max_len


# Comparison


def compare(task: AnyTask, exported: ExportedModel, sources: Sequence[Source]) -> Agreement:
    """Compare an exported model with the model of a task."""
    compare_kind = compare_encoders if isinstance(task, EncoderTask) else compare_texts
    with torch.inference_mode():
        return compare_kind(task, exported, sources)


def compare_texts(task: AnyTask, exported: ExportedModel, sources: Sequence[Source]) -> Agreement:
    """Compare greedy outputs, and the log-probabilities of random tokens.

    The log-probabilities of the outputs are often near 0, and then they hardly depend on the weights.
    """
    assert isinstance(task, TextToTextTask | DecoderTask)
    limit, ids = max_new_tokens(task), [source.ids for source in sources]
    decoded = task.engine(DecodeConfig()).decode(Sources(ids, DecodeConfig(beam=1, max_length=limit)))
    ours, theirs = [nbest[0].ids for nbest in decoded], exported.generate(ids, limit)
    n_equal = sum(a == b for pair in zip(ours, theirs, strict=True) for a, b in zip(*pair, strict=False))
    targets = [[*row, task.tokenizer.eos_id] for row in random_rows(task, len(ids), limit - 1)]
    differences = [
        np.abs(log_probs(task, source, target) - np.array(found)).max()
        for source, target, found in zip(ids, targets, exported.log_probs(ids, targets), strict=True)
    ]
    texts, references = ([task.tokenizer.decode(output) for output in outputs] for outputs in (theirs, ours))
    return Agreement(
        n_tokens=sum(max(map(len, pair)) for pair in zip(ours, theirs, strict=True)),
        n_equal=n_equal,
        difference=float(np.max(differences)),
        bleu=100.0 if texts == references else bleu(texts, references),
    )


def log_probs(task: AnyTask, source: Ids, output: Ids) -> NDArray[np.float32]:
    """Natural log-probabilities of the tokens of an output."""
    model, t = task.model, task.tokenizer
    if isinstance(task, DecoderTask):
        hidden = model(torch.tensor([[*source, *output][:-1]]))[0, len(source) - 1 :]
    else:
        hidden = model(torch.tensor([source]), torch.tensor([[t.bos_id, *output[:-1]]]))[0]
    table = model.logits(hidden).log_softmax(-1)
    return table[range(len(output)), list(output)].numpy()


def compare_encoders(task: AnyTask, exported: ExportedModel, sources: Sequence[Source]) -> Agreement:
    """Compare the outputs of encoders: hidden states, or those of the head."""
    n_tokens = n_equal = 0
    differences = []
    for source in sources:
        ours = encoder_outputs(task, source)
        for name, found in exported.outputs(source.ids, source.token_type_ids).items():
            expected = ours[name].numpy()
            same = found.argmax(-1) == expected.argmax(-1)
            n_tokens, n_equal = n_tokens + same.size, n_equal + int(same.sum())
            differences.append(np.abs(found - expected).max() / np.sqrt(np.square(expected).mean()))
    return Agreement(n_tokens, n_equal, float(np.max(differences)))


def encoder_outputs(task: AnyTask, source: Source) -> dict[str, Tensor]:
    """Outputs of the encoder and its head for a text, under the names that transformers gives them."""
    model = task.model
    ids, types = torch.tensor([source.ids]), torch.tensor([source.token_type_ids])
    hidden = model(ids, types)
    outputs = {"last_hidden_state": hidden}
    if model.pooler is not None:
        outputs["pooler_output"] = model.pool(hidden, ids)
    if model.config.head == "mlm":
        outputs["logits"] = model.mlm_logits(hidden)
        if model.classifier is not None:
            outputs["seq_relationship_logits"] = model.label_logits(hidden, ids)
    elif model.classifier is not None:
        logits = model.label_logits(hidden, ids)
        low, high = task.range if isinstance(task, Regressor) else (-0.5, 0.5)
        outputs["logits"] = low + (high - low) * (logits + 0.5)
    return {name: value[0] for name, value in outputs.items()}
