"""Confidence: logistic regression recovers known probabilities; it is stored, printed and used."""

import io
import json
from functools import partial

import numpy as np
import pytest

import glassformer as gf
from glassformer.checkpoint import add_file
from glassformer.cli.calibrate import calibrate
from glassformer.cli.lines import line_of, run_lines, translate_lines
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.manifest import verify
from glassformer.tasks.classification import Classifier
from glassformer.tasks.confidence import (
    FILE,
    MAX_DECODED,
    MIN_WORDS,
    N_FEATURES,
    Confidence,
    expected_calibration_error,
    fit_confidence,
    right_words,
    word_features,
    words_of,
)
from glassformer.tasks.translated import Translation, record_of
from glassformer.tokens.tokenizer import Tokenizer
from tests.tasks.test_encoder_tasks import build as build_encoder
from tests.tasks.test_terms import LINES, translator


def known(n=20_000, seed=0):
    """Features, probabilities that are a logistic function of them, and outcomes."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, N_FEATURES)) * 3 + 1
    p = 1 / (1 + np.exp(-(features @ np.linspace(-0.4, 0.4, N_FEATURES) + 0.3)))
    return features, p, rng.random(n) < p


def test_logistic_regression_recovers_the_probabilities():
    features, p, is_right = known()
    found = Confidence.fit(features, is_right).probabilities(features)
    assert np.abs(found - p).max() < 0.08
    assert expected_calibration_error(found, is_right) < 0.015


def test_expected_calibration_error_by_hand():
    assert expected_calibration_error([0.9, 0.9, 0.1, 0.1], [True, False, False, False]) == pytest.approx(
        (0.8 + 0.2) / 4
    )
    assert expected_calibration_error([1.0], [True]) == 0


@pytest.mark.parametrize("outcomes", [[True, False] * 99, [True] * 300, [False] * 300])
def test_too_few_words_or_outcomes_are_an_error(outcomes):
    with pytest.raises(UserError, match="confidence cannot be fitted"):
        Confidence.fit(np.ones((len(outcomes), N_FEATURES)), outcomes)


def test_right_words():
    assert right_words(["Ein", "Hund.", "Hund", "die"], "ein hund, Katze") == [True, True, False, False]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
def test_words_of_tokens_are_those_of_the_text(kind):
    tokenizer = Tokenizer.train(LINES * 5, kind=kind, vocab_size=300)
    for line in LINES:
        ids = [*tokenizer.encode(line), tokenizer.eos_id]
        words, owners = words_of(ids, tokenizer)
        assert words == tokenizer.decode(ids).split()
        assert owners == sorted(owners)
        assert set(owners) - {-1} == set(range(len(words)))
        assert word_features(words, [-0.5] * len(ids), owners).shape == (len(words), N_FEATURES)


@pytest.fixture
def with_confidence(tmp_path):
    """A folder with confidence, and its task."""
    task = translator()
    features, _, is_right = known(500)
    task.confidence = Confidence.fit(features, is_right)
    task.save(tmp_path / "model")
    return tmp_path / "model", task


def test_confidence_is_stored_and_does_not_depend_on_the_batch(with_confidence, tmp_path):
    folder, task = with_confidence
    loaded = gf.load(folder)
    assert loaded.confidence == task.confidence
    options = DecodeConfig(confidence=True, max_length=9)
    together = loaded.translate(LINES, options)
    for line, nbest in zip(LINES, together, strict=True):
        assert loaded.translate([line], options) == [nbest]
        assert [word for word, _ in nbest[0].words] == nbest[0].text.split()
        assert all(0 <= p <= 1 for _, p in nbest[0].words)
        record = record_of(nbest)
        assert record["confidence"] == nbest[0].confidence
        json.dumps(record)
    loaded.save(tmp_path / "int8", precision="int8")
    assert gf.load(tmp_path / "int8").confidence == task.confidence
    assert "confidence" not in record_of(loaded.translate(LINES[:1])[0])


def test_less_confident_lines_are_not_translated(with_confidence):
    _, task = with_confidence
    options = DecodeConfig(confidence=True, max_length=9)
    results = task.translate(LINES, options)
    limit = sorted(nbest[0].confidence for nbest in results)[2]
    warned = []
    options = options.model_copy(update={"min_confidence": limit, "align": True})
    found = task.translate(LINES, options, warn=lambda index, message: warned.append((index, message)))
    for line, (before,), (after,) in zip(LINES, results, found, strict=True):
        assert after.is_untranslated == (before.confidence < limit)
        assert after.text == (line if after.is_untranslated else before.text)
        assert not after.is_untranslated or after.alignment == ()
    untranslated = [i for i, nbest in enumerate(found) if nbest[0].is_untranslated]
    assert len(untranslated) == 2
    assert [i for i, message in warned if message.startswith("not translated: confidence ")] == untranslated


def test_a_minimum_confidence_alone_does_not_print_the_confidence(with_confidence, monkeypatch):
    folder, task = with_confidence
    monkeypatch.setattr("glassformer.cli.standard_input.read_lines", lambda _: iter(LINES))
    translate = partial(translate_lines, folder, json=False, quiet=True, device="cpu", threads=None)
    options = DecodeConfig(min_confidence=0, max_length=9)
    expected = [nbest[0] for nbest in task.translate(LINES, options)]
    translate(options, without := io.StringIO())
    translate(options.model_copy(update={"confidence": True}), having := io.StringIO())
    pairs = list(zip(LINES, expected, strict=True))
    assert without.getvalue() == "".join(best.text + "\n" for _, best in pairs)
    assert having.getvalue() == "".join(
        (f"{best.text} ||| {best.confidence:.2f}" if line.strip() else line) + "\n" for line, best in pairs
    )


def test_an_empty_translation_of_a_text_has_no_confidence():
    assert Translation("a dog", "", -0.1, ["</s>"], [-0.1], words=()).confidence == 0
    assert Translation("", "", 0, [], [], words=()).confidence == 1


def test_a_blank_line_stays_blank_with_alignment_and_confidence(with_confidence):
    _, task = with_confidence
    results = task.translate([*LINES, "  "], DecodeConfig(confidence=True, align=True, max_length=9))
    for line, (translation,) in zip([*LINES, "  "], results, strict=True):
        printed = line_of(translation, confidence=True)
        assert printed.split(" ||| ")[0].strip() == translation.text.strip()
        assert printed.count("|||") == (2 if line.strip() else 0)


def test_options_that_a_task_does_not_have_are_refused(tmp_path):
    build_encoder(Classifier, ["a", "b"]).save(tmp_path / "m")
    generating = "only for models that generate text"
    rows = [("align", True, "only for translation"), ("min_confidence", 0.5, "only for translation"),
            ("beam", 5, generating), ("top_k", 5, generating), ("batch_tokens", 5, generating),
            ("stop", ("a",), "only for language models")]  # fmt: skip
    for name, value, message in rows:
        options = {name: value}
        with pytest.raises(ConfigError, match=f"classification: {name}: {message}"):
            run_lines(tmp_path / "m", DecodeConfig(**options), json=False, quiet=True, device="cpu", threads=None)


def test_translators_have_no_stop_strings():
    with pytest.raises(ConfigError, match="translation: stop: only for language models"):
        translator().run(LINES, DecodeConfig(stop=("a",)))


@pytest.mark.filterwarnings("ignore:at least one text")
def test_a_folder_without_confidence_says_how_to_add_it(tmp_path, capsys):
    translator().save(tmp_path / "model")
    for options in ({"confidence": True}, {"min_confidence": 0.5}):
        with pytest.raises(ConfigError, match="glassformer calibrate"):
            gf.load(tmp_path / "model").run(LINES, DecodeConfig(**options))
    src, ref = tmp_path / "src", tmp_path / "ref"
    task, lines = gf.load(tmp_path / "model"), ["the black cat sat on a couch", "a dog", "the cat"] * 70
    src.write_text("\n".join(lines))
    outputs = task.run(lines)
    ref.write_text("\n".join([outputs[0], "x y z", outputs[2]] * 70))
    calibrate(tmp_path / "model", src=src, ref=ref, device="cpu")
    assert "expected calibration error" in capsys.readouterr().out.lower()
    assert gf.load(tmp_path / "model").run(LINES, DecodeConfig(confidence=True))
    expected, _ = fit_confidence(task, src.read_text().split("\n"), ref.read_text().split("\n"))
    assert gf.load(tmp_path / "model").confidence == expected
    src.write_text(f"{src.read_text()}\na dog\n\n")
    ref.write_text(f"{ref.read_text()}\n\n\n")
    calibrate(tmp_path / "model", src=src, ref=ref, device="cpu")
    assert "2 lines that are blank on one side or both were left out (first: " in capsys.readouterr().err
    assert gf.load(tmp_path / "model").confidence == expected
    src.write_text("a\n")
    ref.write_text("b\n")
    with pytest.raises(UserError, match="Give more lines"):
        calibrate(tmp_path / "model", src=src, ref=ref, device="cpu")


def test_evaluation_reports_the_calibration_error(with_confidence):
    _, task = with_confidence
    _, scores = task.evaluate([gf.corpora.corpus.Example(line, line, "a", 1) for line in LINES if line])
    assert [score.name for score in scores][-1] == "ECE"


@pytest.mark.parametrize(
    "damage", [{"mean": [1.0]}, {"scale": None}, {"coefficients": ["x"] * 17}, {"n_words": "many"}]
)
def test_a_damaged_file_is_an_error(with_confidence, damage):
    folder, task = with_confidence
    add_file(folder, FILE, json.dumps(task.confidence.to_record() | damage))
    verify(folder)
    with pytest.raises(CheckpointError, match=r"confidence\.json: damaged"):
        gf.load(folder)


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_words_of_tokens_are_those_of_the_text_before_them(kind):
    lines = [
        "The cat sat on the mat, and «the dog» slept.",
        "a" * 300,
        "\u3000b\x1f c",
        "  3 000 000 naïve cafés — 🏳️‍🌈 x",
    ]
    tokenizer = Tokenizer.train(lines * 5, kind=kind, vocab_size=300)
    for line in lines:
        ids = tokenizer.encode(line)
        expected = [len(tokenizer.decode(ids[: i + 1]).split()) - 1 for i in range(len(ids))]
        words, owners = words_of(ids, tokenizer)
        assert words == tokenizer.decode(ids).split()
        if line.isascii() and len(ids) < MAX_DECODED:
            assert owners == expected
        assert all(-1 <= owner < max(1, len(words)) for owner in owners)


def test_the_time_for_the_words_of_a_long_text_grows_with_its_length():
    tokenizer = Tokenizer.train(["The cat sat on the mat."] * 5, vocab_size=300)
    ids = tokenizer.encode("the cat " * 500)
    decoded = []

    class Counting:
        starts_word = staticmethod(tokenizer.starts_word)

        def decode(self, ids):
            decoded.append(len(ids))
            return tokenizer.decode(ids)

    words_of(ids, Counting())
    assert sum(decoded) < 20 * len(ids)


def test_words_for_the_fit_and_its_test_are_needed():
    task = translator()
    with pytest.raises(UserError, match=f"at least {2 * MIN_WORDS} words"):
        fit_confidence(task, LINES * 5, LINES * 5)
