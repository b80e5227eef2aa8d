"""Glossaries, protected spans and word alignment in translations by untrained models."""

import itertools
import math

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.checkpoint import save_folder
from glassformer.corpora.repetition import repeats
from glassformer.corpora.terms import Glossary, Term, unmet
from glassformer.decode_config import DecodeConfig
from glassformer.documents.words import unit_spans
from glassformer.errors import CheckpointError, ConfigError
from glassformer.inspection.record import record_activations
from glassformer.learning.registry import objective_of
from glassformer.models.rnn import Rnn, RnnConfig
from glassformer.models.t5 import T5, T5Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.alignment import (
    JUMP,
    MIN_EMISSION,
    MIN_JUMP,
    N_NORMALIZATIONS,
    align,
    posteriors,
    word_weights,
    words_of_tokens,
)
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.terms import edits
from glassformer.tasks.translated import record_of
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.runtime.models import gpt2

LINES = [
    "the black cat sat on a couch",
    "a dog slept",
    "the Cat and the dog",
    "nothing here",
    "",
    "a cat. A dog! A cat.",
]
TERMS = "cat\tKatze|Kater\ndog\tHund\ncouch\tneues Sofa\n"


def translator(kind="bpe", family="transformer", texts=(*LINES, "Katze Kater Hund neues Sofa")):
    torch.manual_seed(1)
    texts = [*texts] * 5
    tokenizer = Tokenizer.train(texts, kind=kind, vocab_size=300)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 24, "n_heads": 2, "d_ff": 33, "max_len": 40}
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    if family == "rnn":
        model = Rnn(RnnConfig(vocab_size=tokenizer.vocab_size, d_model=24, max_len=40, **ids))
    else:
        layers = {"n_encoder_layers": 2, "n_decoder_layers": 2, **ids}
        is_t5 = family == "t5"
        model = T5(T5Config(**sizes, **layers)) if is_t5 else Transformer(TransformerConfig(**sizes, **layers))
    return Translator(model, tokenizer)


@pytest.fixture
def glossary(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text(TERMS, encoding="utf-8")
    return path


@pytest.mark.parametrize("family", ["transformer", "t5", "rnn"])
@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"nbest": 3}, {"temperature": 1.0, "beam": 1}])
def test_every_term_is_in_every_translation(glossary, family, options):
    task = translator(family=family)
    results = task.translate(LINES, DecodeConfig(glossary=glossary, max_length=9, **options))
    terms = Glossary.read(glossary)
    for line, nbest in zip(LINES, results, strict=True):
        for translation in nbest:
            assert unmet(list(terms.find(line)), translation.text) == []
            assert translation.missing == ()
            assert len(translation.tokens) == len(translation.log_probs)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_terms_with_each_tokenizer(glossary, kind, precision):
    options = DecodeConfig(glossary=glossary, max_length=12, precision=precision)
    for line, output in zip(LINES, translator(kind).run(LINES, options), strict=True):
        assert unmet(list(Glossary.read(glossary).find(line)), output) == []


def test_a_folder_in_int8_has_terms_and_alignment(glossary, tmp_path):
    original = translator()
    original.save(tmp_path / "int8", precision="int8")
    task = gf.load(tmp_path / "int8")
    options = DecodeConfig(glossary=glossary, max_length=9, align=True, precision="int8")
    found = [nbest[0] for nbest in task.translate(LINES, options)]
    for line, best in zip(LINES, found, strict=True):
        assert unmet(list(Glossary.read(glossary).find(line)), best.text) == []
    texts = [best.text for best in found]
    rounded, exact = (np.concatenate([w.ravel() for w in word_weights(t, LINES, texts)]) for t in (task, original))
    assert np.abs(rounded - exact).max() < 0.1


