"""glassformer: train, run and explain Transformers from your own text.

import glassformer as gf

gf.train("train.en", "train.fr", out="en-fr")
translator = gf.load("en-fr")
translator("The black cat sat on the couch.")
"""

import os
from typing import TYPE_CHECKING

from glassformer.version import __version__

# OpenMP threads that wait in a busy loop without limit are very slow as soon as other processes use the cores: decoding
# that takes 3 s took more than 60 s. With this limit, threads sleep after a while, without measurable cost.
# The variable is read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

__all__ = ["__version__", "distill", "inspect", "load", "pipeline", "record_activations", "train"]

if TYPE_CHECKING:
    from glassformer.api import distill as distill
    from glassformer.api import inspect as inspect
    from glassformer.api import record_activations as record_activations
    from glassformer.api import train as train
    from glassformer.pipelines import pipeline as pipeline
    from glassformer.tasks.registry import load as load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in ("distill", "inspect", "record_activations", "train"):
        from glassformer.devices import require_torch

        require_torch(f"glassformer.{name}")
        from glassformer import api  # torch takes seconds to import

        return getattr(api, name)
    if name == "load":
        from glassformer.tasks.registry import load

        return load
    if name == "pipeline":
        from glassformer.pipelines import pipeline

        return pipeline
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}")
