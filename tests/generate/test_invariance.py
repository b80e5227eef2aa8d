"""The decoding result of a sentence does not depend on the other sentences, the batch or the padding."""

import random

import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.generate.batches import batches_by_length, padded_length
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from glassformer.models.decoding import decodable
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.generate.sources import unpadded

PAD, BOS, EOS = 0, 1, 2
VOCAB, SRC, TGT = 23, 11, 13


def random_model(d_model: int, vocab_size: int = VOCAB, *, n_layers: int = 2, pre_norm: bool = False) -> Transformer:
    config = TransformerConfig(
        vocab_size=vocab_size, d_model=d_model, n_heads=2, d_ff=3 * d_model + 1, n_encoder_layers=n_layers,
        n_decoder_layers=n_layers, pre_norm=pre_norm, max_len=56,
    )  # fmt: skip
    model = Transformer(config).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model


def ragged(lengths: list[int], width: int) -> torch.Tensor:
    ids = torch.full((len(lengths), width), PAD)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, VOCAB, (length,))
    return ids


@pytest.mark.parametrize("pre_norm", [False, True])
@torch.no_grad()
def test_cached_decoding_gives_the_logits_of_the_full_forward_pass(pre_norm):
    model = random_model(22, pre_norm=pre_norm)
    src, tgt = ragged([11, 2, 7], SRC), torch.randint(3, VOCAB, (3, TGT))
    state, _ = model.start(src)
    stepwise = torch.stack([model.step(ids, state) for ids in tgt.T], dim=1)
    torch.testing.assert_close(stepwise, model.logits(model(src, tgt)), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_cached_decoding_follows_the_selected_hypotheses():
    """Three hypotheses per sentence, reordered after every step; one sentence is removed in between."""
    model, beam = random_model(22), 3
    src = ragged([11, 2, 7], SRC)
    (state, last), generated = model.start(src, beam), torch.empty(9, 0, dtype=torch.long)
    sentences = torch.arange(3)
    for step in range(TGT):
        generated = torch.cat([generated, last[:, None]], dim=1)
        whole = model.logits(model(src[sentences].repeat_interleave(beam, 0), generated))[:, -1]
        torch.testing.assert_close(model.step(last, state), whole, rtol=1e-5, atol=1e-5)
        keep = torch.tensor([0, 2]) if step == 5 else torch.arange(len(sentences))
        parents = (keep[:, None] * beam + torch.randint(beam, (len(keep), beam))).flatten()
        state.select(parents, keep if step == 5 else None)
        generated, sentences = generated[parents], sentences[keep]
        last = torch.randint(3, VOCAB, (len(parents),))


@torch.no_grad()
def test_source_padding_changes_nothing():
    model, tgt = random_model(22), torch.randint(3, VOCAB, (3, TGT))
    src = ragged([5, 2, 3], 5)
    padded = torch.nn.functional.pad(src, (0, 7), value=PAD)
    torch.testing.assert_close(model(padded, tgt), model(src, tgt), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_target_padding_does_not_change_earlier_positions():
    model, src = random_model(22), ragged([5, 2, 3], SRC)
    tgt = torch.randint(3, VOCAB, (3, TGT))
    padded = torch.nn.functional.pad(tgt, (0, 7), value=PAD)
    torch.testing.assert_close(model(src, padded)[:, :TGT], model(src, tgt), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_the_embedding_of_padding_changes_nothing():
    model, src, tgt = random_model(22), ragged([5, 2, 3], SRC), torch.randint(3, VOCAB, (3, TGT))
    before = model(src, tgt)
    model.embedding.weight[PAD] = 7.0
    torch.testing.assert_close(model(src, tgt), before, rtol=1e-5, atol=1e-5)


def differing(ours: list, theirs: list) -> list[int]:
    """Indices of the items that differ: short enough to print, unlike the items."""
    return [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]


def test_searching_in_a_batch_equals_searching_alone():
    model = random_model(32)
    src, limits = ragged([8, 1, 5, 7, 2], 8), [11, 3, 7, 5, 13]
    ask = dict(eos_id=EOS, rules=search_rules((PAD, BOS)), beam=3, nbest=3)
    model, sources = decodable(model), unpadded(src, PAD)
    together = beam_search(model, sources, limits, **ask)
    alone = [beam_search(model, sources[i : i + 1], limits[i : i + 1], **ask)[0] for i in range(5)]
    assert differing(together, alone) == []


def sentences(n: int, seed: int) -> list[str]:
    """Random sentences of 1 to 11 words, some of them twice."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmno", k=rng.randint(1, 5))) for _ in range(29)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 11))) for _ in range(n - 3)] + [words[0], words[1], words[0]]


TEXTS = sentences(41, seed=7)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(sentences(499, seed=3), vocab_size=331)


@pytest.fixture(scope="module", params=[pytest.param(32, marks=pytest.mark.slow), 128])
def translator(request, tokenizer) -> Translator:
    torch.manual_seed(request.param)
    return Translator(random_model(request.param, tokenizer.vocab_size, n_layers=1), tokenizer)


def translate_nbest(translator: Translator, texts: list[str], beam: int, batch_tokens: int) -> list:
    """The n-best list of each text, with tokens, scores and log_probs."""
    options = DecodeConfig(beam=beam, nbest=beam, max_length=5, batch_tokens=batch_tokens)
    return translator.translate(texts, options)


@pytest.fixture(
    scope="module", params=[pytest.param(1, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow), 4]
)
def beam(request) -> int:
    return request.param


@pytest.fixture(scope="module")
def alone(translator, beam) -> list:
    """Translations of TEXTS, decoded one at a time."""
    return translate_nbest(translator, TEXTS, beam, batch_tokens=1)


@pytest.mark.parametrize("batch_tokens", [67, 499, 100_003])
def test_translations_are_bit_identical_for_any_batch_size(translator, beam, alone, batch_tokens):
    assert differing(translate_nbest(translator, TEXTS, beam, batch_tokens), alone) == []


def test_translations_are_bit_identical_for_any_order(translator, beam, alone):
    for seed in range(2):
        order = random.Random(seed).sample(range(len(TEXTS)), len(TEXTS))
        shuffled = translate_nbest(translator, [TEXTS[i] for i in order], beam, batch_tokens=199)
        assert differing(shuffled, [alone[i] for i in order]) == []


def test_translations_are_bit_identical_in_any_batch(translator, beam, alone):
    for seed in range(3):
        some = random.Random(seed).sample(range(len(TEXTS)), 7)
        among_some = translate_nbest(translator, [TEXTS[i] for i in some], beam, batch_tokens=499)
        assert differing(among_some, [alone[i] for i in some]) == []


@pytest.mark.parametrize("batch_tokens", [1, 37, 499])
def test_batches_contain_every_item_once_with_equal_padded_length_within_batch_tokens(batch_tokens):
    rng = random.Random(17)
    lengths = [rng.randint(1, 97) for _ in range(211)]
    batches = list(batches_by_length(lengths, batch_tokens))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        (width,) = {padded_length(lengths[i]) for i in batch}
        assert width * len(batch) <= batch_tokens or len(batch) == 1
