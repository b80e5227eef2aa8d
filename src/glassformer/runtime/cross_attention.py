"""What each source token contributes to each target token through cross-attention, without torch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from glassformer.generate.scores import softmax
from glassformer.kernels.program import Instruction, Kind, Place
from glassformer.runtime.graph import Attend, Floats, Linear
from glassformer.runtime.program import Program

if TYPE_CHECKING:
    from glassformer.runtime.model import RuntimeModel


class CrossAttention:
    """The cross-attention of a model, as programs that keep the queries."""

    def __init__(self, model: "RuntimeModel") -> None:
        self.model = model
        step = model.graph.programs["step"]
        self.attentions = [x for x in step if isinstance(x, Attend) and x.side == "source"]
        tables = model.tables
        projections = [next(y for y in step if isinstance(y, Linear) and y.x is x) for x in self.attentions]
        self.projections = [tables.dense(projection.weight) for projection in projections]
        """Weight of the output projection of each layer: [d_model, heads * d_head]."""
        last = step[-1]
        assert isinstance(last, Linear)
        embeddings = tables.dense(last.weight)
        self.embeddings: Floats = embeddings - embeddings.mean(0, keepdims=True)
        """Output embedding of each token minus the mean of all tokens, which changes no probability."""
        self.program, self.buffers = with_queries(model.decode, model.n_layers)

    def contributions(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Floats]:
        """What each source token adds to the logit of each target token, the mean over layers: [target, source]. Not
        counted are later layers and normalization. Negative sums are 0.

        Args:
            pairs: token ids of source and target, without end-of-sentence tokens, at most of the maximum length.
        """
        c, results = self.model.config, []
        sources = [[*source, c.eos_id] for source, _ in pairs]
        inputs = [[c.bos_id, *target] for _, target in pairs]
        for part, batch in self.model.batches_of(inputs, sources, range(len(pairs))):
            queries = self.program.run_for(batch, self.model.caches, self.buffers)
            first = 0
            for source, target in pairs[part]:
                rows = slice(first, first + len(target))
                slots = batch.lists[1][batch.begins[1][first] :][: len(source) + 1]
                layers = range(len(queries))
                of_layers = [self.of_layer(i, queries[i][rows], slots, self.embeddings[list(target)]) for i in layers]
                results.append(np.stack(of_layers).mean(0)[:, : len(source)])
                first += len(target) + 1
        return results

    def of_layer(self, layer: int, queries: Floats, slots: np.ndarray, outputs: Floats) -> Floats:
        """The contributions in a layer: the sum over heads of weight_ij * (W_O v_j) . output embedding_i.

        Args:
            queries: those of the target tokens.
            slots: slots of the source tokens.
            outputs: output embeddings of the target tokens.
        """
        x = self.attentions[layer]
        cache = self.model.caches[self.model.n_layers + x.cache]
        width, group = x.n_kv_heads * x.d_head, x.n_heads // x.n_kv_heads
        keys, values = (
            half[slots, :width].astype(np.float32).reshape(len(slots), x.n_kv_heads, x.d_head).repeat(group, axis=1)
            for half in cache
        )
        heads = (len(queries), x.n_heads, x.d_head)
        scores = np.einsum("thd,shd->hts", queries.reshape(heads) * np.float32(x.scale), keys)
        readout = (outputs @ self.projections[layer]).reshape(heads)
        summed: Floats = (softmax(scores) * np.einsum("thd,shd->hts", readout, values)).sum(0)
        return np.maximum(summed, 0)


def with_queries(program: Program, n_layers: int) -> tuple[Program, list[int]]:
    """A program that also copies the queries of cross-attention, without its last operation, the output layer; and the
    buffers of the copies.

    Args:
        n_layers: number of caches of the own sequence, which come before those of the source.
    """
    instructions: list[Instruction] = []
    widths, buffers = list(program.lowered.widths), []
    for instruction in program.instructions[:-1]:
        if instruction.kind == Kind.ATTEND and instruction.cache >= n_layers:
            buffers.append(len(widths))
            widths.append(instruction.n)
            copy = Instruction(Kind.SCALE, Place(buffers[-1]), instruction.a, n=instruction.n, number=1.0)
            instructions.append(copy)
        instructions.append(instruction)
    return program.changed(instructions, widths), buffers
