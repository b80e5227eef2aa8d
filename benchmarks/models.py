"""Models with random weights."""

import torch

from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.translation import Translator


def random_translator(tokenizer, **sizes):
    """A translator with random weights, base sizes by default, whose outputs are as long as they can be."""
    torch.manual_seed(0)
    task = Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)
    with torch.no_grad():  # the logit of the end token is 0: it is never among the best
        task.model.embedding.weight[tokenizer.eos_id] = 0
    task.scripts = ("LATIN",)  # as a training finds them; without, they are found in the vocabulary
    return task
