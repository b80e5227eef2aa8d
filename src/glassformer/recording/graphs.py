"""The graph of a model, recorded once for each family and configuration."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model_config import ModelConfig
from glassformer.models.base import Model, WithoutWeights
from glassformer.models.bert import Bert
from glassformer.models.decoding import TransformerState
from glassformer.models.families import FAMILIES
from glassformer.recording.recorder import Cached, Index, PaddingMask, Recorder, Tables, UnsupportedError
from glassformer.runtime.graph import Graph, Input, Linear, Operation, ProgramName, Store
from glassformer.runtime.verify import ProgramError, verify


def graph_of(family: str, config: ModelConfig) -> Graph:
    """The graph of the models of a family with a configuration.

    Raises:
        UnsupportedError: they use a function that has no kernel.
    """
    return recorded(FAMILIES[family], type(config), config.model_dump_json())  # type: ignore[arg-type]


def graph_or_none(family: str, config: ModelConfig) -> Graph | None:
    """The graph of the models of a family; None if they use a function that has no kernel."""
    try:
        return graph_of(family, config)
    except UnsupportedError:
        return None


@lru_cache(maxsize=32)
def recorded(model_class: type[Model], config_class: type[ModelConfig], config: str) -> Graph:
    """`graph_of`, recorded from a model whose weights are zeros without memory: a graph does not depend on them."""
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        model = without_memory(model_class, config_class.model_validate_json(config))
        graph = record_encoder(model) if model_class.kind == "encoder" else record_generator(model)
    try:
        verify(graph)
    except ProgramError as error:
        raise UnsupportedError(f"a computation that has no program: {error}") from None
    return graph


def without_memory(model_class: type[Model], config: ModelConfig) -> Model:
    """A model whose weights are zeros that have no memory."""
    with WithoutWeights():
        model = model_class(config)
    shared: dict[int, nn.Parameter] = {}
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        module_name, _, attribute = name.rpartition(".")
        zeros = nn.Parameter(torch.zeros(1).expand(parameter.shape), requires_grad=False)
        setattr(model.get_submodule(module_name), attribute, shared.setdefault(id(parameter), zeros))
    model.reset_buffers()
    return model.eval()


def token_of(config: Any) -> int:
    """A token that is not padding."""
    return next(i for i in range(config.vocab_size) if i != config.pad_id)


def record_generator(model: Any) -> Graph:
    """Record a model that generates text.

    Caches of `encode`: own 0 of self-attention, which the layers share; those of the source for each decoder layer.
    """
    if model.kind not in ("encoder-decoder", "decoder"):
        raise UnsupportedError(f"a model of the kind {model.kind}")
    tables, n_positions = Tables(model), model.config.max_len + 1
    src = torch.full((1, 5 if model.kind == "encoder-decoder" else 1), token_of(model.config))
    encoder = Recorder(tables, n_positions)
    encoder.track(src, Index("token"))
    with encoder:
        state, last = model.start(src)
    if not isinstance(state, TransformerState):
        raise UnsupportedError(f"the decoder state {type(state).__name__} has no kernel")
    step = Recorder(tables, n_positions, state.caches)
    for i, pair in enumerate(state.cross_keys_values):
        if pair is not None:
            encoder.add(Store, *map(encoder.value, pair), cache=i, side="source")
            for tensor in pair:
                step.track(tensor, Cached(i, "source"))
    if state.cross_mask is not None:
        step.track(state.cross_mask, PaddingMask)
    step.track(last, Index("token"))
    with step:
        model.step(last, state)
    if not step.program or not isinstance(step.program[-1], Linear):
        raise UnsupportedError("the logits are not the output of a linear layer")
    programs: dict[ProgramName, list[Operation]] = {"step": step.program}
    if encoder.program:
        programs = {"encode": encoder.program, **programs}
    return Graph(programs, shapes_of(model), tables.constants)


def record_encoder(model: Any) -> Graph:
    """Record an encoder, and its head if it has one. All layers use cache 0."""
    if not isinstance(model, Bert):
        raise UnsupportedError("an encoder of another family than bert")
    tables, c = Tables(model), model.config
    encoder = Recorder(tables, c.max_len)
    ids = torch.full((1, 5), token_of(c))
    types = torch.zeros_like(ids)
    encoder.track(ids, Index("token"))
    encoder.track(types, Index("type"))
    with encoder:
        model(ids, types)
    programs: dict[ProgramName, list[Operation]] = {"encode": encoder.program}
    if c.head != "none":
        programs["head"] = record_head(tables, c, model.head)
    if c.head == "mlm" and model.classifier is not None:
        programs["next"] = record_head(tables, c, model.next_head)
    return Graph(programs, shapes_of(model), tables.constants)


def record_head(tables: Tables, config: Any, head: Callable[[Tensor], Tensor]) -> list[Operation]:
    """Record a head of an encoder, which is applied to rows of features."""
    recorder = Recorder(tables, config.max_len)
    features = torch.zeros(1, config.d_model)
    recorder.track(features, recorder.add(Input, size=config.d_model))
    with recorder:
        head(features)
    return recorder.program


def shapes_of(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of a model."""
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
