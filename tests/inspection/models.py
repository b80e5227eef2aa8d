"""Small tasks of every model family with random weights, and input texts for them."""

from functools import cache

import torch

from glassformer.models.families import FAMILIES
from glassformer.tasks.registry import task_class
from glassformer.tokens.tokenizer import Tokenizer
from tests.tokens.options import tokenizer_options

TEXTS = [
    "The black cat sat on the couch.",
    "Der schwarze Hund schlief auf dem Teppich.",
    "naïve café 😀 <script>&amp;",
] * 3
SIZES = {
    "transformer": dict(d_model=22, n_heads=2, d_ff=31, n_encoder_layers=2, n_decoder_layers=3),
    "bert": dict(d_model=22, n_heads=2, d_ff=31, n_layers=2),
    "gpt2": dict(d_model=22, n_heads=2, d_ff=31, n_layers=2),
    "llama": dict(d_model=24, n_heads=6, n_kv_heads=2, d_ff=31, n_layers=2),
    "t5": dict(d_model=22, n_heads=2, d_head=5, d_ff=31, n_encoder_layers=2, n_decoder_layers=3),
    "rnn": dict(d_model=22, n_layers=2),
}
TASKS = {
    "translation": ("transformer", "t5", "rnn"),
    "causal-lm": ("gpt2", "llama"),
    "summarization": ("gpt2",),
    "classification": ("bert",),
    "regression": ("bert",),
    "tagging": ("bert",),
    "question-answering": ("bert",),
    "masked-lm": ("bert",),
    "bert-pretraining": ("bert",),
    "feature-extraction": ("bert",),
}
CASES = [(name, family) for name, families in TASKS.items() for family in families]
LABELS = {
    "classification": ("bad", "good", "so so"),
    "regression": ("0.0", "5.0"),
    "tagging": ("NOUN", "VERB"),
    "question-answering": ("",),
}


@cache
def tokenizer_of(kind, extra_special_tokens):
    return Tokenizer.train(TEXTS, vocab_size=331, kind=kind, extra_special_tokens=extra_special_tokens)


def make(name, family, *, kind="bpe", std=0.3, max_len=48, **sizes):
    """A task whose weights are all random."""
    task = task_class(name)
    tokenizer = tokenizer_of(kind, tokenizer_options(name)["extra_special_tokens"])
    labels = LABELS.get(name, ())
    model_class = FAMILIES[family]
    head = (
        dict(task.head_config, n_labels=task.n_labels(labels) if labels or name == "bert-pretraining" else 0)
        if family == "bert"
        else {}
    )
    ids = dict(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    torch.manual_seed(5)
    config = model_class.config_class(
        vocab_size=tokenizer.vocab_size, max_len=max_len, **SIZES[family] | sizes, **head, **ids
    )
    model = model_class(config)
    with torch.no_grad():
        for p in model.parameters():
            torch.nn.init.normal_(p, std=std)
    return task(model, tokenizer, labels=() if name == "question-answering" else labels)


def text_for(name):
    match name:
        case "question-answering":
            return "Who sat?\tThe black cat sat on the couch."
        case "masked-lm" | "bert-pretraining":
            return "The black <mask> sat on the couch."
    return "The black cat sat on the couch."


def at_most(task, n_tokens):
    """The option that limits the output, for models that generate text."""
    return {} if task.kind == "encoder" else {"max_length": n_tokens}
