"""Registry of model families: name in config.json -> config class and model class."""

from glassformer.model_config import (
    BertConfig,
    Gpt2Config,
    ModelConfig,
    RnnConfig,
    SkipGramConfig,
    T5Config,
    TransformerConfig,
)
from glassformer.models.base import Model
from glassformer.models.bert import Bert
from glassformer.models.gpt2 import Gpt2
from glassformer.models.rnn import Rnn
from glassformer.models.skipgram import SkipGram
from glassformer.models.t5 import T5
from glassformer.models.transformer import Transformer

FAMILIES: dict[str, tuple[type[ModelConfig], type[Model]]] = {
    "transformer": (TransformerConfig, Transformer),
    "bert": (BertConfig, Bert),
    "gpt2": (Gpt2Config, Gpt2),
    "t5": (T5Config, T5),
    "rnn": (RnnConfig, Rnn),
    "skipgram": (SkipGramConfig, SkipGram),
}


def family_of(model: Model) -> str:
    """Name of a model's family, as in config.json."""
    return next(name for name, (_, model_class) in FAMILIES.items() if type(model) is model_class)
