"""The untrained task of a run, and its objective."""

from collections.abc import Sequence

import torch

from glassformer.learning.base import AnyObjective
from glassformer.learning.embeddings import init_embeddings
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.tasks.base import Log
from glassformer.tasks.registry import load
from glassformer.tasks.texts import no_op
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import Processes
from glassformer.training.memory import check_model_fits
from glassformer.training.scan import CorpusInfo

HEAD = "classifier."
"""Beginning of the names of the weights of a head for labels."""


def build(
    config: TrainConfig,
    objective_type: type[AnyObjective],
    corpus_info: CorpusInfo,
    base: Model | None,
    device: torch.device,
    processes: Processes,
    log: Log = no_op,
    *,
    base_labels: Sequence[str] = (),
) -> AnyObjective:
    """Build the untrained task with its objective, with the weights of `base` where names and shapes match.

    Args:
        base_labels: labels of `base`, whose head is used only for the same ones.

    Raises:
        UserError: the device has too little memory for the model.
    """
    assert config.family is not None
    task_type = objective_type.task_type
    model_class = FAMILIES[config.family]
    config_class = model_class.config_class
    options = base.config.model_dump() if base else {}
    n_layers = dict.fromkeys(("n_layers", "n_encoder_layers", "n_decoder_layers"), config.n_layers)
    explicit = {} if base else {**config.model_dump(exclude_none=True), **n_layers}
    if base and config.dropout is not None:
        explicit["dropout"] = config.dropout
    if config.dropout == "auto":  # the training sets it
        explicit.pop("dropout")
    tokenizer = corpus_info.tokenizer
    derived = {
        **task_type.head_config,
        **({"n_labels": task_type.n_labels(corpus_info.labels)} if "n_labels" in config_class.model_fields else {}),
        **({"pooling": config.pooling} if config.pooling else {}),
        "vocab_size": base.config.vocab_size if base else tokenizer.vocab_size,
        "pad_id": tokenizer.pad_id,
        "bos_id": base.config.bos_id if base else tokenizer.bos_id,
        "eos_id": tokenizer.eos_id,
    }
    options |= {name: value for name, value in {**explicit, **derived}.items() if name in config_class.model_fields}
    options |= config.model or {}
    model_config = config_class.resolve(options, environment={})
    check_model_fits(config, model_class, model_config, device, processes)
    model = model_class(model_config)
    if base:
        load_matching_weights(model, base, with_head=tuple(base_labels) == tuple(corpus_info.labels))
    task = task_type(model, tokenizer, device, corpus_info.labels)
    objective = objective_type(task)
    objective.configure(config)
    if config.embeddings:
        n_shared, n = init_embeddings(task, load(config.embeddings, device="cpu")), tokenizer.vocab_size
        few = "warning: only " if n_shared < n / 10 else ""
        log(f"Embeddings: {few}{n_shared:,} of {n:,} tokens are in the vocabulary of {config.embeddings}.")
    return objective


def load_matching_weights(model: Model, base: Model, *, with_head: bool) -> None:
    """Copy the weights of `base` that have the same names and shapes. Other weights keep their initial values.

    Args:
        with_head: also those of the head for labels.
    """
    own = model.state_dict()
    matching = {
        name: value
        for name, value in base.state_dict().items()
        if name in own and own[name].shape == value.shape and (with_head or not name.startswith(HEAD))
    }
    model.load_state_dict({**own, **matching})
