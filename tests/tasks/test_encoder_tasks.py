"""Texts longer than the maximum length, and positions of labels."""

import json
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.corpora.labeled import Labeled
from glassformer.corpora.squad import QAExample
from glassformer.corpora.tagged import Tagged
from glassformer.data.dataset import Dataset
from glassformer.learning.question_answering import QuestionAnsweringObjective
from glassformer.learning.registry import objective_of
from glassformer.learning.tagging import IGNORED_TAG
from glassformer.models.bert import Bert, BertConfig
from glassformer.tasks.classification import Classifier
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.regression import Regressor
from glassformer.tasks.tagging import Tagger
from glassformer.tasks.texts import no_op
from glassformer.tasks.windows import windows
from glassformer.tokens.tokenizer import Tokenizer

WORDS = ["the", "black", "cat", "sat", "on", "a", "couch", "and", "slept"]
MAX_LEN = 23


def build(kind, labels, max_len: int = MAX_LEN):
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 5, vocab_size=300)
    sizes = BertConfig(
        vocab_size=tokenizer.vocab_size, d_model=22, n_heads=2, d_ff=37, n_layers=1, max_len=max_len,
        n_labels=kind.n_labels(labels), **kind.head_config,
    )  # fmt: skip
    task = kind(Bert(sizes), tokenizer, "cpu", labels)
    for p in task.model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return task


