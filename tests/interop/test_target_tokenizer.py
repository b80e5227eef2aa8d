"""Models whose target texts have a tokenizer of their own (Opus-MT): each use of a given target has its tokens."""

import json
from unittest.mock import MagicMock

import numpy as np
import pytest
import tokenizers
import torch

transformers = pytest.importorskip("transformers")

from glassformer.corpora.example import Example
from glassformer.corpora.memory import Match
from glassformer.corpora.terms import Glossary, Term
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError
from glassformer.inspection.inspect import inspect
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.interop.tokenizer import import_tokenizer
from glassformer.learning.translation import TranslationObjective
from glassformer.tasks import repair
from glassformer.tasks.alignment import align
from glassformer.tasks.continuations import continuations
from glassformer.tasks.registry import load
from glassformer.tasks.shortlist import learn_shortlist
from glassformer.tasks.terms import Terms
from glassformer.tokens.tokenizer import TARGET_TOKENIZER_FILE, Tokenizer
from tests.interop.test_tokenizer import marian, settings
from tests.interop.theirs import random_model

__all__ = ["marian"]

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

SOURCES, TARGETS = ["the cat sat", "a dog ran to the house"], ["the quick brown fox", "a lazy dog in the sun"]


def marian_folder(folder, config, n):
    """Write a model with random weights beside the tokenizers of a folder."""
    config = transformers.MarianConfig(
        **config, vocab_size=n, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=50,
        decoder_start_token_id=n - 1, activation_function="swish", scale_embedding=True,
    )  # fmt: skip
    random_model("MarianMTModel", config).save_pretrained(folder)
    settings(folder, tokenizer_class="MarianTokenizer")
    return folder


@pytest.fixture
def both(marian, tmp_path):
    """Our model, and the folder of theirs."""
    folder = marian_folder(*marian)
    import_folder(folder, tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    assert task.tokenizer.encode_batch(TARGETS) != task.tokenizer.targets.encode_batch(TARGETS)
    return task, folder


@pytest.fixture
def labels(both):
    """The tokens of TARGETS by transformers."""
    rows = transformers.AutoTokenizer.from_pretrained(both[1])(text_target=TARGETS)["input_ids"]
    return [row[:-1] for row in rows]


def test_scores_are_transformers(both, labels):
    task, folder = both
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for src, tgt, ids, found in zip(SOURCES, TARGETS, labels, task.score(SOURCES, TARGETS), strict=True):
        inputs = tokenizer(src, text_target=tgt, return_tensors="pt")
        with torch.no_grad():
            loss = model(**inputs).loss.item()
        assert len(found) == len(ids) + 1
        assert np.mean(found) == pytest.approx(-loss, rel=1e-4)


def test_training_has_these_tokens(both, labels):
    task, _ = both
    objective = TranslationObjective(task)
    rows, too_long = objective.encode([Example(src, tgt, "", 0) for src, tgt in zip(SOURCES, TARGETS, strict=True)])
    assert rows == list(zip(task.tokenizer.encode_batch(SOURCES), labels, strict=True))
    assert not too_long
    example = Example("a", TARGETS[1], "", 0)
    assert objective.needed_max_len(example) == len(labels[1]) + 1


def test_what_a_translation_begins_with_has_these_tokens(both, labels):
    task, _ = both
    ((best,),) = task.translate(SOURCES[:1], DecodeConfig(prefix=TARGETS[0]))
    assert list(best.ids[: len(labels[0])]) == labels[0]
    assert best.text.startswith(TARGETS[0])
    options = DecodeConfig(beam=3)
    found = task.engine(options).run(continuations(task, SOURCES[0], TARGETS[0], 3, options))
    assert found
    assert all(list(each.ids[: len(labels[0])]) == labels[0] for each in found)


def test_terms_are_written_in_these_tokens(both):
    task, _ = both
    glossary = Glossary([Term(("cat",), ("a lazy dog in the sun",))])
    options = DecodeConfig(max_length=8)
    ((found,),) = task.engine(options).run(task.decoding(SOURCES[:1], options, terms=Terms(glossary, None)))
    assert found.forced
    assert list(found.ids)[:-1] == task.tokenizer.targets.encode(found.text)


def test_similar_texts_are_repaired_in_these_tokens(both, labels, monkeypatch):
    task, _ = both
    monkeypatch.setattr(repair, "repaired", lambda *_: TARGETS[1])
    ((best,),) = task.translate(SOURCES[1:])
    match = Match(SOURCES[1], TARGETS[0], 0.9)
    (found,) = repair.from_similar(task, [(SOURCES[1], best, match)], DecodeConfig(), None)
    assert list(found.ids)[:-1] == labels[1]


def test_inspect_alignment_and_shortlist_have_these_tokens(both, labels):
    task, _ = both
    target = inspect(task, SOURCES[0], TARGETS[0]).sides["target"]
    assert target.ids[1:] == labels[0]
    assert [TARGETS[0][slice(*span)] for span in target.offsets[1:]][:1] == ["the"]
    task.source.contributions = MagicMock(wraps=task.source.contributions)
    align(task, SOURCES[:1], TARGETS[:1])
    (((_, aligned),),) = task.source.contributions.call_args.args
    assert aligned == labels[0]
    learned = learn_shortlist(task, [Example(*pair, "", 0) for pair in zip(SOURCES, TARGETS, strict=True)])
    assert {*labels[0], *labels[1]} <= {*learned.targets.tolist(), *learned.frequent.tolist()}


def test_a_folder_keeps_it_and_so_does_an_export(both, labels, tmp_path):
    task, _ = both
    ours, export = tmp_path / "ours", tmp_path / "export"
    export_folder(ours, export)
    vocabulary = json.loads((export / TARGET_TOKENIZER_FILE).read_text(encoding="utf-8"))
    assert tokenizers.Tokenizer.from_str(json.dumps(vocabulary)).encode(TARGETS[0]).ids == [*labels[0], 0]
    import_folder(export, tmp_path / "back")
    for folder in (ours, tmp_path / "back"):
        found = Tokenizer.from_folder(folder)
        assert found.encode_batch(SOURCES) == task.tokenizer.encode_batch(SOURCES)
        assert found.targets.encode_batch(TARGETS) == labels
        assert not found.target_warning


def test_words_begin_at_tokens_of_the_target_too(both):
    tokenizer = both[0].tokenizer
    names = (tokenizer.targets.backend.id_to_token(i) for i in range(tokenizer.vocab_size))
    begins = [name.removeprefix("\ue000").startswith("\u2581") for name in names]
    assert [tokenizer.starts_word(i) for i in range(tokenizer.vocab_size)] == begins


def test_another_vocabulary_is_refused(both, tmp_path):
    path = tmp_path / "ours" / TARGET_TOKENIZER_FILE
    parts = json.loads(path.read_text(encoding="utf-8"))
    parts["model"]["vocab"][30][0] += "x"
    path.write_text(json.dumps(parts), encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"{TARGET_TOKENIZER_FILE}: another vocabulary than that of tokenizer"):
        Tokenizer.from_folder(tmp_path / "ours")


def test_an_ensemble_needs_it_in_all_models(both, tmp_path):
    (both[1] / "target.spm").unlink()
    import_folder(both[1], tmp_path / "without")
    with pytest.raises(ConfigError, match="has another vocabulary than the first model"):
        both[0].with_members([load(tmp_path / "without", device="cpu")])


def test_one_file_for_both_sides_makes_one_tokenizer(marian):
    folder, config, _ = marian
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    found = import_tokenizer(folder, config, "encoder-decoder")
    assert found.targets is found
