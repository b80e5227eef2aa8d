"""What follows a text, at once and in pieces."""

import pytest
import torch

from glassformer.config import DecodeConfig
from glassformer.models.gpt2 import Gpt2
from glassformer.sizes import Gpt2Config
from glassformer.tasks.language import LanguageModel
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


@pytest.mark.parametrize("asked", [{"temperature": 1.0}, {"top_k": 5, "seed": 7}, {"beam": 1}])
@pytest.mark.parametrize("stop", [(), ("c",), ("d", " f"), ("ab", "bca", "cabd")])
@pytest.mark.parametrize("text", ["abc", ""])
def test_the_pieces_of_a_stream_are_what_follows(task, asked, stop, text):
    options = DecodeConfig(**asked, stop=stop, max_length=30)
    assert "".join(task.stream(text, options)) == task.follow([text], options)[0]


def test_a_blank_line_is_answered_by_a_blank_line(task):
    out = task.run(["abc", "  ", "", "def"], DecodeConfig(beam=1, max_length=5))
    assert [bool(text) for text in out][1:3] == [False, False]
    assert len(out) == 4
    assert out[3] == task.run(["def"], DecodeConfig(beam=1, max_length=5))[0]


def test_looking_at_texts_leaves_the_callers_mode_alone(task):
    for _ in task.stream("abc", DecodeConfig(temperature=1.0, max_length=3)):
        assert not torch.is_inference_mode_enabled()
