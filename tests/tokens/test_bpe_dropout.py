"""BPE-dropout against the distribution that its definition gives, by enumeration."""

import time
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from glassformer.errors import ConfigError
from glassformer.tokens.bpe_dropout import N_SAMPLES, BpeDropout
from glassformer.tokens.tokenizer import Tokenizer

TEXTS = ["the lower the slower", "the newest and the widest show", "a slow showdown, 1234 times!"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=300)


def exact(tokens: tuple[int, ...], merges: dict, p: float) -> dict[tuple[int, ...], float]:
    """Probability of each segmentation: at each step the merge of the lowest rank of those that are not left out."""
    candidates = sorted((merges[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in merges)
    result: dict[tuple[int, ...], float] = defaultdict(float)
    result[tokens] += p ** len(candidates)
    for n_dropped, ((_, merged), i) in enumerate(candidates):
        for segmentation, probability in exact((*tokens[:i], merged, *tokens[i + 2 :]), merges, p).items():
            result[segmentation] += p**n_dropped * (1 - p) * probability
    return result


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("text", ["lower", "the", "showdown"])
def test_segmentations_have_the_probabilities_of_the_definition(tokenizer, text, p):
    word = tuple(tokenizer.encode(text))
    counts: Counter = Counter()
    n_seeds = 300
    for seed in range(n_seeds):
        counts.update(BpeDropout(tokenizer, p, seed).segmentations(word))
    symbols = tuple(symbol for token in word for symbol in BpeDropout(tokenizer, p).symbols[token])
    expected = exact(symbols, BpeDropout(tokenizer, p).merges, p)
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    n = n_seeds * N_SAMPLES
    for segmentation, probability in expected.items():
        deviation = (n * probability * (1 - probability)) ** 0.5
        assert abs(counts[segmentation] - n * probability) < 4.5 * deviation + 3


def test_without_dropout_the_segmentation_is_that_of_the_tokenizer(tokenizer):
    dropout, rng = BpeDropout(tokenizer, 0.0), np.random.default_rng(0)
    for ids in tokenizer.encode_batch([*TEXTS, "  two  spaces ", "never seen: Ünïcödé 日本 🙂", ""]):
        assert dropout.sampled(ids, rng) == ids


def test_the_text_stays_the_same(tokenizer):
    dropout, rng = BpeDropout(tokenizer, 0.5), np.random.default_rng(0)
    for text in [*TEXTS, "  two  spaces ", "never seen: Ünïcödé 日本 🙂"]:
        ids = tokenizer.encode(text)
        sampled = dropout.sampled(ids, rng)
        assert tokenizer.decode(sampled) == text
        assert len(sampled) > len(ids)


def test_the_segmentations_of_a_word_do_not_depend_on_the_words_before_it(tokenizer):
    first, second = BpeDropout(tokenizer, 0.3, seed=5), BpeDropout(tokenizer, 0.3, seed=5)
    words = [tuple(tokenizer.encode(word)) for word in ("lower", "showdown", "newest")]
    forward = [first.segmentations(word) for word in words]
    backward = [second.segmentations(word) for word in words[::-1]][::-1]
    assert forward == backward
    assert BpeDropout(tokenizer, 0.3, seed=6).segmentations(words[1]) != forward[1]


def test_special_tokens_stay(tokenizer):
    ids = [tokenizer.bos_id, *tokenizer.encode("lower"), tokenizer.eos_id]
    sampled = BpeDropout(tokenizer, 0.5).sampled(ids, np.random.default_rng(0))
    assert sampled[0] == tokenizer.bos_id
    assert sampled[-1] == tokenizer.eos_id


@pytest.mark.parametrize("kind", ["unigram", "word", "char", "byte", "wordpiece"])
def test_other_tokenizers_are_refused(kind):
    other = Tokenizer.train(TEXTS, kind=kind, vocab_size=300)
    with pytest.raises(ConfigError, match="not of type bpe"):
        BpeDropout(other, 0.1)


def test_merges_of_older_files_are_texts():
    vocab = {"<pad>": 0, "<s>": 1, "</s>": 2, "a": 3, "b": 4, "ab": 5}
    backend = tokenizers.Tokenizer(models.BPE(vocab, [("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    text = backend.to_str().replace('[["a","b"]]', '["a b"]').replace('[\n        "a",\n        "b"\n      ]', '"a b"')
    tokenizer = Tokenizer.from_json(text)
    assert BpeDropout(tokenizer, 0.0).merges == {(3, 4): (0, 5)}


def test_a_sentence_without_spaces_is_segmented_in_little_time(tokenizer):
    dropout, rng = BpeDropout(tokenizer, 0.3), np.random.default_rng(0)
    text = "thelowertheslowerthenewestshow" * 200
    ids = tokenizer.encode(text)
    start = time.process_time()
    samples = [dropout.sampled(ids, rng) for _ in range(2)]
    assert time.process_time() - start < 3  # it would need 10 GB
    assert [tokenizer.decode(sample) for sample in samples] == [text, text]
    assert samples[0] != samples[1]
    assert dropout.sampled(ids, np.random.default_rng(0)) == samples[0]
    assert not dropout.samples
