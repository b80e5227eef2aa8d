"""A small Transformer learns what its attention must be whole for: to copy, and to reverse."""

import random

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from glassformer.data.pairs import make_batch
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from glassformer.models.decoding import decodable
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.nn.ops.loss import linear_cross_entropy
from glassformer.training.schedule import learning_rate
from tests.generate.sources import unpadded

PAD, BOS, EOS = SPECIAL = 0, 1, 2
SYMBOLS = range(3, 14)
N_UPDATES, BATCH, N_UNSEEN = 450, 32, 101
TASKS = {"copy": lambda ids: ids, "reverse": lambda ids: ids[::-1]}


def sequences(n: int, rng: random.Random) -> list[list[int]]:
    return [rng.choices(SYMBOLS, k=rng.randint(5, 7)) for _ in range(n)]


def trained(task, rng: random.Random) -> tuple[Transformer, set[tuple[int, ...]]]:
    """The model after N_UPDATES fresh batches, and what it has seen."""
    model = Transformer(
        TransformerConfig(
            vocab_size=len(SPECIAL) + len(SYMBOLS), d_model=64, n_heads=4, d_ff=128, n_encoder_layers=1,
            n_decoder_layers=1, dropout=0, pre_norm=True, max_len=16,
        )
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    seen = set()
    for step in range(N_UPDATES):
        rows = sequences(BATCH, rng)
        seen.update(map(tuple, rows))
        batch = make_batch([(ids, task(ids)) for ids in rows], pad_id=PAD, bos_id=BOS, eos_id=EOS)
        words = batch.tgt_out != PAD
        with sdpa_kernel(SDPBackend.MATH):  # twice as fast for short sequences, as in training
            hidden = model(batch.src, batch.tgt_in)
        loss = linear_cross_entropy(hidden[words], model.embedding.weight, batch.tgt_out[words])
        optimizer.zero_grad()
        (loss / batch.n_targets).backward()
        rate = learning_rate(step / N_UPDATES, (step + 1) / N_UPDATES, peak=5e-3, warmup_ratio=0.1, decay_ratio=0.3)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    return model.eval(), seen


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_unseen_sequences_come_out_without_a_mistake(name):
    task, rng = TASKS[name], random.Random(7)
    model, seen = trained(task, rng)
    unseen = [ids for ids in sequences(2 * N_UNSEEN, rng) if tuple(ids) not in seen][:N_UNSEEN]
    assert len(unseen) == N_UNSEEN
    src = make_batch([(ids, []) for ids in unseen], pad_id=PAD, bos_id=BOS, eos_id=EOS).src
    found = beam_search(
        decodable(model), unpadded(src, PAD), [12] * N_UNSEEN, eos_id=EOS, rules=search_rules((PAD, BOS)), beam=1
    )
    assert [best.ids for (best,) in found] == [[*task(ids), EOS] for ids in unseen]
