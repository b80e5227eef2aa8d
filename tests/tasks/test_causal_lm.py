"""Text completion, streaming, and initialization of decoder-only models."""

import math
from functools import partial

import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.learning.registry import objective_of
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.documents import Document
from glassformer.tasks.summarization import Summarizer
from glassformer.tokens.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def task() -> LanguageModel:
    tokenizer = Tokenizer.train(["abc déf ☃"] * 3, kind="char")
    sizes = Gpt2Config(vocab_size=tokenizer.vocab_size, d_model=22, n_heads=2, d_ff=37, n_layers=1, max_len=41)
    task = LanguageModel(Gpt2(sizes), tokenizer)
    torch.manual_seed(3)
    for p in task.model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    with torch.no_grad():
        task.model.embedding.weight[3:259] *= 0.3  # fewer bytes, more characters
    return task


@pytest.mark.parametrize("explicit", [{"temperature": 1.0}, {"top_k": 5, "seed": 7}, {"beam": 1}])
@pytest.mark.parametrize("stop", [(), ("c",), ("d", " f"), ("ab", "bca", "cabd")])
@pytest.mark.parametrize("text", ["abc", pytest.param("", marks=pytest.mark.slow)])
def test_the_parts_of_a_stream_concatenate_to_the_completion(task, explicit, stop, text):
    options = DecodeConfig(**explicit, stop=stop, max_length=30)
    assert "".join(task.stream(text, options)) == task.complete([text], options)[0]


@pytest.mark.parametrize(
    ("explicit", "expected"),
    [
        ({}, {"temperature": 0.8, "top_k": 40}),
        ({"seed": 7, "max_length": 9}, {"temperature": 0.8, "top_k": 40, "seed": 7, "max_length": 9}),
        ({"top_p": 0.9}, {"top_p": 0.9}),
        ({"beam": 2, "seed": 1}, {"beam": 2}),
    ],
)
def test_options_default_to_those_of_the_task(task, explicit, expected):
    assert task.with_default_options(DecodeConfig(**explicit)) == DecodeConfig(**expected)
    assert task.with_default_options(None) == DecodeConfig(temperature=0.8, top_k=40)


def test_summaries_are_decoded_greedily_without_repeated_n_grams_by_default():
    options = partial(Summarizer.with_default_options, Summarizer)
    assert options(DecodeConfig(max_length=20)) == DecodeConfig(beam=1, no_repeat_ngram_size=6, max_length=20)
    assert options(DecodeConfig(beam=4)) == DecodeConfig(no_repeat_ngram_size=6)
    assert options(DecodeConfig(beam=1, no_repeat_ngram_size=0)) == DecodeConfig(beam=1, no_repeat_ngram_size=0)
    assert options(DecodeConfig(temperature=0.5)) == DecodeConfig(temperature=0.5, no_repeat_ngram_size=6)


def test_a_line_of_output_is_the_first_that_is_not_empty(task, monkeypatch):

    monkeypatch.setattr(type(task), "complete", lambda self, texts, *_: ["\n\nwas\nhere"] * len(texts))
    assert task.run(["the film", "", "a"]) == ["was", "", "was"]
    assert [record["output"] for record in task.records(["the film", ""])] == ["\n\nwas\nhere", ""]


def test_the_output_of_a_blank_line_is_blank(task):
    outputs = task.run(["abc", "  ", "", "def"], DecodeConfig(beam=1, max_length=5))
    assert [bool(text) for text in outputs][1:3] == [False, False]
    assert len(outputs) == 4
    assert outputs[3] == task.run(["def"], DecodeConfig(beam=1, max_length=5))[0]


def test_inference_does_not_change_the_grad_mode_of_the_caller(task):
    for _ in task.stream("abc", DecodeConfig(temperature=1.0, max_length=3)):
        assert not torch.is_inference_mode_enabled()


def test_training_samples_windows_and_evaluation_counts_each_token_once(task):
    text = "abc déf ☃ " * 20
    size = task.config.max_len
    document = Document(text, is_whole=False, path="text", line=1)
    objective = objective_of(task)
    rows, _ = objective.encode([document])
    stream = task.tokenizer.encode(text)
    torch.manual_seed(5)
    starts = set()
    for _ in range(200):
        batch = objective.batch(rows)
        for i, (ids, targets, weights) in enumerate(zip(batch.ids, batch.targets, batch.weights, strict=True)):
            n = int(weights.sum())
            predicted = targets[:n].tolist()
            positions = [i * size + start for start in range(size + 1) if stream[i * size + start :][:n] == predicted]
            assert ids[0] == task.tokenizer.bos_id
            assert ids[1:n].tolist() == predicted[:-1]
            assert n == min(size, len(stream) - i * size)
            assert positions
            starts |= {positions[0] % size}
    assert len(starts) >= 10  # the text has a period of ten characters
    state = torch.get_rng_state()
    nll, n_tokens, n_bytes = task.nll_sums([document])
    assert (n_tokens, n_bytes) == (len(stream), len(text.encode()))
    assert task.nll_sums([document])[0] == nll
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("d_model", "std"), [(768, 0.02), (1600, 0.02), (192, 0.04), (48, 0.08)])
def test_initial_standard_deviation_is_the_published_one_at_published_widths_and_larger_below(d_model, std):
    sizes = {"vocab_size": 500, "d_model": d_model, "n_heads": 4, "d_ff": 64, "n_layers": 1, "max_len": 16}
    torch.manual_seed(1)
    gpt2 = Gpt2(Gpt2Config(**sizes))
    bert = Bert(BertConfig(**sizes))
    assert gpt2.embedding.weight.std().item() == pytest.approx(std, rel=0.03)
    # Truncated at two standard deviations, a normal distribution has 0.88 of its standard deviation.
    assert bert.embedding.weight[1:].std().item() == pytest.approx(0.88 * std, rel=0.03)
    assert bert.embedding.weight.abs().max().item() <= 2 * std


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_learned_positions_start_as_sinusoids_in_narrow_models_and_as_published_otherwise(family):
    def begin(d_model: int) -> torch.Tensor:
        sizes = dict(vocab_size=300, n_layers=1, n_heads=1, d_ff=8, max_len=50, d_model=d_model)
        model = Gpt2(Gpt2Config(**sizes)) if family == "gpt2" else Bert(BertConfig(**sizes))
        return model.position_embedding.weight.detach()

    narrow = begin(192)
    assert narrow[7, 0].item() == pytest.approx(0.16 * math.sin(7))
    assert narrow[7, 3].item() == pytest.approx(0.16 * math.cos(7 / 10000 ** (2 / 192)))
    assert begin(768).std().item() == pytest.approx(0.02 if family == "gpt2" else 0.88 * 0.02, rel=0.03)


@pytest.mark.parametrize("max_new_tokens", [1, 10, 30])
def test_a_prompt_that_is_cut_keeps_its_start_token(task, max_new_tokens):
    warnings = []
    ids = task.prompt("abc" * 30)
    n_kept = max(41 - max_new_tokens, 20)
    found = task.truncate_prompt(ids, max_new_tokens, warnings.append)
    assert found == [task.tokenizer.bos_id, *ids[-(n_kept - 1) :]]
    assert len(warnings) == 1
    assert task.truncate_prompt(found, max_new_tokens, warnings.append) == found
    assert len(warnings) == 1
