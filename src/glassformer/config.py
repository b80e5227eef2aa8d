"""Options of training and decoding as frozen pydantic models, from flags, environment variables and TOML."""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from glassformer.errors import ConfigError

ENVIRONMENT_PREFIX = "GLASSFORMER_"
MAX_INTEGER = (1 << 63) - 1
MAX_THREADS = 1024
JsonObject = dict[str, Any]
"""An object read from JSON or TOML, or one to write as JSON."""
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


class Config(BaseModel):
    """Base class of options: frozen, and unknown names are errors."""

    # Built at the first use: a command uses few of the classes.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of options of which one can be given: in `resolve`, one of a group replaces weaker ones of it."""

    @model_validator(mode="after")
    def check_integers(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise ValueError(f"{name} is too large")
        return self

    @classmethod
    def resolve(
        cls,
        flags: Mapping[str, object],
        file: Path | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
        known: Mapping[str, Mapping[str, Collection[str]]] = MappingProxyType({}),
    ) -> Self:
        """The options given, flags before environment before file before defaults.

        Args:
            flags: values by name. One text or path is a list of one.
            environment: variables GLASSFORMER_<OPTION>. The command line alone gives `os.environ`: a call from Python
                depends on its arguments only.
            known: for options whose values are rows of a registry, such as `optimizer`: the names of the rows, and for
                each row the options that have no meaning with it.

        Raises:
            ConfigError: naming every unknown, missing and impossible value at once.
        """
        from_file = read_toml(file) if file else {}
        from_environment = cls.from_environment(environment)
        for group in cls.alternatives:
            if any(flags.get(name) is not None for name in group):
                from_environment = {name: x for name, x in from_environment.items() if name not in group}
            if any(given.get(name) is not None for given in (flags, from_environment) for name in group):
                from_file = {name: x for name, x in from_file.items() if name not in group}
        listed = {name: [x] if cls.is_list(name) and isinstance(x, (str, Path)) else x for name, x in flags.items()}
        given = {**from_file, **from_environment, **listed}
        origins = {
            **dict.fromkeys(from_file, f"in {file}"),
            **dict.fromkeys(from_environment, "in the environment"),
            **dict.fromkeys(flags, ""),
        }
        errors = []
        for name, rows in known.items():
            value = given.get(name)
            if not isinstance(value, str):
                continue  # other types are errors of their own
            if value not in rows:
                origin = f" ({origins[name]})" if origins[name] else ""
                errors.append(f"  {name}: {value!r} is unknown; known: {', '.join(rows)}{origin}")
            for option in rows.get(value, ()):
                if given.get(option) not in (None, 0):
                    origin = f" ({origins[option]})" if origins[option] else ""
                    errors.append(f"  {option}: cannot be combined with {name} = {value}{origin}")
        message = "invalid options:"
        try:
            config = cls.model_validate(given)
        except ValidationError as error:
            message = format_validation_error(error, origins, cls.model_fields)
        else:
            if not errors:
                return config
        raise ConfigError("\n".join([message, *errors]))

    @classmethod
    def is_list(cls, name: str) -> bool:
        """Whether an option is a list."""
        return name in cls.model_fields and str(cls.model_fields[name].annotation).startswith("tuple")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> JsonObject:
        """The options that variables GLASSFORMER_<OPTION> give, as texts and lists of texts."""
        return {
            name: list(filter(None, value.split(os.pathsep))) if cls.is_list(name) else value
            for name in cls.model_fields
            if (value := environment.get(ENVIRONMENT_PREFIX + name.upper())) is not None
        }

    @classmethod
    def converted(cls, given: Mapping[str, object], names: Iterable[str]) -> JsonObject:
        """Some of the given options, with values of the types of their fields.

        Returns:
            The options; none of them if a value has a wrong type, for which `resolve` raises the error.
        """
        types: dict[str, Any] = {name: cls.model_fields[name].annotation for name in names if name in given}
        try:
            return {name: TypeAdapter(type_).validate_python(given[name]) for name, type_ in types.items()}
        except ValidationError:
            return {}

    def given(self) -> JsonObject:
        """The options that were given, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)

    def to_toml(self) -> str:
        """The options as TOML, without those that are None."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


TRANSFORMERS_NAMES = {
    "num_beams": "beam",
    "num_return_sequences": "nbest",
    "max_new_tokens": "max_length",
    "min_new_tokens": "min_length",
    "learning_rate": "lr",
    "batch_size": "batch_tokens",
    "max_steps": "steps",
    "num_train_epochs": "epochs",
    "output_dir": "out",
    "gradient_accumulation_steps": "accumulate",
    "hidden_size": "d_model",
    "num_layers": "n_layers",
    "max_seq_length": "max_len",
}
"""Names of options in transformers and their names here, for suggestions."""

SHORT_NAMES = {"dev": "dev_src", "columns": "keys"}
"""Names that options have on the command line only, and their names in Python and in files."""

LIST_EXAMPLES = {
    "keys": '["text=tweet", "label=sentiment"]',
    "languages": '["en", "fr"]',
    "weights": "[3, 0.5]",
}
"""Examples of options that are lists, for messages."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to an unknown one, or None."""
    known = list(known)
    if (other := {**TRANSFORMERS_NAMES, **SHORT_NAMES}.get(name.replace("-", "_"))) in known:
        return other
    return next(iter(get_close_matches(name, known, 1)), None)


def format_validation_error(error: ValidationError, origins: Mapping[str, str], known: Iterable[str] = ()) -> str:
    """The validation errors as text, one per line, each with its value and where it was given.

    Args:
        known: names of the options, for suggestions.
    """
    lines = []
    for detail in error.errors():
        if any(str(part).startswith("literal[") for part in detail["loc"][1:]):
            continue  # of an option that is a number or a word, the message about the number is printed
        parts = [str(part) for part in detail["loc"] if part != "float"]
        name = ".".join(parts) or "options"
        origin = origins.get(str(detail["loc"][0])) if detail["loc"] else ""
        match detail["type"]:
            case "extra_forbidden":
                nearest = nearest_name(name, known)
                what = f"no such option{f'; did you mean {nearest}?' if nearest else ''}"
            case "missing":
                what = f"required; on the command line --{name.replace('_', '-')}"
            case "tuple_type":
                example = LIST_EXAMPLES.get(name, '["…"]')
                what = f"{detail['input']!r}: expected a list, for example {name}={example}"
            case "value_error":
                what = detail["msg"].removeprefix("Value error, ")
            case _:
                message = detail["msg"]
                what = f"{detail['input']!r}: {message[0].lower()}{message[1:]}"
        lines.append(f"  {name}: {what}{f' ({origin})' if origin else ''}")
    return "invalid options:\n" + "\n".join(lines)


def read_toml(path: Path) -> JsonObject:
    """The table in a TOML file.

    Raises:
        ConfigError: no such file, or not TOML; with the line.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a regular file.\n  --config takes a TOML file such as a run folder's run.toml.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}.\n  --config takes a TOML file such as a run folder's run.toml."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}.") from None
