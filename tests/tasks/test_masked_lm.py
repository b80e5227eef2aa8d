"""Masked language modeling, BERT pretraining, and prediction of masked tokens."""

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from glassformer import checkpoint
from glassformer.cli import main
from glassformer.learning.masked_lm import MaskedLMObjective
from glassformer.learning.registry import objective_of
from glassformer.models.bert import Bert, BertConfig
from glassformer.tasks.documents import Document
from glassformer.tasks.masked_lm import BertPretraining, MaskedLM
from glassformer.tasks.registry import load
from glassformer.tasks.texts import no_op
from glassformer.tokens.tokenizer import Tokenizer

LINES = ["the cat sat on the mat", "the dog lay on the rug", "a bird sang in the tree", "the sun is warm"] * 9
MAX_LEN = 17


def make(kind="wordpiece", task=MaskedLM, **sizes):
    tokenizer = Tokenizer.train(
        LINES,
        kind=kind,
        vocab_size=300,
        extra_special_tokens=MaskedLMObjective.extra_special_tokens,
        add_prefix_space=False,
    )
    t = tokenizer
    config = BertConfig(
        vocab_size=t.vocab_size, d_model=34, n_heads=2, d_ff=67, n_layers=1, max_len=MAX_LEN, dropout=0,
        pad_id=t.pad_id, bos_id=t.bos_id, eos_id=t.eos_id, n_labels=task.n_labels(()), **task.head_config, **sizes,
    )  # fmt: skip
    return task(Bert(config), tokenizer)


def plain(*lines):
    return [Document("\n".join(lines) + "\n", False, "x", 1)]


def test_plain_text_is_one_stream_split_into_windows_of_the_maximum_length():
    task = make()
    rows, too_long = objective_of(task).encode(plain(*LINES) + plain(*LINES))
    stream = task.tokenizer.encode("\n".join(LINES)) * 2
    assert [i for (row,) in rows for i in row] == stream
    assert {len(row) for (row,) in rows[:-1]} == {MAX_LEN - 2}
    assert not too_long


def test_documents_are_encoded_separately():
    task = make()
    rows, _ = objective_of(task).encode([Document(line, True, "x", i) for i, line in enumerate(LINES)])
    assert rows == [(ids,) for ids in task.tokenizer.encode_batch(LINES)]


def test_targets_are_the_original_tokens_at_masked_positions():
    task = make()
    rows, _ = objective_of(task).encode(plain(*LINES))
    batch = objective_of(task).batch(rows[:5])
    assert batch.n_targets == len(batch.targets) == len(batch.target_positions) > 0
    original = batch.ids.clone()
    original.view(-1)[batch.target_positions] = batch.targets
    assert [row[1 : 1 + len(ids)] for row, (ids,) in zip(original.tolist(), rows, strict=False)] == [
        r for (r,) in rows[:5]
    ]
    assert set(original[:, 0].tolist()) == {task.tokenizer.bos_id}


def test_the_loss_is_the_cross_entropy_of_the_masked_tokens():
    task = make()
    torch.nn.init.normal_(task.model.mlm_bias)
    batch = objective_of(task).batch(objective_of(task).encode(plain(*LINES))[0][:5])
    logits = task.model.mlm_logits(task.model(batch.ids, batch.token_type_ids)).flatten(0, 1)[batch.target_positions]
    expected = torch.nn.functional.cross_entropy(logits, batch.targets, reduction="sum")
    torch.testing.assert_close(objective_of(task).loss(batch), expected)
    objective_of(task).loss(batch).backward()
    assert task.model.mlm_bias.grad.abs().sum() > 0


def test_validation_masks_the_same_tokens_each_time_and_leaves_the_random_state_unchanged():
    task = make()
    before = torch.get_rng_state()
    first, second = objective_of(task).validate(plain(*LINES)), objective_of(task).validate(plain(*LINES))
    assert first == second
    assert torch.get_rng_state().equal(before)


@pytest.fixture(scope="module")
def learned():
    """A model that has memorized the lines."""
    torch.manual_seed(1)
    task = make()
    rows, _ = objective_of(task).encode([Document(line, True, "x", i) for i, line in enumerate(LINES)])
    optimizer = torch.optim.Adam(task.model.parameters(), lr=0.01)
    for _ in range(140):
        batch = objective_of(task).batch(rows)
        optimizer.zero_grad()
        (objective_of(task).loss(batch) / batch.n_targets).backward()
        optimizer.step()
    return task


def test_masks_are_replaced_by_the_most_probable_tokens(learned):
    lines = ["the cat [MASK] on the mat", "a <mask> sang in the tree", "", "nothing to fill here"]
    assert learned.run(lines, warn=no_op) == [
        "the cat sat on the mat",
        "a bird sang in the tree",
        "",
        "nothing to fill here",
    ]
    assert learned("the sun is <mask>") == "the sun is warm"


