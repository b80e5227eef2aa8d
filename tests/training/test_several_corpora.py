"""Several corpora: how often the pairs of each file are used, tags, and the end of the training on one domain."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer.corpora.example import Example
from glassformer.data.sampler import BatchSampler, PackingSampler
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.learning.augmentation import CHANGES, Augmentation
from glassformer.learning.translation import TranslationObjective
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.translation import Translator
from glassformer.tokens.tags import tags_of
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training.encoding import IN_DOMAIN, resampled, write_train
from glassformer.training.options import merge_options
from glassformer.training.trainer import Trainer
from tests.training.test_trainer import N_PAIRS, tokenizer, trainer

__all__ = ["tokenizer", "trainer"]

FILES = ("a.en", "b.en")


def config(**options) -> TrainConfig:
    return TrainConfig(**{"src": FILES, "tgt": ("a.fr", "b.fr"), "out": "run"} | options)


@pytest.mark.parametrize(("weights", "expected"), [((1, 3), (10, 21)), ((0.5, 1), (5, 7)), ((2.5, 0.25), (25, 1))])
def test_the_pairs_of_each_file_are_used_as_often_as_its_weight_says(weights, expected):
    examples = [Example(f"s{n}", "t", path, n) for path, count in (("a.en", 10), ("b.en", 7)) for n in range(count)]
    logged = []
    used = list(resampled(lambda: iter(examples), TranslationObjective, config(weights=weights), logged.append))
    assert tuple(Counter(e.path for e in used).values()) == expected
    repetitions = Counter((e.path, e.src) for e in used)
    for path, weight in zip(FILES, weights, strict=True):  # evenly: no pair twice more often than another
        of_file = [repetitions[e.path, e.src] for e in examples if e.path == path]
        assert {int(weight), -int(-weight // 1)} >= set(of_file)
    assert f"b.en 7 x {weights[1]:.2f}" in logged[0]


@pytest.mark.parametrize("sampler_of", ["padded", "packed"])
def test_a_sampler_of_some_examples_has_each_of_them_once_in_a_pass(sampler_of):
    rng = np.random.default_rng(0)
    sides = rng.integers(2, 30, (200, 2))
    lengths = sides.max(1)
    whole = (
        BatchSampler(lengths, 120, 3) if sampler_of == "padded" else PackingSampler(sides, lengths, 120, 3, longest=25)
    )
    before = [batch.tolist() for batch in whole.batches]
    some = np.flatnonzero(rng.random(200) < 0.2)
    sampler = whole.only(some)
    for epoch in range(2):
        drawn = []
        while sampler.epochs_done < epoch + 1:
            drawn.append(next(sampler))
        assert sorted(np.concatenate(drawn)) == some.tolist()
    assert [batch.tolist() for batch in whole.batches] == before
    assert whole.epochs_done == 0


def test_the_end_of_a_training_has_the_text_of_the_domain_only(trainer, monkeypatch):
    own = np.array([2, 3, 5, 7, 11])
    data = SimpleNamespace(train=trainer.data.train, dev=trainer.data.dev, in_domain=own)
    options = trainer.config.model_copy(update={"steps": 20, "batch_tokens": 40})
    logged = []
    again = Trainer(trainer.objective, data, options, reporter=SimpleNamespace(log=logged.append))
    used = []
    monkeypatch.setattr(again, "save", lambda: None)
    for step in range(options.steps):
        again.progress.step, again.progress.fraction = step, step / options.steps
        used.append(again.next_batch())
    assert set(np.concatenate(used[:16])) == set(range(N_PAIRS))
    assert set(np.concatenate(used[16:])) == set(own)
    assert logged == ["From step 17 on: only the text of --in-domain."]
    assert again.epochs_done == pytest.approx(again.sampler.epochs_done + 4 / len(again.sampler.batches))


@pytest.fixture(scope="module")
def tagged():
    """An objective with tags for the second of two files, and its tokenizer."""
    options = config(tags=("none", "law"), in_domain=("b.en",), languages=("en", "fr"))
    vocabulary = Tokenizer.train(
        ["a b c"] * 7, vocab_size=270, extra_special_tokens=TranslationObjective.special_tokens(options)
    )
    sizes = TransformerConfig(
        vocab_size=vocabulary.vocab_size, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1,
        dropout=0, max_len=8,
    )  # fmt: skip
    objective = TranslationObjective(Translator.build(sizes, vocabulary))
    objective.configure(options)
    return objective, options


def test_sources_begin_with_the_tag_of_their_file(tagged):
    objective, _ = tagged
    (law,) = tags_of(objective.tokenizer).values()
    rows, _ = objective.encode([Example("a b", "c", "a.en", 1), Example("a b", "c", "b.en", 1)])
    assert rows[1][0] == [law, *rows[0][0]]
    assert law not in objective.tokenizer.encode("<tag:law> a")


def test_a_translation_with_a_tag_is_of_a_source_that_begins_with_it(tagged):
    objective, _ = tagged
    task, (law,) = objective.task, tags_of(objective.tokenizer).values()
    plain, with_tag = (
        next(task.decoding(["a b c"], task_options)) for task_options in (DecodeConfig(), DecodeConfig(tag="law"))
    )
    assert list(with_tag.ids[0]) == [law, *plain.ids[0]]
    parts = next(
        task.decoding(["a b c a b c a b c"], DecodeConfig(tag="law"))
    ).ids  # in parts of at most the maximum length
    assert len(parts) > 1
    assert all(part[0] == law and len(part) <= task.config.max_len for part in parts)


def test_an_unknown_tag_is_an_error_that_names_the_known_ones(tagged):
    objective, _ = tagged
    with pytest.raises(ConfigError, match=r"tag 'news': the model was not trained with it .*\n  Its tags: law"):
        objective.task.translate(["a"], tag="news")
    plain = Translator.build(objective.task.config, Tokenizer.train(["a b c"] * 7, vocab_size=271))
    with pytest.raises(ConfigError, match="It has none; without a tag"):
        plain.translate(["a"], tag="law")


def test_the_rows_of_the_domain_are_found_among_those_that_fit(tagged, tmp_path, monkeypatch):
    objective, options = tagged
    long = " ".join("a b c" for _ in range(9))
    examples = [
        *(Example("a b", "c", "a.en", n) for n in range(30)), Example(long, "c", "a.en", 30),
        Example(long, "c", "b.en", 0), *(Example("a c", "b", "b.en", n) for n in range(3)),
    ]  # fmt: skip
    monkeypatch.setattr("glassformer.training.encoding.read_corpus", lambda *_: iter(examples))
    corpus = SimpleNamespace(n_examples=len(examples), held_out=[])
    write_train(options, objective, corpus, tmp_path, lambda _: None)
    assert np.load(tmp_path / IN_DOMAIN).tolist() == [30, 31, 32]


def test_own_files_are_compared_by_position_when_a_run_is_resumed(tmp_path):
    first = config(in_domain=("b.en",))
    moved = config(src=("x/a.en", "x/b.en"), in_domain=("x/b.en",))
    assert merge_options(first, moved).in_domain == moved.in_domain
    for other in (config(), config(in_domain=("a.en",))):
        with pytest.raises(ConfigError, match="in_domain: "):
            merge_options(first, other)


def test_pairs_are_not_joined_with_pairs_of_another_tag(tagged):
    objective, _ = tagged
    (law,) = tags_of(objective.tokenizer).values()
    plain = objective.tokenizer.encode("a")
    objective.data = [([law, *plain], plain)]
    rng = np.random.default_rng(0)
    assert objective.any_texts(rng, [law]) == ("a", "a")
    assert objective.any_texts(rng, []) is None
    augmentation = Augmentation([("b", "b")])
    assert augmentation(len(CHANGES), ("b", "b"), lambda: objective.any_texts(rng, []), rng) == ("b", "b")


def test_tags_that_the_model_to_start_from_does_not_have(tagged):
    objective, options = tagged
    with pytest.raises(ConfigError, match="--tags: news: the model of --init-from has law"):
        TranslationObjective(objective.task).configure(options.model_copy(update={"tags": ("none", "news")}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (1,)}, "weights: 1 for 2 source files"),
        ({"weights": (1, 0)}, "weights: 0: a weight is above 0"),
        ({"weights": (20_000, 1)}, "weights: 20000: a weight is above 0 and at most 10,000"),
        ({"tags": ("a",)}, "tags: 1 for 2 source files"),
        ({"tags": ("none", "a b")}, "tags: a b: a name has letters"),
        ({"tags": ("a", "b")}, "one file must have none"),
        ({"in_domain": ("c.en",)}, "in_domain: c.en: not a source file"),
        ({"in_domain": FILES}, "in_domain: all source files"),
        ({"tags": ("none", "none")}, "tags: no file has one"),
        ({"src": ("a.en", "a.en"), "weights": (1, 2)}, "a source file is given twice"),
    ],
)
def test_options_of_files_that_do_not_fit_the_files(options, message):
    with pytest.raises(ValueError, match=message):
        config(**options)