@given(st.integers(1, 97), st.integers(2, 31), st.data())
def test_windows_cover_all_positions_and_have_the_requested_overlap(n, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = list(windows(n, size, overlap))
    assert spans[0][0] == 0
    assert spans[-1][1] == n
    assert all(end - start <= size for start, end in spans)
    assert all(a[1] - b[0] == overlap for a, b in zip(spans, spans[1:], strict=False))


def test_the_tag_of_a_word_is_at_its_first_subword():
    task = build(Tagger, ("X", "Y"))
    words, tags = ("sat", "unheard", "cat"), ("X", "Y", "X")
    rows, left = objective_of(task).encode([Tagged(words, tags, "a", 1)])
    batch = objective_of(task).batch(rows)
    subwords = [len(ids) for ids in task.tokenizer.encode_words(words)]
    assert subwords[1] > 1
    expected = [IGNORED_TAG, 0, *[IGNORED_TAG] * (subwords[0] - 1), 1, *[IGNORED_TAG] * (subwords[1] - 1), 0]
    assert batch.tags[0, : len(expected)].tolist() == expected
    assert left == []


def test_every_word_of_a_long_sentence_has_a_tag_and_short_sentences_are_unaffected():
    task = build(Tagger, ("X", "Y"))
    short, long = WORDS[:4], WORDS * 11
    alone, together = task.log_probs([short]), task.log_probs([short, long, []])
    assert [len(row) for row in together] == [4, 99, 0]
    assert np.array_equal(alone[0], together[0])
    assert all(np.allclose(np.exp(row).sum(-1), 1) for row in together)


def test_each_half_of_the_overlap_of_two_windows_comes_from_the_window_with_more_context():
    """Windows of different lengths: the longest is computed first."""
    torch.manual_seed(0)
    tagger = build(Tagger, ("X", "Y"))
    rng = random.Random(1)
    for _ in range(20):
        words = [rng.choice(["cat", "x" * rng.randint(1, 12)]) for _ in range(40)]
        subwords = tagger.subword_ids(words)
        windows = tagger.word_windows(subwords)
        assert len(windows) > 2
        (log_probs,) = tagger.log_probs([words])
        for i, (start, end) in enumerate(windows):
            first = (start + windows[i - 1][1]) // 2 if i else 0
            stop = (windows[i + 1][0] + end) // 2 if end < len(words) else end
            (alone,) = tagger.log_probs([words[start:end]])
            torch.testing.assert_close(log_probs[first:stop], alone[first - start : stop - start], rtol=0, atol=1e-4)


def test_training_includes_all_words_of_a_long_sentence():
    task = build(Tagger, ("X", "Y"))
    words = tuple(WORDS * 11)
    rows, _ = objective_of(task).encode([Tagged(words, tuple("XY"[i % 2] for i in range(99)), "a", 1)])
    assert all(len(ids) <= task.limit for ids, _, _ in rows)
    assert sum(len(numbers) for _, _, numbers in rows) >= 99


@pytest.mark.parametrize("n_before", [0, 3, 40])
def test_the_span_of_an_answer_is_encoded_at_its_position(n_before):
    task = build(QuestionAnswerer, (), max_len=47)
    context = "the cat sat " * n_before + "a black couch slept" + " on and on" * 20
    answer = "black couch"
    example = QAExample("1", "what ?", context, ((answer, context.index(answer)),), "a", 1)
    rows, _ = objective_of(task).encode([example])
    spans = [(context_ids, span) for _, context_ids, span in rows if span != [0, 0]]
    assert spans
    for ids, (first, last) in spans:
        assert task.tokenizer.decode(ids[first - 1 : last]).strip() == answer
    assert all(len(question) + len(ids) + 3 <= 47 for question, ids, _ in rows)


@pytest.mark.parametrize("answered", [0, 1])
def test_no_answer_is_a_candidate_if_the_training_had_it(tmp_path, answered):
    task = build(QuestionAnswerer, (), max_len=47)
    assert task.may_find_none
    rows = [([5], [6, 7], [0, 0]), ([5], [7, 8], [1, answered]), ([9], [6, 7], [1, 2])]
    data = Dataset.write(tmp_path, rows, QuestionAnsweringObjective.fields, 300)
    objective_of(task).fit_statistics(data)
    assert task.may_find_none == (not answered)
    found = task.answers([("what ?", "the black cat sat on the mat")], n_best=50)[0]
    assert ("" in [answer.text for answer in found]) == (not answered)
    assert task.answers([("what ?", "")])[0][0].text == ""


def test_answers_are_spans_of_their_context():
    task = build(QuestionAnswerer, (), max_len=47)
    context = "the cat sat on a couch and slept " * 9
    for answer in task.answers([("what ?", context)], n_best=5)[0]:
        assert context[answer.start : answer.start + len(answer.text)] == answer.text
        assert 0 <= answer.score <= 1


def test_a_text_too_long_to_classify_is_truncated_with_a_warning_and_left_out_of_training():
    task = build(Classifier, ("a", "b"))
    warnings = []
    assert len(task.run([" ".join(WORDS * 9), "cat"], warn=lambda i, what: warnings.append((i, what)))) == 2
    assert [i for i, _ in warnings] == [0]
    long = Labeled(" ".join(WORDS * 9), None, "a", "f", 1)
    rows, left = objective_of(task).encode([long, Labeled("cat", "dog", "b", "f", 2)])
    assert (len(rows), left) == (1, [long])


def test_a_tab_makes_a_pair_unless_the_model_was_trained_on_single_texts():
    task = build(Classifier, ("a", "b"))
    pair, single = ("the cat", "sat on"), "the cat\tsat on"
    row = lambda text: task.probabilities([text], no_op)[0].tolist()
    for inputs, expected in (((), pair), (("text", "text_pair"), pair), (("text",), single)):
        task.inputs = inputs
        (record,) = task.records([single])
        assert list(record["probabilities"].values()) == row(expected)
        assert task.run([single]) == [record["output"]]
    assert row(pair) != row(single)


def test_a_text_of_another_form_than_the_training_had_is_reported():
    task = build(Classifier, ("a", "b"))
    warnings = []
    for inputs in ((), ("text",), ("text", "text_pair")):
        task.inputs = inputs
        task.probabilities(
            ["the cat", ("the cat", "sat on")], lambda i, what, seen=inputs: warnings.append((seen, i, what))
        )
    assert warnings == [
        (("text",), 1, "a pair, and the model was trained with single texts"),
        (("text", "text_pair"), 0, "a single text, and the model was trained with pairs"),
    ]


def test_numbers_of_a_small_range_keep_their_digits():
    task = build(Regressor, ("0.00001", "0.00004"))
    outputs, _ = task.evaluate([Labeled(word, None, f"0.0000{i % 4 + 1}", "f", i) for i, word in enumerate(WORDS)])
    assert [float(text) for text in outputs] == pytest.approx(task.predict_numbers(WORDS), rel=1e-3)
    assert task.run(["cat"]) == [outputs[WORDS.index("cat")]]
    assert len(build(Regressor, ("0", "5")).run(["cat"])[0].partition(".")[2]) == 4


def test_without_a_receiver_a_python_warning_says_that_a_text_was_cut():
    classifier, regressor = build(Classifier, ("a", "b")), build(Regressor, ("0", "1"))
    answerer, embedder = build(QuestionAnswerer, ()), build(SentenceEmbedder, ())
    long = " ".join(WORDS * 9)
    calls = [
        lambda: classifier(["cat", long]),
        lambda: classifier.probabilities([long]),
        lambda: classifier.run([long]),
        lambda: classifier.records([long]),
        lambda: classifier.evaluate([Labeled(long, None, "a", "f", 1)]),
        lambda: regressor(long),
        lambda: regressor.evaluate([Labeled(long, None, "1", "f", 1)]),
        lambda: answerer(long, "cat"),
        lambda: answerer.evaluate([QAExample("1", long, "cat", (), "f", 1)]),
        lambda: embedder([long]),
        lambda: embedder.similarities([("cat", long)]),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="at least one text: .*longer than .*: its end was cut off"):
            call()


def test_probabilities_do_not_depend_on_the_batch():
    task = build(Classifier, ("a", "b", "c"))
    texts = [" ".join(WORDS[:n]) for n in (1, 5, 2, 9, 3)]
    together = task.logits(texts)
    assert np.array_equal(together, np.concatenate([task.logits([text]) for text in texts]))


@pytest.mark.filterwarnings("ignore:int8 is slow here")
@pytest.mark.parametrize("task_class", [Classifier, Tagger])
def test_outputs_in_int8_are_close_to_those_in_fp32_and_do_not_depend_on_the_batch(task_class):
    task = build(task_class, ("a", "b", "c"))
    texts = [" ".join(WORDS[:n]) for n in (1, 5, 2, 9, 3)]
    compute = (
        task.logits if task_class is Classifier else lambda texts: task.log_probs([text.split() for text in texts])
    )
    expected = compute(texts)
    task.precision = "int8"
    together, alone = compute(texts), [compute([text])[0] for text in texts]
    for ours, own, theirs in zip(together, alone, expected, strict=True):
        assert np.array_equal(np.asarray(ours), np.asarray(own))
        assert np.allclose(np.asarray(ours), np.asarray(theirs), atol=0.05)
    assert not all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in zip(together, expected, strict=True))


