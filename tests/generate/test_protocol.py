"""Decoding needs no PyTorch; a model of PyTorch decodes as any other `Decodable`."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.generate.protocol import ComputesLogits
from glassformer.generate.rules import Rule, search_rules
from glassformer.generate.scores import best_log_probs, best_tokens, log_softmax
from glassformer.generate.search import beam_search
from glassformer.models.decoding import TorchDecoder, blockwise_topk
from tests.generate.test_invariance import BOS, EOS, PAD, VOCAB, random_model

WITHOUT_TORCH = """
import importlib, pkgutil, sys
sys.modules["torch"] = None  # an import of it is an error
import glassformer.generate
for module in pkgutil.iter_modules(glassformer.generate.__path__):
    importlib.import_module(f"glassformer.generate.{module.name}")

import numpy as np
from glassformer.decode_config import DecodeConfig
from glassformer.generate.engine import Engine
from glassformer.generate.protocol import ComputesLogits
from glassformer.generate.request import Sources

class State:
    def select(self, rows, sentences=None):
        pass

class Successor(ComputesLogits):
    "The token after the last one."
    vocab_size = 7
    class config:
        d_model = n_layers = 1
    def start(self, sources, n_hypotheses=1):
        return State(), np.repeat([source[-1] for source in sources], n_hypotheses)
    def logits(self, ids, state):
        return 9 * np.eye(self.vocab_size, dtype=np.float32)[(ids + 1) % self.vocab_size]

engine = Engine(Successor(), eos_id=6, max_len=9, batch_tokens=64)
for options in ({"beam": 1}, {"beam": 2}, {"temperature": 0.1}, {"beam": 2, "repetition_penalty": 1.1}):
    print([nbest[0].ids for nbest in engine.decode(Sources([[1], [3]], DecodeConfig(**options)))])
"""


def test_generate_is_imported_and_decodes_without_torch():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert found.stderr == ""
    assert found.stdout.splitlines() == ["[[2, 3, 4, 5, 6], [4, 5, 6]]"] * 4


@pytest.mark.parametrize("vocab", [37, 128 * 17, 128 * 17 + 5])
def test_blockwise_topk_and_that_of_numpy_equal_topk(vocab):
    x = torch.randn(11, vocab)
    x[:, 3:7] = -torch.inf
    expected = x.topk(7)
    for values, ids in (blockwise_topk(x, 7), map(torch.from_numpy, best_tokens(x.numpy(), 7))):
        assert torch.equal(values, expected.values)
        assert torch.equal(ids, expected.indices)


def test_log_softmax_is_that_of_torch():
    x = torch.randn(5, VOCAB)
    x[:, 3] = -torch.inf
    torch.testing.assert_close(torch.from_numpy(log_softmax(x.numpy())), x.log_softmax(-1))
    for found, expected in zip(best_log_probs(x.numpy(), 4), best_tokens(log_softmax(x.numpy()), 4), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("banned", [(), (PAD, BOS)])
def test_the_most_probable_tokens_of_a_model_of_pytorch_are_those_of_its_logits(banned):
    decoder = TorchDecoder(random_model(22))
    sources = [[5, 6, EOS], [7, EOS], [8, 9, 10, 11, EOS]]
    (fast, last), (full, _) = decoder.start(sources, 2), decoder.start(sources, 2)
    for _ in range(4):
        ((log_probs, tokens),) = decoder.next_tokens([(last, fast)], 5, banned)
        ((expected, expected_tokens),) = ComputesLogits.next_tokens(decoder, [(last, full)], 5, banned)
        assert tokens.tolist() == expected_tokens.tolist()
        np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)
        rows = np.array([1, 1, 2, 3, 5, 4])
        fast.select(rows)
        full.select(rows)
        last = tokens[rows, 0]


@pytest.mark.parametrize(
    ("options", "is_fast"),
    [
        ({"no_repeat_ngram_size": 1}, True),
        ({"min_length": 3}, True),
        ({"ban": ("b",)}, True),
        ({"repetition_penalty": 1.5}, False),
    ],
    ids=str,
)
def test_rules_that_only_exclude_tokens_need_only_the_most_probable(options, is_fast):
    """They find what they find with all logits."""
    decoder, used = TorchDecoder(random_model(22)), []
    texts = [b"b" if i % 2 else b"a" for i in range(VOCAB)]

    class Spy(TorchDecoder):
        def logits(self, ids, state):
            used.append("logits")
            return super().logits(ids, state)

    def found(model, eos_id, rules):
        return beam_search(model, [[5, 6, EOS], [7, EOS]], [9, 9], eos_id=eos_id, rules=rules, beam=3)

    free = search_rules((PAD, BOS))
    eos_id = found(decoder, EOS, free)[0][0].ids[0] if "min_length" in options else EOS
    rules = search_rules((PAD, BOS), DecodeConfig(**options), eos_id=eos_id, token_bytes=texts)
    ours, expected = found(Spy(decoder.model), eos_id, rules), found(decoder, eos_id, [*rules, Unchanged()])
    assert bool(used) != is_fast
    for (a,), (b,) in zip(ours, expected, strict=True):
        assert a.ids == b.ids
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-5)
    assert [h.ids for (h,) in ours] != [h.ids for (h,) in found(decoder, eos_id, free)]


class Unchanged(Rule):
    """A rule without a fast form that changes nothing."""

    def apply(self, scores, ids):
        return scores
