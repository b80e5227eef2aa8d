"""The untrained task of a run, and its objective."""

import torch

from glassformer.learning.base import AnyObjective
from glassformer.learning.embeddings import init_embeddings
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.tasks.registry import load
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import Processes
from glassformer.training.memory import check_model_fits
from glassformer.training.scan import CorpusInfo


def build(
    config: TrainConfig,
    objective_type: type[AnyObjective],
    corpus_info: CorpusInfo,
    base: Model | None,
    device: torch.device,
    processes: Processes,
) -> AnyObjective:
    """Build the untrained task with its objective, with the weights of `base` where names and shapes match.

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
        load_matching_weights(model, base)
    task = task_type(model, tokenizer, device, corpus_info.labels)
    objective = objective_type(task)
    objective.configure(config)
    if config.embeddings:
        init_embeddings(task, load(config.embeddings, device="cpu"))
    return objective


def load_matching_weights(model: Model, base: Model) -> None:
    """Copy the weights of `base` that have the same names and shapes. Other weights keep their initial values."""
    own = model.state_dict()
    matching = {
        name: value for name, value in base.state_dict().items() if name in own and own[name].shape == value.shape
    }
    model.load_state_dict({**own, **matching})
