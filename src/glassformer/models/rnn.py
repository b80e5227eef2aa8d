"""Recurrent encoder-decoder with attention: a baseline for comparison with Transformers."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.model_config import RnnConfig
from glassformer.models.base import PAD_TO_MULTIPLE_OF, Model
from glassformer.nn.attention import Attention
from glassformer.nn.block import KeysValues
from glassformer.nn.dropout import Dropout
from glassformer.nn.linear import Linear, batch_invariant_linear
from glassformer.nn.masks import padding_mask


class RnnState:
    """Decoder state: cross-attention keys and values per sentence, LSTM state per hypothesis."""

    def __init__(self, memory: KeysValues, mask: Bool[Tensor, "batch 1 1 m"], hidden_state: list[Tensor]) -> None:
        self.memory, self.mask, self.hidden_state = memory, mask, hidden_state

    def select(self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " sentences"] | None = None) -> None:
        """Keep only these hypotheses, in this order, and only these sentences (None: all)."""
        self.hidden_state = [value[rows] for value in self.hidden_state]
        if sentences is not None:
            self.memory = self.memory[0][sentences], self.memory[1][sentences]
            self.mask = self.mask[sentences]


class Rnn(Model):
    """Bidirectional LSTM encoder and LSTM decoder with additive attention.

    At each step the input of the decoder is the embedding of the last token, concatenated with the previous attentional
    hidden state (input feeding). The new hidden state attends to the encoder output; this state and the resulting
    context vector are combined to predict the next token. The embeddings of both sides and the output projection share
    one matrix, as in the Transformer.

    Source: Bahdanau et al. 2014; Luong et al. 2015 for input feeding; Hochreiter & Schmidhuber 1997.
    """

    pad_to_multiple_of: ClassVar[int] = PAD_TO_MULTIPLE_OF
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

    def encode(self, src: Int[Tensor, "batch src"]) -> tuple[Float[Tensor, "batch src d_model"], list[Tensor]]:
        """Encoder output at every position, and the initial state of the decoder."""
        x = self.dropout(self.embedding(src) * self.config.d_model**0.5)
        lengths = (src != self.config.pad_id).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=src.size(1)
        )
        mean = memory.sum(1) / lengths[:, None].to(memory)
        initial = torch.tanh(self.init_proj(mean)).chunk(2 * self.config.n_layers, dim=-1)
        return self.dropout(memory), [*initial, torch.zeros_like(mean)]

    def lstm_step(
        self,
        ids: Int[Tensor, " rows"],
        hidden_state: list[Tensor],
        memory: KeysValues,
        mask: Bool[Tensor, "batch 1 1 m"],
    ) -> list[Tensor]:
        """One decoder step: the new LSTM states, and last the attentional hidden state that predicts the next token."""
        n = self.config.n_layers
        x = torch.cat([self.dropout(self.embedding(ids) * self.config.d_model**0.5), hidden_state[-1]], dim=-1)
        new_state = []
        for i, cell in enumerate(self.decoder):
            x, c = cell(x, (hidden_state[2 * i], hidden_state[2 * i + 1]))
            new_state += [x, c]
            x = self.dropout(x) if i + 1 < n else x
        queries = x.reshape(memory[0].size(0), -1, x.size(-1))  # hypotheses of a sentence are adjacent
        context = self.cross_attention.attend(queries, *memory, mask).reshape(x.shape)
        return [*new_state, self.dropout(torch.tanh(self.combine(torch.cat([x, context], dim=-1))))]

    def forward(
        self, src: Int[Tensor, "batch src"], tgt_in: Int[Tensor, "batch tgt"]
    ) -> Float[Tensor, "batch tgt d_model"]:
        """Decoder output at every target position, computed sequentially; `logits` projects it to the vocabulary."""
        memory, hidden_state = self.encode(src)
        keys_values, mask = self.cross_attention.keys_values(memory), padding_mask(src, self.config.pad_id)
        outputs = []
        for ids in tgt_in.unbind(1):
            hidden_state = self.lstm_step(ids, hidden_state, keys_values, mask)
            outputs.append(hidden_state[-1])
        return torch.stack(outputs, dim=1)

    @property
    def output_weight(self) -> Tensor:
        """Weight of the projection to the vocabulary."""
        return self.embedding.weight

    def logits(self, hidden: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        return batch_invariant_linear(hidden, self.output_weight)

    def start(self, src: Int[Tensor, "sentences src"], n_hypotheses: int = 1) -> tuple[RnnState, Tensor]:
        """Encode the sources and create the decoder state for `n_hypotheses` of each; the first input is `bos_id`."""
        memory, hidden_state = self.encode(src)
        state = RnnState(
            self.cross_attention.keys_values(memory),
            padding_mask(src, self.config.pad_id),
            [value.repeat_interleave(n_hypotheses, 0) for value in hidden_state],
        )
        return state, src.new_full((len(src) * n_hypotheses,), self.config.bos_id)

    def step(self, ids: Int[Tensor, " rows"], state: RnnState) -> Float[Tensor, "rows vocab"]:
        """Logits of the next token, given `ids`, the last token of each hypothesis. Updates the state."""
        state.hidden_state = self.lstm_step(ids, state.hidden_state, state.memory, state.mask)
        return self.logits(state.hidden_state[-1])
