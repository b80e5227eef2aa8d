"""Logits and search against transformers' MarianMTModel with the same weights."""

import pytest
import torch

from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from glassformer.models.decoding import decodable
from glassformer.models.transformer import Transformer, TransformerConfig
from tests.generate.sources import unpadded

pytest.importorskip("transformers")

from benchmarks.marian import marian_with_weights_of

VOCAB, D_MODEL, HEADS, D_FF, LAYERS, MAX_LEN = 37, 22, 11, 31, 2, 40
PAD, BOS, EOS = 0, 1, 2


@pytest.fixture(scope="module")
def both():
    torch.manual_seed(3)
    ours = Transformer(
        TransformerConfig(
            vocab_size=VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_encoder_layers=LAYERS,
            n_decoder_layers=LAYERS, dropout=0, max_len=MAX_LEN,
        )
    ).eval()  # fmt: skip
    for p in ours.parameters():
        torch.nn.init.normal_(p, std=0.35)
    return ours, marian_with_weights_of(ours)


@pytest.fixture(scope="module")
def src():
    torch.manual_seed(5)
    ids = torch.randint(3, VOCAB, (7, 8))
    for row, length in enumerate((8, 3, 5, 7, 2, 8, 1)):
        ids[row, length:] = PAD
    return ids


def test_logits_match_marian_over_ragged_batches(both, src):
    ours, theirs = both
    tgt = torch.randint(3, VOCAB, (7, 5))
    tgt[:, 0] = BOS
    with torch.no_grad():
        expected = theirs(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt).logits
        torch.testing.assert_close(ours.logits(ours(src, tgt)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_marians_tokens(both, src, beam):
    ours, theirs = both
    max_len = 17
    with torch.no_grad():
        expected = theirs.generate(
            input_ids=src, attention_mask=src != PAD, num_beams=beam, do_sample=False, max_new_tokens=max_len,
            length_penalty=0.0, early_stopping=True, bad_words_ids=[[PAD], [BOS]],
        )  # fmt: skip
    found = beam_search(
        decodable(ours),
        unpadded(src, PAD),
        [max_len] * len(src),
        eos_id=EOS,
        rules=search_rules((PAD, BOS)),
        beam=beam,
        alpha=0.0,
    )
    for ours_best, theirs_ids in zip(found, expected.tolist(), strict=True):
        ids = [i for i in theirs_ids[1:] if i != PAD]
        assert ours_best[0].ids == ids