def test_an_unreachable_term_is_reported_and_the_line_is_answered(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text(f"dog\t{' '.join(['Hund'] * 60)}\n")
    task, warnings = translator(), []
    task.save(tmp_path / "int8", precision="int8")
    options = DecodeConfig(glossary=path, max_length=5)
    results = gf.load(tmp_path / "int8").translate(LINES[:2], options, warn=lambda i, what: warnings.append((i, what)))
    assert [nbest[0].missing for nbest in results] == [(), (" ".join(["Hund"] * 60),)]
    assert warnings == [(1, f"not in the translation: {' '.join(['Hund'] * 60)}")]
    assert record_of(results[1])["missing"] == [" ".join(["Hund"] * 60)]
    assert "missing" not in record_of(results[0])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_edits_do_not_exceed_the_maximum_length(tmp_path, precision):
    path = tmp_path / "terms.tsv"
    path.write_text(f"dog\t{' '.join(['Hund'] * 60)}\n")
    (found,) = translator().translate(["a dog"], DecodeConfig(glossary=path, precision=precision))[0]
    assert len(found.ids) == len(found.log_probs) <= 40
    assert found.missing


@pytest.mark.parametrize("options", [{}, {"glossary": "terms"}, {"protect": ("all",)}, {"align": True}])
def test_results_do_not_depend_on_the_batch(glossary, options):
    task = translator()
    texts = [*LINES, "the <b>black cat</b> sat {x} on a couch"]
    decoding = DecodeConfig(**options | ({"glossary": glossary} if "glossary" in options else {}), max_length=9)
    together = task.translate(texts, decoding)
    for text, result in zip(texts, together, strict=True):
        assert task.translate([text], decoding) == [result]


@pytest.mark.filterwarnings("ignore:at least one text")
def test_lines_without_terms_are_as_without_a_glossary(glossary):
    task, lines = translator(), ["nothing here", "sat on"]
    assert task.run(lines, DecodeConfig(glossary=glossary, protect=("all",))) == task.run(lines)


@pytest.mark.parametrize("kind", ["bpe", "word", "char"])
def test_protected_spans_are_in_the_translation_byte_for_byte(kind):
    line = "the {count} cat <b>sat</b> on https://a.org/x?y=1 and 5 km &amp; {count}"
    output = translator(kind).run([line], DecodeConfig(protect=("all",), max_length=9))[0]
    for span in ("{count}", "<b>", "</b>", "https://a.org/x?y=1", "5 km", "&amp;"):
        assert output.count(span) == line.count(span)
    assert translator(kind).run(["{a} {b}"], DecodeConfig(protect=("all",))) == ["{a} {b}"]


def test_languages_are_stored_with_the_model(tmp_path):
    task = translator()
    assert reloaded(task, tmp_path / "without").languages == ()
    task.languages = ("en", "de")
    assert reloaded(task, tmp_path / "with").languages == ("en", "de")
    config = tmp_path / "with" / "config.json"
    contents = dict(task.contents())
    save_folder(tmp_path / "damaged", contents | {"config.json": config.read_text().replace('"de"', "3")})
    with pytest.raises(CheckpointError, match="languages"):
        gf.load(tmp_path / "damaged")


def reloaded(task, folder):
    """The task after saving and loading."""
    task.save(folder)
    return gf.load(folder)


def test_language_models_have_no_glossary(glossary):
    task = LanguageModel(gpt2(), Tokenizer.train(LINES * 5, vocab_size=300))
    with pytest.raises(ConfigError, match="causal-lm: glossary: only for translation"):
        task.run(LINES, DecodeConfig(glossary=glossary))


@pytest.mark.parametrize("family", ["transformer", "t5", "rnn"])
def test_weights_of_words_are_what_tokens_add_to_the_logit(family):
    task = translator(family=family)
    source, target = "the black couch", "neues Katzensofa, Hund"
    (weights,) = word_weights(task, [source], [target])
    (src, src_words), (tgt, tgt_words) = (
        words_of_tokens(text, task.tokenizer, unit_spans(text)) for text in (source, target)
    )
    batch = objective_of(task).batch([(src, tgt)])
    with torch.no_grad(), record_activations(task.model) as cache:
        task.model(batch.src, batch.tgt_in)
        memory = None if family == "rnn" else task.model.encode(batch.src)[0]
    names = [name for name in cache if name.endswith("cross_attention.weights")]
    if family == "rnn":
        of_tokens = torch.cat(cache.calls(names[0]), 2)[0].mean(0)[: len(tgt), : len(src)]
    else:
        embeddings = task.model.output_weight - task.model.output_weight.mean(0)
        of_tokens = torch.zeros(len(tgt), len(src))
        for name in names:
            attention = task.model.get_submodule(name.removesuffix(".weights"))
            bias = 0 if attention.v_proj.bias is None else attention.v_proj.bias
            for t, s in itertools.product(range(len(tgt)), range(len(src))):
                values = (attention.v_proj.weight @ memory[s] + bias).view(attention.n_heads, -1)
                added = attention.out_proj.weight @ (values * cache[name][0, :, t, s, None]).flatten()
                of_tokens[t, s] += (added @ embeddings[tgt[t]]).detach().clamp(min=0) / len(names)
    expected = torch.zeros(3, 3)
    for t in range(3):
        for s in range(3):
            rows = [i for i, w in enumerate(tgt_words) if t in w]
            columns = [i for i, w in enumerate(src_words) if s in w]
            expected[t, s] = of_tokens[rows][:, columns].sum() / len(rows)
    for _ in range(N_NORMALIZATIONS):
        expected = torch.stack([column / column.sum() for column in expected.T]).T
        expected = torch.stack([row / row.sum() for row in expected])
    torch.testing.assert_close(torch.from_numpy(weights), expected)


def test_posteriors_are_sums_over_all_alignments():
    weights = np.random.default_rng(0).dirichlet([1] * 4, 5)
    expected = np.zeros_like(weights)
    for path in itertools.product(range(4), repeat=5):
        p = math.prod((weights[t, s] + MIN_EMISSION) ** 2 for t, s in enumerate(path))
        for i, j in itertools.pairwise(path):
            p *= (JUMP ** abs(j - i - 1) + MIN_JUMP) / sum(JUMP ** abs(k - i - 1) + MIN_JUMP for k in range(4))
        for t, s in enumerate(path):
            expected[t, s] += p
    found = posteriors(weights)
    np.testing.assert_allclose(
        found / found.sum(1, keepdims=True), expected / expected.sum(1, keepdims=True), rtol=1e-10
    )


def test_what_is_beyond_the_maximum_length_is_not_aligned():
    task = translator()
    long = " ".join(["Katze"] * (2 * task.config.max_len))
    (pairs,) = align(task, ["the cat"], [long])
    assert 0 < len(pairs) < task.config.max_len
    assert [t for _, t in pairs] == list(range(len(pairs)))


def test_alignment_does_not_depend_on_the_neighbors():
    task = translator()
    sources, targets = LINES[:4], ["Katze", "ein Hund. Und", "neues Sofa Sofa Sofa", "x"]
    together = align(task, sources, targets)
    assert together == [align(task, [s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    assert align(task, [""], ["a"]) == [[]]
    assert align(task, ["a"], [""]) == [[]]


def test_edits_keep_the_punctuation_of_the_words_that_they_replace():
    (required,) = Glossary([Term(("truck",), ("Lastwagen",))]).find("truck")
    (other,) = Glossary([Term(("truck",), ("卡车",))]).find("truck")
    assert {"这只卡车睡了。", "这只卡车了。", "这卡车睡了。", "卡车睡了。"} <= {
        *edits("这只猫睡了。", other, 2, is_translation=True)
    }
    assert "这只猫睡卡车。" in edits("这只猫睡了。", other, 4)
    assert "“卡车”在" in edits("“猫”在", other, 0)
    assert "卡车这只猫" in edits("这只猫", other, 0)
    assert "这只猫卡车" in edits("这只猫", other, 2)
    assert "a 卡车b" in edits("a b", other, 1)
    assert "这 Lastwagen b" in edits("这 b", required, 1)
    assert set(edits("auf (einen Lkw).", required, 2)) == {
        "auf (einen Lastwagen Lkw).", "auf (einen Lkw). Lastwagen", "auf (einen Lastwagen).", "auf (Lastwagen).",
    }  # fmt: skip


def test_a_translation_that_repeats_itself_is_decoded_again():
    task = translator()
    texts = ["the black cat", "the the the the dog", "a dog"]
    results = task.translate(texts)
    first = task.translate(texts, DecodeConfig(no_repeat_ngram_size=0))
    for text, (found,), (before,) in zip(texts, results, first, strict=True):
        assert found.repeated == (repeats(before.text) and not repeats(text))
        assert found == before or not repeats(found.text)
    assert any(nbest[0].repeated for nbest in results)
    assert not results[1][0].repeated


def test_translations_begin_with_the_prefix():
    task = translator()
    for options in ({}, {"beam": 1}, {"temperature": 1.0, "beam": 1}, {"precision": "int8"}):
        for nbest in task.translate(LINES[:3], DecodeConfig(prefix="neues Sofa", max_length=4, **options)):
            assert nbest[0].text.startswith("neues Sofa")
            assert nbest[0].log_probs[0] == 0
