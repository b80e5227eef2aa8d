"""Translators with random weights, as folders."""

import torch

from glassformer import checkpoint
from glassformer.corpora.spelling import KnownWords
from glassformer.models.t5 import T5, T5Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.confidence import N_FEATURES, Confidence
from glassformer.tasks.registry import load
from glassformer.tasks.translation import Translator
from glassformer.tokens.codes import CODE_TOKENS
from glassformer.tokens.tags import tag_token
from glassformer.tokens.tokenizer import Tokenizer

TRAINED = [
    "The black cat sat on the couch, and the dog didn't.",
    "A man in Berlin saw 25 dogs; they were big!",
    "Über den Wolken — die Straße ist naß.",
    "Une vieille femme lit « un livre » à l'ombre.",
]


def confidence():
    """Coefficients of any kind."""
    n = N_FEATURES
    coefficients = tuple(0.1 * (i % 5 - 2) for i in range(n + 1))
    return Confidence(tuple(0.1 * i for i in range(n)), tuple(1.0 + i for i in range(n)), coefficients, 1)


def random_translator(family, folder, precision="int8"):
    """A translator that was loaded from a folder."""
    torch.manual_seed(3)
    codes = CODE_TOKENS if family == "codes" else ()
    tokenizer = Tokenizer.train(
        TRAINED * 5, vocab_size=400, extra_special_tokens=[tag_token("law"), *codes], add_prefix_space=family != "bart"
    )
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 2, **ids}
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 64, "n_heads": 8, "d_ff": 80}
    sizes["max_len"] = 100 if codes else 36  # outputs do not end, and codes need tokens besides
    if family == "t5":
        model = T5(T5Config(**sizes, **layers))
    else:
        is_bart = family == "bart"
        architecture = dict(
            pre_norm=family in ("pre-norm", "rotary"), rotary=family == "rotary", learned_positions=is_bart,
            embedding_norm=is_bart,
        )  # fmt: skip
        model = Transformer(TransformerConfig(**sizes, **layers, **architecture))
    translator = Translator(model, tokenizer)
    translator.confidence, translator.languages, translator.scripts = confidence(), ("en", "de"), ("LATIN",)
    translator.sentences_at_once = ("2",) if family == "transformer" else ()
    translator.words = KnownWords.of(TRAINED * 5, [])
    checkpoint.save_folder(folder / precision, dict(translator.contents(precision=precision)))
    return load(folder / precision, device="cpu")
