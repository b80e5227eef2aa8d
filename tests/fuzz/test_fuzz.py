"""A part of the inputs of `benchmarks/fuzz.py`, without coverage: seeds, those that once failed, and random changes."""

from pathlib import Path

import pytest

from tests.fuzz.mutations import mutations
from tests.fuzz.seeds import WORDS, seeds_of
from tests.fuzz.targets import MODEL_TARGETS, TARGETS

CRASHES = Path(__file__).with_name("crashes")
N_INPUTS = 1000
N_MODELS = 40
"""The same for the targets that load or execute a model."""


def test_there_are_seeds_for_each_target():
    assert all(map(seeds_of, TARGETS))
    assert {path.name.partition("-")[0] for path in CRASHES.iterdir()} <= set(TARGETS)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("path", sorted(CRASHES.iterdir()), ids=lambda path: path.name)
def test_what_once_failed(path):
    TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")  # of forms that are refused
@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_are_changed_at_random(name):
    n = N_MODELS if name in MODEL_TARGETS else N_INPUTS
    seeds = seeds_of(name)
    for data in [*seeds, *mutations(seeds, WORDS, n, seed=1)]:
        try:
            TARGETS[name](data)
        except Exception as error:
            error.add_note(f"input: {data!r}")
            raise