def test_predictions_are_sorted_by_probability_and_keep_other_masks(learned):
    first, second = learned.fill_mask("a <mask> sang in the <mask>", top_k=3)
    assert [g.score for g in first] == sorted((g.score for g in first), reverse=True)
    assert sum(g.score for g in first) <= 1
    assert first[1].text == f"a {first[1].token} sang in the <mask>"
    assert second[1].text == f"a <mask> sang in the {second[1].token}"
    assert learned("a <mask> sang in the <mask>") == f"a {first[0].token} sang in the {second[0].token}"
    lines = ["the sun is <mask>", "", " "]
    records = learned.records(lines)
    assert [record["input"] for record in records] == lines
    assert [record["output"] for record in records] == learned.run(lines)
    record = records[0]
    assert record["output"] == "the sun is warm"
    assert len(record["predictions"][0]) == 5


def test_predictions_do_not_depend_on_the_batch(learned):
    lines = ["the cat <mask> on the mat", "the <mask>", "the <mask> lay on the <mask>"]
    assert [learned.fill_mask(line) for line in lines] == learned.predict_masks(lines)


def test_masks_beyond_the_maximum_length_are_kept_with_a_warning(learned):
    warnings = []
    line = "the cat " * 9 + "<mask>"
    assert learned.run([line], warn=lambda i, what: warnings.append((i, what))) == [line]
    assert warnings == [(0, "longer than the maximum length of 15 tokens: its end was cut off")]


@pytest.mark.parametrize(
    ("kind", "text"), [("bpe", "the <mask> sat"), ("char", "the <mask>at"), ("wordpiece", "the <mask> sat")]
)
def test_replacing_a_mask_by_its_token_restores_the_text(kind, text):
    """For tokens that include the space before a word, characters, and subwords with a continuation prefix."""
    task = make(kind)
    original = text.replace("<mask>", "c" if kind == "char" else "cat")
    mask_index = task.encode_masked(text).index(task.mask_id)
    ids = task.tokenizer.encode(original)
    assert task.encode_masked(text) == [*ids[:mask_index], task.mask_id, *ids[mask_index + 1 :]]
    assert task.fill_masks(text, [ids[mask_index]]) == original


def test_a_text_without_a_mask_is_named():
    said = []
    task = make("bpe")
    assert task.run(["the <mask> sat", "the cat", ""], warn=lambda i, what: said.append((i, what)))[1] == "the cat"
    assert said == [(1, "no mask: the text stays as it is. A mask is written <mask>")]


def test_a_predicted_newline_is_output_as_a_space(monkeypatch):
    task = make("bpe")
    newline = task.tokenizer.encode("\n")[-1]
    assert "\n" in task.fill_masks("the <mask> sat", [newline])
    monkeypatch.setattr(
        task, "predict_masks", lambda lines, *options: [[[SimpleNamespace(token_id=newline)]] for _ in lines]
    )
    (result,) = task.run(["the <mask> sat"])
    assert result.split() == ["the", "sat"]
    assert "\n" not in result


def test_a_continuation_token_is_joined_to_the_previous_word():
    task = make()
    vocab = task.tokenizer.backend.get_vocab()
    token = next(entry for entry in vocab if entry.startswith("##"))
    assert task.fill_masks("the play <mask>", [vocab[token]]) == "the play" + token[2:]


def test_half_of_the_pairs_are_consecutive_lines():
    task = make("byte", task=BertPretraining)
    words = [f"{i}" for i in range(401)]
    rows, _ = objective_of(task).encode(plain(*words))
    following = {tuple(a): b for a, b in pairwise(task.tokenizer.encode_batch(words))}
    n_random = sum(label for _, _, (label,) in rows)
    assert abs(n_random - 200) < 4 * 10
    assert all(second == following[tuple(first)] for first, second, (label,) in rows if not label)


def test_the_loss_is_the_sum_of_both_objectives():
    task = make(task=BertPretraining)
    rows, _ = objective_of(task).encode(plain(*LINES))
    batch = objective_of(task).batch(rows[:7])
    words = MaskedLMObjective(task).loss(batch)
    pairs = torch.nn.functional.cross_entropy(
        task.model.label_logits(task.model(batch.ids, batch.token_type_ids), batch.ids), batch.nsp_labels
    )
    torch.testing.assert_close(objective_of(task).loss(batch) / batch.n_targets, words / batch.n_targets + pairs)
    assert set(objective_of(task).validate(plain(*LINES))) == {"loss", "accuracy", "nsp_accuracy"}
    second = batch.token_type_ids[0].bool() & (batch.ids[0] != task.tokenizer.pad_id)
    assert second.any()


@pytest.mark.parametrize("name", ["masked-lm", "bert-pretraining"])
def test_train_with_the_command_line(name, tmp_path, capsys, monkeypatch):
    (tmp_path / "text.txt").write_text("\n".join(LINES * 12))
    out = str(tmp_path / "run")
    options = ["--steps", "3", "--vocab-size", "300", "--preset", "tiny", "--d-model", "8", "--n-heads", "2", "-q"]
    with pytest.raises(SystemExit) as done:
        main(["train", str(tmp_path / "text.txt"), "--task", name, "--out", out, *options])
    assert not done.value.code
    task = load(out, device="cpu")
    assert task.name == name
    assert "<mask>" not in task("the cat <mask> on the mat")
    assert json.loads(checkpoint.to_json(task.records(["a <mask>"])[0]))["predictions"]