def test_inference_does_not_change_the_grad_mode_of_the_caller():
    task = build(Classifier, ("a", "b"))
    for _ in task.hidden([([5, 6], []), ([7], [8])]):
        assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("tag", ["BX", "B-"])
def test_validation_with_span_tags_accepts_other_predicted_tags(tag):
    task = build(Tagger, ("O", "B-X", tag))
    with torch.no_grad():
        task.model.classifier.weight.zero_()
        task.model.classifier.bias.copy_(torch.tensor([0.0, 0.0, 9.0]))
    dev = [Tagged(("the", "cat"), ("O", "B-X"), "a", 1)]
    assert objective_of(task).validate(dev)["score"] == 0
    predicted, scores = task.evaluate(dev)
    assert predicted == [f"{tag} {tag}"]
    assert {score.name: score.value for score in scores}["F1"] == 0
    assert task.bootstrap_statistics(predicted, dev)["F1"][0].tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("n_characters", [1, 9, MAX_LEN - 2, 500])
def test_the_number_of_windows_is_bounded_however_long_the_longest_word_is(n_characters):
    task = build(Tagger, ("X", "Y"))
    words = ["cat"] * 997
    words[500] = "x" * n_characters
    subwords = task.subword_ids(words)
    spans = task.word_windows(subwords)
    lengths = [sum(map(len, subwords[start:end])) for start, end in spans]
    assert max(lengths) <= task.limit
    assert len(spans) <= 3 * sum(map(len, subwords)) // task.limit
    covered = 0
    for start, end in spans:
        assert start <= covered < end
        covered = end
    assert covered == len(words)
    assert [len(tags) for tags in task.tags([words])] == [len(words)]


def test_a_long_question_leaves_half_of_the_maximum_length_for_the_context():
    task = build(QuestionAnswerer, (), max_len=8)
    context = "the black cat sat on a couch and slept"
    with pytest.warns(UserWarning, match="a question longer than 2 tokens"):
        assert task(" ".join(WORDS), context) in context


