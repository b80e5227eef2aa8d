"""The fixtures of tests/journeys that models need."""

from tests.journeys.conftest import corpus, model

__all__ = ["corpus", "model"]
