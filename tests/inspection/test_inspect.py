"""Numbers of an inspection match those of the model, and its record is valid JSON."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, UserError
from glassformer.inspection.arrays import pack, unpack
from glassformer.inspection.inputs import prepare_inputs
from glassformer.inspection.inspect import inspect, rollout
from glassformer.inspection.run_report import as_command
from glassformer.tasks.documents import Document
from glassformer.tasks.encoder import text_of_line
from glassformer.tasks.origin import Origin
from glassformer.tasks.steps import line_of
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.inspection.models import CASES, SIZES, at_most, make, text_for

CASE_NOTE = "The model is given the text in the case that it knows."


@pytest.mark.parametrize(("name", "family"), CASES)
def test_shapes_match_the_text_and_the_record_is_json(name, family):
    task = make(name, family)
    found = inspect(task, text_for(name), **at_most(task, 9))
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(record["sides"]) == ({"source", "target"} if name == "translation" else {"text"})
    for side in found.sides.values():
        assert len(side.ids) == len(side.tokens) == len(side.offsets)
        begun = [offset for offset in side.offsets if offset]
        assert begun == sorted(begun)
        assert not begun or max(end for _, end in begun) <= len(side.text)
    assert found.attention
    for a in found.attention:
        shape = (len(found.sides[a.queries].ids), len(found.sides[a.keys].ids))
        assert a.weights.shape[1:] == shape
        np.testing.assert_allclose(a.weights.sum(-1), 1, atol=1e-5)
        assert a.norms["queries"].shape == (a.weights.shape[0], shape[0])
        assert a.norms["keys"].shape == a.norms["values"].shape == (a.weights.shape[0], shape[1])
    for name_, vectors in found.vectors.items():
        for x in vectors.values():
            assert x.shape == (len(found.sides[name_].ids), SIZES[family]["d_model"])
    for side in found.rollout.values():
        np.testing.assert_allclose(side.sum(-1), 1, atol=1e-5)
    if name != "feature-extraction":
        assert found.predictions
    if family in ("transformer", "bert", "gpt2", "t5"):
        assert len(found.stream) == len(found.sides)


@pytest.mark.parametrize("family", ["transformer", "t5", "rnn"])
def test_translation_and_loss_match_the_task(family):
    task = make("translation", family)
    text = "The black cat sat on the rug."
    best = task.translate([text], DecodeConfig(no_repeat_ngram_size=0))[0][0]
    found = inspect(task, text)
    assert found.sides["target"].text == best.text
    assert [p.expected for p in found.predictions] == best.tokens
    # The search renormalizes the probabilities after removing banned tokens.
    np.testing.assert_allclose([p.log_prob for p in found.predictions], best.log_probs, atol=0.05)
    followed = inspect(task, text, "Der Hund schlief.")
    expected = task.score([text], ["Der Hund schlief."])[0]
    np.testing.assert_allclose([p.log_prob for p in followed.predictions], expected, atol=1e-4)
    assert [p.expected for p in followed.predictions[:-1]] == [
        task.tokenizer.token(i) for i in task.tokenizer.encode("Der Hund schlief.")
    ]
    for p in followed.predictions:
        assert sum(guess.probability > math.exp(p.log_prob) for guess in p.best) == min(p.rank, len(p.best))


@pytest.mark.parametrize("text", ["  THE BLACK CAT SAT ON THE RUG. ", "- The black cat sat on the rug.", "12 %"])
def test_the_source_is_what_translate_gives_the_model(text):
    task = make("translation", "transformer")
    line = line_of(task, text, DecodeConfig(), None, None)
    found = inspect(task, text)
    source = found.sides["source"]
    assert source.text == line.model_text
    assert source.ids == [*task.tokenizer.encode(line.model_text), task.tokenizer.eos_id]
    if line.is_kept:
        assert found.notes[0].startswith("The text is not translated")
    else:
        (note,) = found.notes
        assert note == ("List marks are not given to the model." if line.mark else CASE_NOTE)
        best = task.translate([text], DecodeConfig(no_repeat_ngram_size=0))[0][0]
        assert [p.expected for p in found.predictions] == best.tokens


def test_the_search_of_a_model_whose_start_token_is_its_end_token_can_end():
    """As BART."""
    task = make("translation", "transformer", output_bias=True)
    specials = replace(task.tokenizer.special_tokens, bos_token=task.tokenizer.special_tokens.eos_token)
    tokenizer = Tokenizer(task.tokenizer.backend, specials)
    model = type(task.model)(task.model.config.model_copy(update={"bos_id": tokenizer.eos_id}))
    model.load_state_dict(task.model.state_dict())
    bart = Translator(model, tokenizer)
    with torch.no_grad():
        model.output_bias[tokenizer.eos_id] = 20  # the end is probable
    best = bart.translate(["The black cat"], DecodeConfig(no_repeat_ngram_size=0))[0][0]
    assert len(best.tokens) < 40
    assert [p.expected for p in inspect(bart, "The black cat").predictions] == best.tokens


def test_position_vectors_are_those_of_the_side():
    task = make("translation", "transformer", learned_positions=True)
    found = inspect(task, "The black cat", "Der Hund")
    for name, table in (("source", task.model.encoder_positions), ("target", task.model.decoder_positions)):
        expected = table.weight[: len(found.sides[name].ids)].detach().numpy()
        np.testing.assert_allclose(np.array(found.vectors[name]["positions"]), expected, atol=1e-6)


def test_continuation_of_a_prompt_matches_the_task():
    task = make("causal-lm", "gpt2")
    found = inspect(task, "The black cat", max_length=7, beam=1)
    generated = found.predictions[found.first_predicted :]
    assert task.tokenizer.decode([found.sides["text"].ids[p.position + 1] for p in generated[:-1]]) in task(
        "The black cat", beam=1, max_length=7
    )
    assert generated[0].rank == 0


@pytest.mark.parametrize(("name", "family"), [("classification", "bert"), ("regression", "bert"), ("tagging", "bert")])
def test_labels_match_the_task(name, family):
    task = make(name, family)
    text = text_for(name)
    found = inspect(task, text)
    match name:
        case "classification":
            expected = task.probabilities([text])[0]
            best = found.predictions[0].best
            assert best[0].text == task(text)
            assert {g.text: round(g.probability, 4) for g in best} == {
                label: round(float(p), 4) for label, p in zip(task.labels, expected, strict=True)
            }
        case "regression":
            assert float(found.predictions[0].best[0].text) == pytest.approx(task(text), abs=1e-3)
        case "tagging":
            assert found.predicts == "tags"
            assert [p.best[0].text for p in found.predictions] == [tag for _, tag in task(text)]


def test_a_word_of_other_letters_has_one_tag():
    task = make("tagging", "bert", kind="byte")
    text = "Ünal läuft"
    found = inspect(task, text)
    assert [p.best[0].text for p in found.predictions] == [tag for _, tag in task(text)]


@pytest.mark.parametrize("kind", ["bpe", "char", "byte"])
@pytest.mark.parametrize("name", ["tagging", "masked-lm", "classification"])
def test_character_spans_match_the_tokens(name, kind):
    task = make(name, "bert", kind=kind, max_len=60)
    text = "The <mask> cat, <mask>on the  couch." if name == "masked-lm" else "The black  cat, on a couch."
    for window in (1, 2):
        side = inspect(task, text * (1 if window == 1 else 12), window=window).sides["text"]
        expected = [
            i for i in side.ids if i not in (task.tokenizer.pad_id, task.tokenizer.bos_id, task.tokenizer.eos_id)
        ]
        spans = [
            (token, side.text[slice(*offset)])
            for token, offset in zip(side.tokens, side.offsets, strict=True)
            if offset
        ]
        assert len(spans) == len(expected)
        for token, span in spans:
            assert token.strip() == span.strip() or (kind == "byte" and len(span) <= 1) or not token.strip()


def test_answer_matches_the_task():
    task = make("question-answering", "bert")
    found = inspect(task, text_for("question-answering"))
    assert found.answer == task(*text_for("question-answering").split("\t"))


def test_a_long_first_text_is_truncated_with_a_note():
    for name in ("question-answering", "classification"):
        task = make(name, "bert")
        inputs = prepare_inputs(task, "The black cat sat on the couch. " * 12 + "\tcat")
        assert inputs.inputs[0].size(1) <= 48
        assert "The first text has" in inputs.notes[0]


def test_a_pair_that_fits_is_not_cut():
    task = make("classification", "bert")
    text = "The black cat sat on the couch. " * 3 + "\tcat"
    (row,) = task.encode_texts([text_of_line(text)])
    assert len(row[0]) > task.config.max_len // 2
    found = inspect(task, text)
    assert found.notes == []
    assert found.sides["text"].ids == task.add_special_tokens(*row)[0]
    assert found.predictions[0].best[0].text == task(text_of_line(text))


def test_a_tab_is_text_for_a_model_of_single_texts():
    task = make("classification", "bert")
    task.inputs = ("text",)
    assert (
        inspect(task, "The black\tcat").sides["text"].ids
        == task.add_special_tokens(task.encode_texts(["The black\tcat"])[0][0], [])[0]
    )


def test_the_separator_of_a_summary_is_kept_for_long_texts():
    task = make("summarization", "gpt2")
    for text in ("The cat.", "The black cat sat on the couch. " * 12):
        inputs = prepare_inputs(task, text)
        assert inputs.inputs[0][0, inputs.first_predicted] == task.tokenizer.eos_id


def test_non_finite_logits_are_an_error():
    task = make("translation", "transformer")
    with torch.no_grad():
        task.model.embedding.weight[:] = 1e30
    with pytest.raises(UserError, match="not finite"):
        inspect(task, "The cat")


def test_character_spans_of_a_pair_match_the_tokens():
    task = make("question-answering", "bert")
    text = text_for("question-answering")
    found = inspect(task, text)
    side = found.sides["text"]
    for token, offset in zip(side.tokens, side.offsets, strict=True):
        if offset:
            assert text[offset[0] : offset[1]].strip() == token.strip()
    assert found.predicts == "span"


@pytest.mark.parametrize(
    ("name", "family", "sizes"),
    [("translation", "transformer", {}), ("translation", "transformer", {"pre_norm": True}), ("translation", "t5", {}),
     ("causal-lm", "gpt2", {}), ("masked-lm", "bert", {}), ("classification", "bert", {"pre_norm": True})],
)  # fmt: skip
def test_the_logit_lens_matches_a_model_without_later_layers(name, family, sizes):
    task = make(name, family, **sizes)
    text = text_for(name)
    target = {"translation": "Der Hund", "causal-lm": " sat"}.get(name)
    found = inspect(task, text, target)
    stack = "decoder" if name in ("translation", "causal-lm") else "encoder"
    assert len(found.lens) == len(getattr(task.model, stack)) - 1
    for n, row in enumerate(found.lens.values(), 1):
        short = make(name, family, **sizes)
        setattr(short.model, stack, torch.nn.ModuleList([*getattr(short.model, stack)][:n]))
        expected = inspect(short, text, target).predictions
        for a, b in zip(row, expected, strict=True):
            assert [g.text for g in a.best] == [g.text for g in b.best]
            np.testing.assert_allclose([g.probability for g in a.best], [g.probability for g in b.best], atol=1e-5)


def test_roll_out_sums_over_all_paths():
    rng = np.random.default_rng(3)
    maps = [(x := rng.random((2, 3, 3)).astype(np.float32)) / x.sum(-1, keepdims=True) for _ in range(3)]
    mixed = [0.5 * m.mean(0) + 0.5 * np.eye(3) for m in maps]
    expected = np.zeros((3, 3))
    for a in range(3):
        for b in range(3):
            for c in range(3):
                for d in range(3):
                    expected[a, d] += mixed[2][a, b] * mixed[1][b, c] * mixed[0][c, d]
    np.testing.assert_allclose(rollout(maps), expected, atol=1e-6)


def test_gradient_times_input_matches_finite_differences():
    task = make("classification", "bert")
    task.model.double()
    found = inspect(task, text_for("classification"))
    inputs = prepare_inputs(task, text_for("classification"))
    label = task.labels.index(found.predictions[0].best[0].text)
    embed = task.model.embedding.forward

    def log_prob(position, factor):
        def scaled(ids):
            x = embed(ids).clone()
            x[:, position] *= factor
            return x

        task.model.embedding.forward = scaled
        with torch.no_grad():
            value = float(task.model.label_logits(inputs.forward(), inputs.inputs[0]).log_softmax(-1)[0, label])
        del task.model.embedding.forward
        return value

    h = 1e-2  # scores of attention are fp32
    slopes = [(log_prob(i, 1 + h) - log_prob(i, 1 - h)) / (2 * h) for i in range(len(found.sides["text"].ids))]
    np.testing.assert_allclose(found.saliency["gradient x input"], slopes, rtol=0.02, atol=3e-5)


def test_alignment_is_the_mean_of_all_heads_and_agreement_their_fraction():
    found = inspect(make("translation", "transformer"), "The black cat", "Der Hund")
    heads = [head for a in found.attention if a.kind == "cross" for head in a.weights]
    assert len(heads) == 6
    for i, row in enumerate(found.alignment):
        np.testing.assert_allclose(row, sum(head[i] for head in heads) / len(heads), atol=1e-6)
        votes = sum(int(head[i].argmax() == row.argmax()) for head in heads)
        assert found.agreement[i] == pytest.approx(votes / len(heads))


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.full((1, 1), -7.5), np.linspace(-3, 11, 60).reshape(3, 4, 5)])
def test_packing_error_is_at_most_a_65535th_of_the_range(x):
    unpacked = unpack(json.loads(json.dumps(pack(x.astype(np.float32)))))
    assert unpacked.shape == x.shape
    assert np.abs(unpacked - x).max() <= (x.max() - x.min()) / 65535 + 1e-6


def test_inputs_that_cannot_be_inspected_are_errors():
    translator, classifier = make("translation", "transformer"), make("classification", "bert")
    with pytest.raises(ConfigError, match="the text is empty"):
        inspect(translator, "  ")
    with pytest.raises(ConfigError, match="generate no text"):
        inspect(classifier, "a", "b")
    with pytest.raises(ConfigError, match="window 3: this text has 2"):
        inspect(translator, "cat " * 60, "Hund", window=3)


@pytest.mark.parametrize(
    ("name", "family"),
    [case for case in CASES if case[0] not in ("masked-lm", "bert-pretraining", "question-answering")],
)
def test_one_window_of_a_long_text_is_shown_with_a_note(name, family):
    task = make(name, family)
    first = inspect(task, "cat sat on the rug " * 30, **at_most(task, 5))
    second = inspect(task, "cat sat on the rug " * 30, window=2, **at_most(task, 5))
    assert "window 1 of" in first.notes[0]
    assert "window 2 of" in second.notes[0]
    assert first.attention[0].weights.shape[-1] <= 48
    if name == "causal-lm":  # as in training, each window has the start token
        assert [found.sides["text"].ids[0] for found in (first, second)] == [task.tokenizer.bos_id] * 2


def test_an_option_of_the_search_is_refused_where_nothing_is_searched():
    with pytest.raises(ConfigError, match="classification: beam: only for models that generate text"):
        inspect(make("classification", "bert"), "a cat", beam=3)


def test_the_command_of_a_fine_tuned_run_has_no_preset():
    options = {"src": ["a.csv"], "out": "b", "preset": "base", "steps": 3}
    assert "--preset base" in as_command(options)
    assert "--preset" not in as_command({**options, "init_from": "bert"})


def test_a_continuation_ends_at_all_end_tokens_of_the_model():
    task = make("causal-lm", "gpt2")
    n_prompt = len(task.prompt("the cat"))
    ids = inspect(task, "the cat", **at_most(task, 8)).sides["text"].ids[n_prompt:]
    end = ids[1]
    task.origin = Origin(config={"eos_token_id": [task.tokenizer.eos_id, end]})
    found = inspect(task, "the cat", **at_most(task, 8)).sides["text"].ids[n_prompt:]
    assert found == ids[: ids.index(end)]  # the last token is predicted, and not read


def test_a_loss_without_any_text_is_no_perfect_score():
    task = make("bert-pretraining", "bert")
    with pytest.raises(UserError, match="two lines that follow each other"):
        task.evaluate([Document("one line", is_whole=True, path="f", line=1)])
