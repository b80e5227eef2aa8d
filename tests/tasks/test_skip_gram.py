"""Skip-gram with negative sampling."""

import numpy as np
import pytest
import torch

from glassformer.checkpoint import save_folder
from glassformer.errors import CheckpointError, UserError
from glassformer.learning.embeddings import init_embeddings
from glassformer.learning.skip_gram import SkipGramObjective
from glassformer.models.skipgram import SkipGram, SkipGramConfig
from glassformer.objectives.skip_gram import N_NEGATIVES, SUBSAMPLING_THRESHOLD, WINDOW, PairSampler
from glassformer.tasks.documents import Document
from glassformer.tasks.embeddings import nearest_tokens
from glassformer.tasks.registry import load
from glassformer.tasks.skip_gram import WordVectors
from glassformer.tokens.tokenizer import Tokenizer

ANIMALS, COLORS = ["cat", "dog", "cow", "hen", "fox"], ["red", "blue", "pink", "gray", "teal"]


@pytest.fixture
def vectors() -> WordVectors:
    tokenizer = Tokenizer.train([" ".join(ANIMALS + COLORS)], kind="word", vocab_size=100)
    return WordVectors(SkipGram(SkipGramConfig(vocab_size=tokenizer.vocab_size, d_model=11)), tokenizer)


def test_the_loss_equals_that_of_the_paper(vectors):
    words, context_ids, negative_ids = torch.tensor([3, 5]), torch.tensor([4, 6]), torch.tensor([[7, 8, 9], [3, 3, 4]])
    for p in vectors.model.parameters():
        torch.nn.init.normal_(p)
    v, u = vectors.model.embedding.weight, vectors.model.context_embedding.weight
    logistic = lambda x: 1 / (1 + torch.exp(-x))
    expected = 0.0
    for w, c, negatives in zip(words.tolist(), context_ids.tolist(), negative_ids.tolist(), strict=True):
        expected -= logistic(v[w] @ u[c]).log() + sum(logistic(-v[w] @ u[n]).log() for n in negatives)
    torch.testing.assert_close(vectors.model(words, context_ids, negative_ids), expected)


def test_pairs_are_within_the_window_and_include_all_adjacent_words():
    row = list(range(3, 14))  # all words are distinct, so that a word identifies its position
    sampler = PairSampler(np.ones(14))
    sampler.keep_probs[:] = 1
    result = {(w, c) for seed in range(20) for w, c in as_pairs(sampler.sample([row], seed))}
    assert all(1 <= abs(w - c) <= WINDOW for w, c in result)
    assert {(w, c) for w in row for c in row if 1 <= abs(w - c) <= WINDOW} == result
    once = set(as_pairs(sampler.sample([row], 0)))
    assert {(w, c) for w in row for c in row if abs(w - c) == 1} <= once < result


def as_pairs(batch) -> list[tuple[int, int]]:
    return list(zip(batch.center_ids.tolist(), batch.context_ids.tolist(), strict=True))


def test_frequent_words_are_subsampled_as_in_word2vec():
    counts = np.ones(14)
    counts[5] = 10_000
    sampler = PairSampler(counts)
    frequency = 10_000 / counts.sum()
    assert sampler.keep_probs[5] == pytest.approx(
        (np.sqrt(frequency / SUBSAMPLING_THRESHOLD) + 1) * SUBSAMPLING_THRESHOLD / frequency
    )
    assert sampler.keep_probs[6] == 1


def test_negatives_are_sampled_in_proportion_to_the_word_counts_to_the_power_three_quarters():
    counts = np.arange(14, dtype=float) ** 2
    sampler = PairSampler(counts)
    sampler.keep_probs[:] = 1
    batch = sampler.sample([list(range(3, 14))] * 400, seed=1)
    assert batch.negative_ids.shape[1] == N_NEGATIVES
    result = torch.bincount(batch.negative_ids.flatten(), minlength=len(counts)) / batch.negative_ids.numel()
    expected = counts**0.75 / (counts**0.75).sum()
    assert np.abs(result.numpy() - expected).max() < 0.01


def test_words_with_similar_contexts_become_nearest_neighbors(vectors):
    rng = np.random.default_rng(3)
    lines = [" ".join(rng.choice(group, 6)) for _ in range(600) for group in (ANIMALS, COLORS)]
    objective = SkipGramObjective(vectors)
    rows, _ = objective.encode([Document(line, False, "a", 1) for line in lines])
    optimizer = torch.optim.Adam(vectors.model.parameters(), lr=0.05)
    objective.sampler.keep_probs[:] = 1
    for step in range(60):
        batch = objective.batch([rows[(20 * step + i) % len(rows)] for i in range(20)])
        optimizer.zero_grad()
        (objective.loss(batch) / batch.n_targets).backward()
        optimizer.step()
    assert {token for token, _ in nearest_tokens(vectors, "cat", 4)} == set(ANIMALS) - {"cat"}
    assert {token for token, _ in nearest_tokens(vectors, "teal", 4)} == set(COLORS) - {"teal"}


def test_an_unknown_word_is_an_error(vectors):
    with pytest.raises(UserError, match="not in the vocabulary"):
        nearest_tokens(vectors, "zebra")


def test_shared_tokens_are_initialized_with_the_word_vectors(vectors):
    tokenizer = Tokenizer.train(["the cat sat on a red rug"] * 3, kind="word", vocab_size=100)
    other = WordVectors(SkipGram(SkipGramConfig(vocab_size=tokenizer.vocab_size, d_model=11)), tokenizer)
    before = other.model.embedding.weight.clone()
    assert init_embeddings(other, vectors) == 2  # cat and red; special tokens are not counted
    cat = other.model.embedding.weight[tokenizer.encode("cat")[0]]
    mine = vectors.model.embedding.weight[vectors.tokenizer.encode("cat")[0]]
    torch.testing.assert_close(torch.cosine_similarity(cat, mine, dim=0), torch.tensor(1.0))
    assert torch.equal(other.model.embedding.weight[tokenizer.encode("rug")[0]], before[tokenizer.encode("rug")[0]])
    narrow = WordVectors(SkipGram(SkipGramConfig(vocab_size=tokenizer.vocab_size, d_model=7)), tokenizer)
    with pytest.raises(UserError, match="--d-model 11"):
        init_embeddings(narrow, vectors)


@pytest.mark.parametrize("shape", [None, (3, 11), (100, 11), (3,)])
def test_vectors_that_do_not_fit_the_config_are_refused(vectors, tmp_path, shape):
    contents = vectors.contents()
    weights = dict(contents["model.safetensors"])
    weight = weights.pop("embedding.weight")
    if shape:
        weights["embedding.weight"] = np.resize(np.asarray(weight), shape)
    save_folder(tmp_path / "model", {**contents, "model.safetensors": weights})
    with pytest.raises(CheckpointError, match=r"weights do not match the sizes in config\.json:\n  embedding\.weight"):
        load(tmp_path / "model")


def test_a_word_to_compare_with_has_the_tokens_that_it_has_within_a_text():
    tokenizer = Tokenizer.train(["cat sees cat"] * 97, vocab_size=290, add_prefix_space=False)
    task = WordVectors(SkipGram(SkipGramConfig(vocab_size=tokenizer.vocab_size, d_model=11)), tokenizer)
    tokens = [token for token, _ in nearest_tokens(task, "cat", tokenizer.vocab_size)]
    assert " sees" in tokens
    assert " cat" not in tokens  # the word itself
