"""Registry of model families. A new family is a model file and a row here."""

from glassformer.models.base import Kind, Model
from glassformer.models.bert import Bert
from glassformer.models.gpt2 import Gpt2
from glassformer.models.llama import Llama
from glassformer.models.rnn import Rnn
from glassformer.models.skipgram import SkipGram
from glassformer.models.t5 import T5
from glassformer.models.transformer import Transformer

FAMILIES: dict[str, type[Model]] = {
    "transformer": Transformer,
    "t5": T5,
    "rnn": Rnn,
    "bert": Bert,
    "gpt2": Gpt2,
    "llama": Llama,
    "skipgram": SkipGram,
}
"""Name in config.json -> model class."""


def family_of(model: Model) -> str:
    """Name of a model's family, as in config.json."""
    return next(name for name, model_class in FAMILIES.items() if type(model) is model_class)


def families_of_kind(kind: Kind) -> tuple[str, ...]:
    """Names of the families of one kind. The first is the default of the tasks that use this kind."""
    return tuple(name for name, model_class in FAMILIES.items() if model_class.kind == kind)
