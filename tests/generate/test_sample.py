import numpy as np
import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.generate.rules import apply, sampling_rules, search_rules
from glassformer.generate.sample import Sampling, random_generator
from glassformer.generate.search import Hypothesis
from glassformer.models.decoding import decodable
from glassformer.models.gpt2 import Gpt2, Gpt2Config

EOS, VOCAB = 2, 23


@pytest.fixture
def model() -> Gpt2:
    config = Gpt2Config(vocab_size=VOCAB, d_model=22, n_heads=2, d_ff=37, n_layers=2, max_len=41)
    model = Gpt2(config).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return model


def sample(model, src, limits, **options):
    """One sampled continuation of each source."""
    model, steps = decodable(model), [[] for _ in limits]
    sampling = Sampling(*model.start(src.tolist()), limits, **options)
    while sampling.alive:
        for row, token, log_prob in sampling.step(model):
            steps[row].append((token, log_prob))
        sampling.remove_ended()
    return [[Hypothesis([t for t, _ in row], [p for _, p in row], sum(p for _, p in row))] for row in steps]


def as_dense(logits, **options) -> torch.Tensor:
    """Probabilities of the distribution to sample from."""
    no_tokens = np.empty((len(logits), 0), np.int64)
    scores = apply(sampling_rules(DecodeConfig(**options)), logits.double().numpy(), no_tokens)
    return torch.from_numpy(scores).softmax(-1)


def drawn(**options) -> dict:
    """Arguments of `sample` for options of sampling."""
    return {"warpers": sampling_rules(DecodeConfig(**options))}


def test_without_limits_every_token_keeps_its_probability():
    logits = torch.randn(5, VOCAB)
    torch.testing.assert_close(as_dense(logits, temperature=0.7), (logits.double() / 0.7).softmax(-1))


def test_top_k_keeps_the_k_most_probable():
    logits = torch.randn(5, VOCAB)
    kept = as_dense(logits, top_k=3)
    assert (kept > 0).sum(-1).tolist() == [3] * 5
    expected = logits.double().softmax(-1)
    expected[expected < expected.topk(3).values[:, -1:]] = 0
    torch.testing.assert_close(kept, expected / expected.sum(-1, keepdim=True))


@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 1.0])
def test_top_p_keeps_the_smallest_set_with_total_probability_p(top_p):
    logits = torch.randn(7, VOCAB)
    probs = logits.double().softmax(-1)
    kept = as_dense(logits, top_p=top_p) > 0
    for row, keeps in zip(probs, kept, strict=True):
        chosen = row[keeps].sort(descending=True).values
        assert chosen.sum() >= top_p - 1e-12
        assert len(chosen) == 1 or chosen[:-1].sum() < top_p  # one fewer would not do
        assert not row[~keeps].numel() or row[~keeps].max() <= chosen.min()


def test_top_p_keeps_the_tokens_that_are_as_probable_as_the_last_of_the_set():
    kept = as_dense(torch.tensor([[0.4, 0.2, 0.2, 0.2]]).log(), top_p=0.5)
    torch.testing.assert_close(kept, torch.tensor([[0.4, 0.2, 0.2, 0.2]], dtype=torch.float64))
    kept = as_dense(torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log(), top_p=0.5)
    assert (kept > 0).tolist() == [[True, True, False, False]]


def test_sampled_frequencies_match_the_probabilities(model):
    """First tokens of many texts compared with the probabilities of the model."""
    n = 4000
    src = torch.tensor([[5, 7]]).expand(n, -1)
    found = sample(model, src, [1] * n, eos_ids=[EOS], seed=3, indices=range(n), **drawn(temperature=1.3))
    counts = torch.bincount(torch.tensor([best[0].ids[0] for best in found]), minlength=VOCAB) / n
    with torch.no_grad():
        probs = (model.logits(model(src[:1]))[0, -1] / 1.3).softmax(-1)
    assert (counts - probs).abs().max() < 4 * 0.5 / n**0.5


def test_sampling_in_a_batch_equals_sampling_alone(model):
    src = torch.randint(3, VOCAB, (7, 5))
    options = dict(eos_ids=[EOS], seed=11, **drawn(top_k=9))
    together = sample(model, src, [13] * 7, indices=range(7), **options)
    alone = [sample(model, src[i : i + 1], [13], indices=[i], **options)[0] for i in range(7)]
    assert [best[0].ids for best in together] == [best[0].ids for best in alone]


