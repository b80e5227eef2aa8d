import math

import torch

from glassformer.nn.positions import sinusoids

D_MODEL = 512


def test_sinusoids_follow_the_papers_formula():
    table = sinusoids(53, 14)
    for pos, i in [(0, 0), (1, 0), (7, 3), (52, 6)]:
        angle = pos / 10000 ** (2 * i / 14)
        assert math.isclose(table[pos, 2 * i], math.sin(angle), abs_tol=1e-6)
        assert math.isclose(table[pos, 2 * i + 1], math.cos(angle), abs_tol=1e-6)


def test_cosine_of_positions_2_and_10_is_the_papers_not_the_doubled_exponents():
    table = sinusoids(11, D_MODEL).double()
    cosine = torch.nn.functional.cosine_similarity(table[2], table[10], dim=0)
    assert math.isclose(cosine, 0.7225201, abs_tol=1e-6)  # the tutorial's trap gives 0.8600013
