"""The model classes of the families in `model_config.FAMILIES`."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from glassformer import model_config
from glassformer.models.base import Model


class ModelClasses(Mapping[str, type[Model]]):
    """Name of a family -> class of its models."""

    def __getitem__(self, name: str) -> type[Model]:
        model_class = model_config.FAMILIES[name].model_class
        if isinstance(model_class, str):
            module, _, class_name = model_class.partition(":")
            model_class = getattr(import_module(f"glassformer.models.{module}"), class_name)
        return model_class

    def __iter__(self) -> Iterator[str]:
        return iter(model_config.FAMILIES)

    def __len__(self) -> int:
        return len(model_config.FAMILIES)


FAMILIES = ModelClasses()


def family_of(model: Model) -> str:
    """Name of a model's family, as in config.json."""
    return next(name for name, model_class in FAMILIES.items() if type(model) is model_class)
