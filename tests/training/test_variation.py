"""Examples that are varied anew at each use: how depends on the seed, the update and the example only."""

import numpy as np
import pytest

from glassformer.data.dataset import IDS, Dataset
from glassformer.learning.augmentation import CHANGES, Augmentation, codes, drawn
from glassformer.tokens.bpe_dropout import BpeDropout
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.training import micro_batches as micro_batches_module
from glassformer.training.micro_batches import MicroBatches, growth, make_sampler, split_by_length
from tests.training.test_packing import packs
from tests.training.test_trainer import N_PAIRS, trainer

__all__ = ["packs", "trainer"]

ALL = np.arange(N_PAIRS)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the other day, another brother showed the others here"] * 7, vocab_size=290)


@pytest.fixture
def varying(trainer):
    """A trainer whose examples get other segmentations."""
    trainer.objective.bpe_dropout = BpeDropout(trainer.objective.tokenizer, 0.3)
    return trainer


def rows(batches) -> list[tuple]:
    """Source and target of each example of padded batches, in an order that does not depend on the batches."""
    found = []
    for batch in batches:
        for src, tgt in zip(batch.src.tolist(), batch.tgt_out.tolist(), strict=True):
            found.append(tuple(tuple(i for i in side if i) for side in (src, tgt)))
    return sorted(row for row in found if row[1])


def test_an_update_has_the_same_rows_again_and_another_one_others(varying):
    first = rows(varying.micro_batches(ALL, 5))
    assert rows(varying.micro_batches(ALL, 5)) == first
    assert rows(varying.micro_batches(ALL, 6)) != first


def test_the_rows_have_the_texts_of_the_examples(varying):
    tokenizer = varying.objective.tokenizer
    texts = lambda found: sorted(tuple(map(tokenizer.decode, row)) for row in found)
    changed = rows(varying.micro_batches(ALL, 1))
    varying.objective.bpe_dropout = None
    plain = rows(varying.micro_batches(ALL, 1))
    assert changed != plain
    assert texts(changed) == texts(plain)


@pytest.mark.parametrize("max_tokens", [1, 40, 150])
def test_the_size_of_the_parts_changes_no_row(varying, max_tokens, monkeypatch):
    whole = rows(varying.micro_batches(ALL, 3))
    monkeypatch.setattr(varying.micro_batches, "max_tokens", max_tokens)
    assert rows(varying.micro_batches(ALL, 3)) == whole


def test_an_example_that_would_be_too_long_for_the_model_stays(varying):
    longest = max(len(side) for index in range(N_PAIRS) for side in varying.data.train[index])
    object.__setattr__(varying.model.config, "max_len", longest + 1)
    assert max(len(side) for row in rows(varying.micro_batches(ALL, 3)) for side in row) <= longest + 1


def test_packed_batches_keep_their_shape(varying, packs):
    varying.step.use_graphs()
    data = varying.data.train
    grown = growth(varying.objective, data, 0)
    assert 1.05 < grown < 3
    lengths = np.ceil(grown * data.lengths).astype(np.int64)
    sampler = make_sampler(varying.step, data, lengths, 120, 0, growth=grown)
    made = MicroBatches(varying.step, data, sampler, 10_000)
    plain = {indices.tobytes(): [b.n_targets for b in made(indices)] for indices in sampler.plan(0)}
    shapes, n_varied = set(), 0
    for step, indices in enumerate(list(sampler.plan(0)) * 5):
        for batch in made(indices, step):
            if batch.src_spans is not None:
                shapes.add(tuple(x.shape for x in batch.tensors().values()))
                n_varied += batch.n_targets != sum(plain[indices.tobytes()])
    assert len(shapes) == 1
    assert n_varied > 0


def test_padded_batches_of_graphs_keep_their_shapes(varying):
    varying.step.use_graphs()
    data = varying.data.train
    lengths = np.ceil(growth(varying.objective, data, 0) * data.lengths).astype(np.int64)
    sampler = make_sampler(varying.step, data, lengths, 150, 0)
    made = MicroBatches(varying.step, data, sampler, 10_000)
    for step, indices in enumerate(sampler.plan(0)):
        length = int(sampler.lengths[indices].max())
        assert all(batch.src.shape == (150 // length, length) for batch in made(indices, step))


def test_rows_of_different_lengths_are_two_micro_batches():
    short, long = [([1] * n, [1] * 4) for n in (3, 5, 4, 3)], [([1] * 20, [1] * 9)]
    parts = split_by_length([short[0], *long, *short[1:]])
    assert sorted(map(len, parts)) == [1, 4]
    assert [row for part in parts for row in part][-1] == long[0]
    assert len(split_by_length(short)) == 1
    assert len(split_by_length(long)) == 1


def test_examples_do_not_grow_without_variation(trainer):
    assert growth(trainer.objective, trainer.data.train, 0) == 1.0


def test_an_augmented_source_keeps_its_tag(trainer, tmp_path):
    objective = trainer.objective
    tag_id = objective.tokenizer.eos_id  # any special token
    objective.augmented_fraction = 0.3
    objective.tag_ids = {"a.en": tag_id}
    texts = [("one other day.", "another day."), ("the brother.", "others here.")] * 200
    augmentation = Augmentation(texts)
    objective.any_texts = lambda rng, tag: ("others", "the others")
    plain = [tuple(map(objective.tokenizer.encode, pair)) for pair in texts]
    tagged = [([tag_id, *src], tgt) for src, tgt in plain]
    objective.data = Dataset.write(tmp_path, plain + tagged, {"src": IDS, "tgt": IDS}, 300)
    generators = [np.random.default_rng(i) for i in range(len(texts))]
    found = objective.augmented(augmentation, tagged, generators)
    assert sum(row != before for row, before in zip(found, tagged, strict=True)) > 10
    assert all(src[0] == tag_id for src, _ in found)
    found = objective.augmented(augmentation, plain, generators)
    assert sum(row != before for row, before in zip(found, plain, strict=True)) > 10
    assert all(tag_id not in src for src, _ in found)


def test_a_change_that_makes_a_row_longer_is_made_to_a_shorter_one(trainer, tmp_path):
    objective = trainer.objective
    encode = objective.tokenizer.encode
    rows = [(encode(n * "other "), encode(n * "others ")) for n in range(1, 60)]
    objective.data, objective.augmented_fraction = Dataset.write(tmp_path, rows, {"src": IDS, "tgt": IDS}, 300), 1.0
    augmentation = Augmentation([("one", "another")])
    n_codes = 0
    for index, row in enumerate(rows * 20):
        (found,) = objective.augmented(augmentation, [row], [np.random.default_rng(index)])
        assert max(map(len, found)) <= max(map(len, row))
        if drawn(np.random.default_rng(index), 1.0) == list(CHANGES).index(codes) and found != row:
            n_codes += 1
            assert objective.texts(found)[0].count("other") < objective.texts(row)[0].count("other")
    assert n_codes > 50


def test_the_limit_of_padding_that_is_saved(monkeypatch):
    rows_of = [([1] * n, [1]) for n in (10, 10, 10, 12)]
    assert len(split_by_length(rows_of)) == 1
    monkeypatch.setattr(micro_batches_module, "MIN_SAVED", 0.05)
    assert len(split_by_length(rows_of)) == 2
