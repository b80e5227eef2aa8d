"""Every family of models by its name in config.json."""

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
    """The name of a model's family."""
    return next(name for name, (_, kind) in FAMILIES.items() if type(model) is kind)