@pytest.mark.parametrize(
    ("kind", "labels", "line"),
    [
        (Classifier, ("good", "bad"), "the cat"),
        (Regressor, ("0.5", "2.5"), "the cat\ta couch"),
        (Tagger, ("X", "Y"), "the cat sat"),
        (QuestionAnswerer, (), "the cat\tthe black cat sat"),
    ],
)
def test_every_record_has_the_line_of_input_and_the_line_that_run_returns(kind, labels, line):
    task, lines = build(kind, labels), [line, "", line + " slept"]
    records = task.records(lines)
    assert [record["input"] for record in records] == lines
    assert [record["output"] for record in records] == task.run(lines)


def test_blank_lines_have_empty_records_and_long_lines_a_warning():
    task = build(Classifier, ("good", "bad"))
    warnings = []
    records = task.records(["cat", "", " ", "cat " * 40], warn=lambda i, what: warnings.append(i))
    assert [record["output"] == "" for record in records] == [False, True, True, False]
    assert [record["input"] for record in records] == ["cat", "", " ", "cat " * 40]
    assert [bool(record["probabilities"]) for record in records] == [True, False, False, True]
    assert warnings == [3]


@pytest.mark.parametrize(
    ("name", "row", "inputs"),
    [
        ("classification", {"text": "a cat", "label": "yes"}, ("text",)),
        ("classification", {"text": "a cat", "text2": "a dog", "label": "yes"}, ("text", "text_pair")),
        ("regression", {"text": "a cat", "text2": "a dog", "label": "1.5"}, ("text", "text_pair")),
    ],
)
def test_whether_a_model_was_trained_on_pairs_is_in_its_folder(tmp_path, name, row, inputs):
    rows = [{**row, "text": f"{row['text']} {i}", "label": row["label"] if i % 2 else "2"} for i in range(40)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = dict(task=name, steps=1, d_model=16, n_heads=2, d_ff=16, n_layers=1, vocab_size=270)
    gf.train(tmp_path / "train.jsonl", out=tmp_path / "model", **options)
    model = gf.load(tmp_path / "model")
    assert model.inputs == inputs
    model.save(tmp_path / "copy")
    assert gf.load(tmp_path / "copy").inputs == inputs
    config = json.loads((tmp_path / "copy" / "config.json").read_text())
    del config["inputs"], config["task"]  # as in a folder of an earlier version
    assert type(model).from_folder(tmp_path / "copy", config, torch.device("cpu")).inputs == ()


@pytest.mark.parametrize("pair", [False, True])
def test_a_text_that_fits_with_its_special_tokens_is_not_cut(pair):
    task = build(Classifier, ("X", "Y"))
    n = MAX_LEN - (3 if pair else 2)
    text, longer = (" ".join(["cat"] * k) for k in (n - pair, n + 1 - pair))
    warnings = []

    def rows(text):
        return task.encode_truncated([(text, "sat") if pair else text], lambda i, what: warnings.append(what))

    ((first, second),) = rows(text)
    assert (len(first) + len(second), warnings) == (n, [])
    ((first, second),) = rows(longer)
    assert (len(first) + len(second), len(warnings)) == (n, 1)
    assert f"maximum length of {n} tokens" in warnings[0]
    examples = [Labeled(x, "sat" if pair else None, "X", "f", 1) for x in (text, longer)]
    encoded, left_out = objective_of(task).encode(examples)
    assert (len(encoded), left_out) == (1, examples[1:])


def test_a_sentence_embedder_reads_as_many_tokens_as_its_files_say():
    task = build(SentenceEmbedder, ())
    long, cut = (" ".join(WORDS[:1] * n) for n in (12, 8))
    whole = task([long])
    task.sentence_max_len = ("10",)
    with pytest.warns(UserWarning, match="maximum length of 8 tokens"):
        found = task([long])
    np.testing.assert_array_equal(found, task([cut]))
    assert np.abs(found - whole).max() > 0.01
    task.sentence_max_len = ("999",)
    np.testing.assert_array_equal(task([long]), whole)


def test_a_tab_in_a_line_is_text_for_an_embedder():
    task = build(SentenceEmbedder, ())
    (line,) = task.run(["the cat\tsat"])
    assert json.loads(line) == [round(x, 6) for x in task("the cat\tsat")[0].tolist()]
