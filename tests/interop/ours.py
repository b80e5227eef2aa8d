"""Untrained tasks of ours."""

import torch

from glassformer.models.families import FAMILIES
from glassformer.tasks.registry import task_class
from glassformer.tokens.tags import tag_token
from glassformer.tokens.tokenizer import Tokenizer
from tests.interop.theirs import LINES
from tests.tokens.options import tokenizer_options

SIZES = dict(d_model=22, n_heads=11, d_ff=31, n_layers=2, max_len=29)
LABELS = ("no", "yes", "maybe")


def make(name, family="bert", kind="bpe", tags=(), **sizes):
    """An untrained task with random weights."""
    task = task_class(name)
    options = tokenizer_options(name)
    options["extra_special_tokens"] = [*options["extra_special_tokens"], *map(tag_token, tags)]
    tokenizer = Tokenizer.train(LINES, kind=kind, vocab_size=331, **options)
    labels = LABELS if task.has_classes else ()
    model_class = FAMILIES[family]
    config_class = model_class.config_class
    names = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    if "n_labels" in config_class.model_fields:
        names["n_labels"] = task.n_labels(labels)
    given = {**SIZES, **task.head_config, **names, **sizes, "vocab_size": tokenizer.vocab_size}
    config = config_class(**{name: value for name, value in given.items() if name in config_class.model_fields})
    torch.manual_seed(3)
    model = model_class(config)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return task(model, tokenizer, "cpu", labels)
