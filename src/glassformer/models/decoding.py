"""Models of PyTorch as models that generate text, and the decoder state of Transformers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from glassformer.generate.batches import padded_length
from glassformer.generate.protocol import Candidates, ComputesLogits, Decodable, Ints
from glassformer.nn.attention import KeyValueCache
from glassformer.nn.block import KeysValues


@runtime_checkable
class DecoderState(Protocol):
    """Decoder state of a model of PyTorch."""

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """See `glassformer.generate.protocol.State`."""


@runtime_checkable
class TorchModel(Protocol):
    """A model of PyTorch that generates text token by token from source sequences or prompts: what a model family
    implements, and `TorchDecoder` uses."""

    @property
    def config(self) -> Any:
        """Configuration, with `vocab_size` and `pad_id`."""

    @property
    def pad_to_multiple_of(self) -> int:
        """All sources of a batch are padded to the same length, a multiple of this."""

    def start(
        self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1
    ) -> tuple[DecoderState, Int[Tensor, " rows"]]:
        """Encode the sources and create the decoder state for `n_hypotheses` adjacent hypotheses of each.

        Returns:
            The state, and the first input token of each hypothesis.
        """

    def step(self, ids: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given the last token of each hypothesis. Updates the state."""


class TorchState:
    """Decoder state of a model of PyTorch, with the indices of NumPy."""

    def __init__(self, state: DecoderState, device: torch.device) -> None:
        self.state, self.device = state, device

    @torch.inference_mode()
    def select(self, rows: Ints, sentences: Ints | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        kept = None if sentences is None else torch.from_numpy(sentences).to(self.device)
        self.state.select(torch.from_numpy(rows).to(self.device), kept)


class TorchDecoder(ComputesLogits):
    """A model of PyTorch as `Decodable`. In each step, the most probable tokens are selected on its device."""

    def __init__(self, model: TorchModel) -> None:
        self.model, self.config = model, model.config
        self.vocab_size: int = model.config.vocab_size
        self.pad_to_multiple_of = model.pad_to_multiple_of

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.model.parameters()).device  # type: ignore[attr-defined]

    @torch.inference_mode()
    def start(self, sources: Sequence[Sequence[int]], n_hypotheses: int = 1) -> tuple[TorchState, Ints]:
        """See `Decodable`."""
        width = padded_length(max(map(len, sources)), self.pad_to_multiple_of)
        src = np.full((len(sources), width), self.config.pad_id, np.int64)
        for row, source in zip(src, sources, strict=True):
            row[: len(source)] = source
        device = self.device
        state, last = self.model.start(torch.from_numpy(src).to(device), n_hypotheses)
        return TorchState(state, device), last.cpu().numpy()

    def logits_on_device(self, ids: Ints, state: TorchState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token in fp32."""
        return self.model.step(torch.from_numpy(ids).to(state.device), state.state).float()

    @torch.inference_mode()
    def logits(self, ids: Ints, state: TorchState) -> NDArray[np.float32]:
        """See `Decodable`."""
        return self.logits_on_device(ids, state).cpu().numpy()

    @torch.inference_mode()
    def next_tokens(
        self, steps: Sequence[tuple[Ints, TorchState]], k: int, banned_ids: Sequence[int] = ()
    ) -> list[Candidates]:
        """See `Decodable`."""
        candidates = []
        for ids, state in steps:
            scores = self.logits_on_device(ids, state)
            scores[:, list(banned_ids)] = -torch.inf
            values, tokens = blockwise_topk(scores.log_softmax(-1), k)
            candidates.append((values.cpu().numpy(), tokens.cpu().numpy()))
        return candidates


def decodable(model: Any) -> Decodable:
    """A model as `Decodable`: models of PyTorch by `TorchDecoder`, others as they are."""
    is_torch = isinstance(model, nn.Module)
    return TorchDecoder(model) if is_torch else model


TOPK_BLOCK = 128
"""Number of vocabulary entries per block in `blockwise_topk`."""


def blockwise_topk(x: Float[Tensor, "rows vocab"], k: int) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """Faster `topk`: search only the k blocks with the largest maxima, which contain all top k values."""
    n_blocks = x.size(1) // TOPK_BLOCK
    if n_blocks <= 2 * k:
        values, ids = x.topk(k)
        return values, ids
    blocks, rest = x[:, : n_blocks * TOPK_BLOCK].view(len(x), n_blocks, TOPK_BLOCK), x[:, n_blocks * TOPK_BLOCK :]
    best = blocks.amax(-1).topk(k).indices[..., None]
    values = torch.cat([blocks.gather(1, best.expand(-1, -1, TOPK_BLOCK)).flatten(1), rest], dim=1)
    ids = torch.arange(x.size(1), device=x.device)
    indices = (best * TOPK_BLOCK + ids[:TOPK_BLOCK]).flatten(1)
    indices = torch.cat([indices, ids[n_blocks * TOPK_BLOCK :].expand(len(x), -1)], dim=1)
    values, index = values.topk(k)
    return values, indices.gather(1, index)


class TransformerState:
    """Decoder state of Transformers: cross-attention keys and values per sentence, self-attention cache per row."""

    def __init__(
        self,
        n_layers: int,
        cross_keys_values: list[KeysValues] | None = None,
        cross_mask: Bool[Tensor, "batch 1 1 src"] | None = None,
    ) -> None:
        """
        Args:
            n_layers: number of decoder layers.
            cross_keys_values: keys and values of the encoder output, for each layer. None: a decoder-only model.
            cross_mask: True where cross-attention may attend.
        """
        self.caches = [KeyValueCache() for _ in range(n_layers)]
        self.cross_keys_values: list[KeysValues] | list[None] = cross_keys_values or [None] * n_layers
        self.cross_mask = cross_mask

    @property
    def length(self) -> int:
        """Number of positions decoded so far."""
        return self.caches[0].length

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None and self.cross_mask is not None:
            self.cross_keys_values = [(k[sentences], v[sentences]) for k, v in self.cross_keys_values]  # type: ignore[misc]
            self.cross_mask = self.cross_mask[sentences]
