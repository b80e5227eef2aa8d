"""BERT run by the C library and by PyTorch, against the model in fp32."""

import numpy as np
import pytest
import torch

from glassformer.kernels.library import load
from glassformer.models.bert import Bert, BertConfig
from glassformer.recording.precision import runtime_of

TEXTS = [[5, 7, 9, 4, 11], [6, 8], [30, 12, 3, 17, 18, 19, 20]]
TYPES = [[0, 0, 1, 1, 1], [0, 0], [0] * 7]


def encoder(**config: int | bool) -> Bert:
    torch.manual_seed(0)
    sizes = {"vocab_size": 37, "d_model": 48, "n_heads": 3, "d_ff": 101, "n_layers": 2, "max_len": 23}
    return Bert(BertConfig(**(sizes | config), head="none", pooler=False)).eval().requires_grad_(False)


@pytest.mark.parametrize(
    "config", [{}, {"pre_norm": True}, {"n_token_types": 0}, {"n_token_types": 1, "position_offset": 2}]
)
def test_recorded_program_equals_the_model(config):
    model = encoder(**config)
    for ids, types, hidden in zip(TEXTS, TYPES, runtime_of(model, None, is_quantized=False)(TEXTS, TYPES), strict=True):
        expected = model(torch.tensor([ids]), torch.tensor([types]))[0]
        torch.testing.assert_close(
            torch.from_numpy(hidden), expected, atol=0.02, rtol=0
        )  # keys and values are in half precision


@pytest.mark.parametrize("is_compiled", [True, False])
def test_int8_is_close_to_fp32_and_independent_of_the_batch(is_compiled):
    model, kernels = encoder(), load()[0] if is_compiled else None
    compiled = runtime_of(model, kernels)
    for ids, types, hidden in zip(TEXTS, TYPES, compiled(TEXTS, TYPES), strict=True):
        expected = model(torch.tensor([ids]), torch.tensor([types]))[0]
        assert torch.cosine_similarity(torch.from_numpy(hidden), expected, dim=-1).min() > 0.99
        assert np.array_equal(hidden, compiled([ids], [types])[0])