@pytest.mark.parametrize("n", [1, 2])
def test_banned_ngrams_are_not_repeated(model, n):
    src = torch.tensor([[5, 7]]).expand(100, -1)
    options = dict(eos_ids=[EOS], seed=3, indices=range(100), **drawn(top_k=4))
    banned_ngram_tokens = lambda ids: len(ids) - n + 1 - len({tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)})
    assert any(banned_ngram_tokens(best.ids) for (best,) in sample(model, src, [17] * 100, **options))
    rules = search_rules(options=DecodeConfig(no_repeat_ngram_size=n))
    for (best,) in sample(model, src, [17] * 100, **options, rules=rules):
        assert banned_ngram_tokens(best.ids) == 0
        with torch.no_grad():
            log_probs = model.logits(model(torch.tensor([[5, 7, *best.ids[:-1]]])))[0, 1:].log_softmax(-1)
        assert best.log_probs == pytest.approx(log_probs[range(len(best.ids)), best.ids].tolist(), abs=1e-4)


def test_random_numbers_are_a_function_of_seed_and_index():
    uniform_numbers = lambda seed, index, n: random_generator(seed, index).random(n)
    assert uniform_numbers(1, 5, 7).tolist() == uniform_numbers(1, 5, 7).tolist()
    assert uniform_numbers(1, 5, 7).tolist() != uniform_numbers(1, 6, 7).tolist()
    assert uniform_numbers(1, 5, 7).tolist() != uniform_numbers(2, 5, 7).tolist()
    assert uniform_numbers(1, 5, 7).tolist() == uniform_numbers(1, 5, 9)[:7].tolist()


def test_sampling_ends_at_the_end_token_and_the_limit(model):
    src = torch.randint(3, VOCAB, (7, 5))
    limits = [3, 11, 5, 7, 13, 2, 9]
    for row, best in enumerate(sample(model, src, limits, eos_ids=[EOS], seed=5, indices=range(7))):
        assert len(best[0].ids) <= limits[row]
        assert EOS not in best[0].ids[:-1]


@torch.no_grad()
def test_log_probs_equal_those_of_the_full_forward_pass(model):
    src = torch.randint(3, VOCAB, (1, 5))
    best = sample(model, src, [9], eos_ids=[EOS], seed=1, **drawn(temperature=2.0))[0][0]
    whole = torch.cat([src, torch.tensor([best.ids])], dim=1)
    log_probs = model.logits(model(whole[:, :-1])).log_softmax(-1)[0, 4:]
    expected = log_probs.gather(1, torch.tensor(best.ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(best.log_probs), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_min_p_keeps_the_tokens_above_a_fraction_of_the_best(p):
    logits = torch.randn(5, VOCAB)
    probs = logits.double().softmax(-1)
    kept = as_dense(logits, min_p=p)
    assert torch.equal(kept > 0, probs >= p * probs.amax(-1, keepdim=True))


@pytest.mark.parametrize("p", [0.2, 0.6, 0.95])
def test_typical_p_keeps_the_tokens_nearest_to_the_entropy(p):
    logits = torch.randn(7, VOCAB) * 2
    kept = as_dense(logits, typical_p=p) > 0
    for row, expected in zip(kept, logits.double().softmax(-1), strict=True):
        entropy = -(expected * expected.log()).sum()
        order = sorted(range(VOCAB), key=lambda i: abs(-expected[i].log() - entropy))
        total, chosen = 0.0, set()
        for i in order:
            chosen.add(i)
            total += float(expected[i])
            if total >= p:
                break
        assert set(row.nonzero()[:, 0].tolist()) == chosen


def test_repetition_penalty_and_minimum_length():
    logits = torch.tensor([[2.0, -1.0, 3.0, 0.5]])
    rules = search_rules(options=DecodeConfig(repetition_penalty=2.0, min_length=2), eos_id=2)
    changed = torch.from_numpy(apply(rules, logits.numpy().copy(), np.array([[0]])))
    expected = torch.tensor([[1.0, -1.0, 3.0, 0.5]]).log_softmax(-1)
    expected[0, 2] = -torch.inf
    torch.testing.assert_close(changed, expected)
    changed = torch.from_numpy(apply(rules, logits.numpy().copy(), np.array([[0, 1]])))
    torch.testing.assert_close(changed, torch.tensor([[1.0, -2.0, 3.0, 0.5]]).log_softmax(-1))


def test_sampled_tokens_have_the_frequencies_of_the_distribution(model):
    """Chi-square test of the first token of 4,000 draws."""
    n = 4000
    src = torch.full((n, 3), 5)
    drawn_tokens = [
        hypotheses[0].ids[0]
        for hypotheses in sample(
            model, src, [1] * n, eos_ids=[EOS], indices=range(n), rules=search_rules(), **drawn(temperature=1.0)
        )
    ]
    with torch.inference_mode():
        state, last = model.start(src[:1])
        expected = model.step(last, state).double().softmax(-1)[0] * n
    counts = torch.bincount(torch.tensor(drawn_tokens), minlength=VOCAB)
    frequent = expected >= 5
    statistic = float(((counts - expected)[frequent] ** 2 / expected[frequent]).sum())
    assert statistic < 60  # the probability of 60 with 22 degrees of freedom is 2e-5
