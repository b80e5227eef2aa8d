import gc
import json
import random
import threading

import numpy as np
import pytest
import torch

from glassformer.errors import CorpusError
from glassformer.learning.causal_lm import CausalLMObjective
from glassformer.learning.classification import ClassificationObjective
from glassformer.learning.masked_lm import MaskedLMObjective
from glassformer.learning.skip_gram import SkipGramObjective
from glassformer.learning.span_corruption import SpanCorruptionObjective
from glassformer.learning.translation import TranslationObjective
from glassformer.train_config import TrainConfig
from glassformer.training import encoding
from glassformer.training import scan as module
from glassformer.training.building import build
from glassformer.training.distributed import Processes
from glassformer.training.encoding import ahead, encode
from glassformer.training.options import resolve_options
from glassformer.training.scan import scan, text_hash


def prepared(folder, objective_type=TranslationObjective, log=lambda message: None, **options):
    """Prepare a corpus. Returns the task, the data, and the contents of all files of the folder `data`."""
    config = TrainConfig(out=folder, steps=1, preset="tiny", vocab_size=300, **options)
    corpus = scan(config, objective_type, log)
    resolved = resolve_options(config, objective_type, corpus, None)
    objective = build(resolved, objective_type, corpus, None, torch.device("cpu"), Processes())
    data = encode(config, objective, corpus, log)
    files = {path.name: path.read_bytes() for path in (folder / "data").rglob("*") if path.is_file()}
    return objective.task, data, files


@pytest.fixture
def pairs(tmp_path):
    """Pairs of which some occur several times, with blank and too long ones, in a TSV file."""
    generator = random.Random(5)
    words = ["red", "dog", "cat", "house", "sees", "the", "süß"]
    texts = [" ".join(generator.choices(words, k=generator.randint(1, 5))) for _ in range(997)]
    pairs = [(text, text.upper()) for text in texts]
    pairs[7], pairs[13] = ("", "x"), ("dog " * 300, "DOG")
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    return path, [pair for pair in pairs if all(pair)]


def test_the_prepared_data_is_the_token_ids_of_all_pairs_that_are_not_held_out(tmp_path, pairs):
    path, expected = pairs
    task, data, files = prepared(tmp_path / "run", src=[path])
    hashes = np.array([text_hash(src) for src, _ in expected], np.uint64)
    distinct = np.unique(hashes)
    is_held_out = hashes <= distinct[len(distinct) // 20 - 1]
    corpus = json.loads(files["corpus.json"])
    assert corpus["held_out"] == np.flatnonzero(is_held_out).tolist()
    assert corpus["n_examples"] == len(expected) - len(corpus["held_out"])
    assert [(e.src, e.tgt) for e in data.dev] == [pair for pair, out in zip(expected, is_held_out, strict=True) if out]
    training = [pair for pair, out in zip(expected, is_held_out, strict=True) if not out and len(pair[0]) < 1000]
    rows = [tuple(map(task.tokenizer.encode, pair)) for pair in training]
    assert [data.train[i] for i in range(len(data.train))] == rows


@pytest.mark.parametrize("n_together", [1, 7, 101])
def test_what_is_written_does_not_depend_on_how_many_examples_are_in_memory(tmp_path, monkeypatch, pairs, n_together):
    expected = prepared(tmp_path / "a", src=[pairs[0]])[2]
    monkeypatch.setattr(module, "HASHED_TOGETHER", n_together)
    monkeypatch.setattr(encoding, "ENCODED_TOGETHER", n_together)
    assert prepared(tmp_path / "b", src=[pairs[0]])[2] == expected


def test_labels_that_only_held_out_examples_have_are_not_labels_of_the_model(tmp_path):
    texts = [f"word{i} number {i}" for i in range(100)]
    held_out = {text for text in texts if text_hash(text) <= sorted(map(text_hash, texts))[4]}
    rows = [f"{'rare' if text in held_out else 'ab'[i % 2]}\t{text}\n" for i, text in enumerate(texts)]
    (tmp_path / "train.tsv").write_text("label\ttext\n" + "".join(rows), encoding="utf-8")
    with pytest.raises(CorpusError, match="no held-out example has a label"):
        prepared(tmp_path / "run", ClassificationObjective, src=[tmp_path / "train.tsv"], task="classification")


def test_the_preparation_leaves_the_garbage_collection_as_it_was(tmp_path, pairs):
    before = gc.get_threshold()
    prepared(tmp_path / "run", src=[pairs[0]])
    assert gc.get_threshold() == before


def test_items_come_in_order_and_are_computed_in_another_thread():
    threads = set()

    def items():
        for i in range(7):
            threads.add(threading.get_ident())
            yield i

    assert list(ahead(items())) == list(range(7))
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


def test_at_most_one_item_is_computed_ahead():
    computed = []
    items = ahead(computed.append(i) or i for i in range(9))
    assert [next(items), next(items)] == [0, 1]
    items.close()  # waits for the item that is being computed
    assert computed == [0, 1, 2]


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("line 2")

    found = []
    with pytest.raises(ValueError, match="line 2"):
        found.extend(ahead(items()))
    items = ahead(items())
    assert next(items) == 1
    with pytest.raises(ValueError, match="line 2"):
        next(items)


@pytest.mark.parametrize(
    ("objective_type", "n_counted"),
    [(MaskedLMObjective, 128 * 70 // 140), (SpanCorruptionObjective, 64), (SkipGramObjective, 64),
     (CausalLMObjective, 1), (TranslationObjective, 2)],
)  # fmt: skip
def test_the_default_vocabulary_of_text_for_pretraining_is_by_its_bytes(
    tmp_path, monkeypatch, objective_type, n_counted
):
    counted = []
    monkeypatch.setattr(module, "vocab_size_for", lambda n: counted.append(n) or 300)
    if objective_type is TranslationObjective:
        (tmp_path / "a.tsv").write_text("".join(f"{'ä' * 100}{i}\t{'x' * 100}\n" for i in range(3)), encoding="utf-8")
        files = {"src": (tmp_path / "a.tsv",), "tgt": ()}
    else:
        (tmp_path / "a.txt").write_text(("ä" * 34 + "x\n") * 128, encoding="utf-8")  # 70 bytes each
        files = {"src": (tmp_path / "a.txt",), "tgt": ()}
    config = TrainConfig(out=tmp_path / "out", steps=1, preset="tiny", **files)
    scan(config, objective_type, lambda message: None)
    assert counted == [n_counted]
