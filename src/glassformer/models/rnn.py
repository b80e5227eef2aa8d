"""Recurrent encoder-decoder with attention: a baseline for comparison with Transformers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.generate.protocol import PAD_TO_MULTIPLE_OF
from glassformer.model_config import RnnConfig
from glassformer.models.base import Model
from glassformer.nn.attention import Attention
from glassformer.nn.block import KeysValues
from glassformer.nn.dropout import Dropout
from glassformer.nn.linear import Linear, batch_invariant_linear
from glassformer.nn.masks import padding_mask


@dataclass(frozen=True, slots=True)
class LstmState:
    """State of the LSTM decoder after a step. Tensors have the shape [rows, d_model]."""

    layers: list[tuple[Tensor, Tensor]]
    """Hidden state and cell state of each layer."""
    attentional: Tensor
    """Attentional hidden state: predicts the next token and is part of the next input (input feeding)."""

    def select(self, rows: Int[Tensor, " rows"]) -> "LstmState":
        """State whose row i is the row `rows[i]` of this one. Rows may repeat."""
        return LstmState([(hidden[rows], cell[rows]) for hidden, cell in self.layers], self.attentional[rows])


class RnnState:
    """Decoder state: cross-attention keys and values per sentence, LSTM state per hypothesis."""

    def __init__(
        self, cross_keys_values: KeysValues, cross_mask: Bool[Tensor, "batch 1 1 src"], lstm_state: LstmState
    ) -> None:
        self.cross_keys_values, self.cross_mask, self.lstm_state = cross_keys_values, cross_mask, lstm_state

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Reorder: row i becomes the former row `rows[i]`; rows may repeat. Keep only `sentences` (None: all)."""
        self.lstm_state = self.lstm_state.select(rows)
        if sentences is not None:
            keys, values = self.cross_keys_values
            self.cross_keys_values = keys[sentences], values[sentences]
            self.cross_mask = self.cross_mask[sentences]


class Rnn(Model):
    """Bidirectional LSTM encoder and LSTM decoder with additive attention.

    At each step the input of the decoder is the embedding of the last token, concatenated with the previous attentional
    hidden state (input feeding). The new hidden state attends to the encoder output; this state and the resulting
    context vector are combined to predict the next token. The embeddings of both sides and the output projection share
    one matrix, as in the Transformer.

    Source: Bahdanau et al. 2014; Luong et al. 2015 for input feeding; Hochreiter & Schmidhuber 1997.
    """

    config_class = RnnConfig
    kind = "encoder-decoder"
    pad_to_multiple_of: ClassVar[int] = PAD_TO_MULTIPLE_OF
    capturable = False
    has_blocks = False
    output_bias: ClassVar[None] = None

    def __init__(self, config: RnnConfig) -> None:
        super().__init__(config)
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model, padding_idx=c.pad_id)
        self.dropout = Dropout(c.dropout)
        self.encoder = nn.LSTM(
            c.d_model, c.d_model // 2, c.n_layers, batch_first=True, bidirectional=True,
            dropout=c.dropout if c.n_layers > 1 else 0.0,
        )  # fmt: skip
        self.init_proj = Linear(c.d_model, 2 * c.n_layers * c.d_model)
        self.decoder: Any = nn.ModuleList(
            nn.LSTMCell(2 * c.d_model if i == 0 else c.d_model, c.d_model) for i in range(c.n_layers)
        )
        self.cross_attention = Attention(c.d_model, 1, score="additive")
        self.combine = Linear(2 * c.d_model, c.d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within +-d_model^-0.5, normal embeddings, forget gate bias 1 (Jozefowicz et al. 2015)."""
        for p in self.parameters():
            nn.init.uniform_(p, -(self.config.d_model**-0.5), self.config.d_model**-0.5)
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            self.embedding.weight[self.config.pad_id] = 0
            for name, p in self.named_parameters():
                if "bias_ih" in name:
                    n = len(p) // 4
                    p[n : 2 * n] = 1.0

    def encode(self, src: Int[Tensor, "batch src"]) -> tuple[Float[Tensor, "batch src d_model"], LstmState]:
        """Encoder output (memory) at every position, and the initial state of the decoder."""
        x = self.dropout(self.embedding(src) * self.config.d_model**0.5)
        lengths = (src != self.config.pad_id).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=src.size(1)
        )
        mean = memory.sum(1) / lengths[:, None].to(memory)
        initial = torch.tanh(self.init_proj(mean)).chunk(2 * self.config.n_layers, dim=-1)
        layers = list(zip(initial[::2], initial[1::2], strict=True))
        return self.dropout(memory), LstmState(layers, torch.zeros_like(mean))

    def lstm_step(
        self,
        ids: Int[Tensor, " rows"],
        state: LstmState,
        cross_keys_values: KeysValues,
        cross_mask: Bool[Tensor, "batch 1 1 src"],
    ) -> LstmState:
        """One decoder step: the state after reading `ids`, the last token of each hypothesis."""
        n = self.config.n_layers
        x = torch.cat([self.dropout(self.embedding(ids) * self.config.d_model**0.5), state.attentional], dim=-1)
        layers = []
        for i, (lstm_cell, hidden_and_cell) in enumerate(zip(self.decoder, state.layers, strict=True)):
            x, cell = lstm_cell(x, hidden_and_cell)
            layers.append((x, cell))
            x = self.dropout(x) if i + 1 < n else x
        queries = x.reshape(cross_keys_values[0].size(0), -1, x.size(-1))  # hypotheses of a sentence are adjacent
        context = self.cross_attention.attend(queries, *cross_keys_values, cross_mask).reshape(x.shape)
        return LstmState(layers, self.dropout(torch.tanh(self.combine(torch.cat([x, context], dim=-1)))))

    def forward(
        self, src: Int[Tensor, "batch src"], tgt_in: Int[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Decoder output at every target position, computed sequentially; `logits` projects it to the vocabulary."""
        memory, state = self.encode(src)
        keys_values, mask = self.cross_attention.keys_values(memory), padding_mask(src, self.config.pad_id)
        outputs = []
        for ids in tgt_in.unbind(1):
            state = self.lstm_step(ids, state, keys_values, mask)
            outputs.append(state.attentional)
        return torch.stack(outputs, dim=1)

    @property
    def embedding_scale(self) -> float:
        return float(self.config.d_model**0.5)

    @property
    def pruning_obstacle(self) -> str:
        return "its attention has only one head."

    @property
    def output_weight(self) -> Tensor:
        """Weight of the projection to the vocabulary."""
        return self.embedding.weight

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return batch_invariant_linear(hidden, self.output_weight)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[RnnState, Tensor]:
        """Encode the sources and create the decoder state for `n_hypotheses` of each; the first input is `bos_id`."""
        memory, initial = self.encode(src)
        state = RnnState(
            self.cross_attention.keys_values(memory),
            padding_mask(src, self.config.pad_id),
            initial.select(torch.arange(len(src), device=src.device).repeat_interleave(n_hypotheses)),
        )
        return state, src.new_full((len(src) * n_hypotheses,), self.config.bos_id)

    def step(self, ids: Int[Tensor, " rows"], state: RnnState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given `ids`, the last token of each hypothesis. Updates the state."""
        state.lstm_state = self.lstm_step(ids, state.lstm_state, state.cross_keys_values, state.cross_mask)
        return self.logits(state.lstm_state.attentional)
