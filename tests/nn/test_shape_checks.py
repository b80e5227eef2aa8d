"""The shapes and types in signatures are checked."""

import os

import jaxtyping
import pytest
import torch

from glassformer.nn.linear import Linear


@pytest.mark.skipif(os.environ.get("JAXTYPING_DISABLE") == "1", reason="JAXTYPING_DISABLE=1")
def test_a_tensor_that_does_not_fit_the_signature_is_an_error():
    with pytest.raises(jaxtyping.TypeCheckError):
        Linear(4, 3)(torch.zeros(2, 4, dtype=torch.long))
