"""What tasks whose models generate text have in common."""

from typing import Any

from glassformer.decode_config import DecodeConfig
from glassformer.devices import Device
from glassformer.generate.engine import Engine
from glassformer.generate.protocol import Decodable
from glassformer.generate.shortlist import Shortlist
from glassformer.tasks.model import TaskModel
from glassformer.tokens.tokenizer import Tokenizer


class GeneratesText:
    """Mixin of tasks whose models generate text."""

    source: TaskModel
    config: Any
    tokenizer: Tokenizer
    device: Device
    shortlist: Shortlist | None = None
    """Vocabulary shortlist, if the model folder has it."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens that end a text besides that of the tokenizer."""
        return ()

    @property
    def banned_ids(self) -> tuple[int, ...]:
        """Special tokens that are never generated."""
        t = self.tokenizer
        return tuple({t.pad_id, t.bos_id} - {t.eos_id, *self.end_ids})

    def decodable(self, precision: str) -> Decodable:
        """The model that decodes, in a precision of inference."""
        model: Decodable = self.source.in_precision(precision)
        return model

    def engine(self, options: DecodeConfig, model: Decodable | None = None) -> Engine:
        """An engine that decodes requests.

        Args:
            options: decoding options; only `precision` and `batch_tokens` are used.
            model: model that decodes. Default: that of the task.
        """
        model = model or self.decodable(options.precision)
        return Engine(
            model, eos_id=self.tokenizer.eos_id, max_len=self.config.max_len, device=self.device,
            batch_tokens=options.batch_tokens, banned_ids=self.banned_ids, end_ids=self.end_ids,
            token_bytes=lambda: self.tokenizer.token_bytes, shortlist=self.shortlist,
        )  # fmt: skip
