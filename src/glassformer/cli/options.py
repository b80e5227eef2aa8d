"""Options of a config class as flags, of which only those given count."""

from collections.abc import Sequence
from dataclasses import field, make_dataclass
from typing import Annotated, Any

from cyclopts import Parameter, Token

from glassformer.config import Config


def whole_number(type_: Any, tokens: Sequence[Token]) -> int:
    """The integer that was typed. Without this, cyclopts rounds 2.9 to 3.

    Raises:
        ValueError: not an integer, or one with a fraction.
    """
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number; write it without a fraction") from None


Int = Annotated[int, Parameter(converter=whole_number)]
OptionalInt = Annotated[int | None, Parameter(converter=whole_number)]

NAMES = {"dev_src": ["--dev-src", "--dev"]}
"""Of options whose flags are called otherwise."""


def flags(config: type[Config], *left_out: str) -> Any:
    """A record with the fields of a config class, all optional, for a command's keyword options.

    Args:
        left_out: fields that the command does not offer.
    """
    fields = []
    for name, option in config.model_fields.items():
        if name in left_out:
            continue
        default = "" if option.is_required() or option.default in (None, ()) else f" Default: {option.default}."
        parameter = Parameter(
            name=NAMES.get(name),
            help=f"{option.description}{default}",
            consume_multiple=str(option.annotation).startswith("tuple"),
            show_default=False,
            converter=whole_number if option.annotation in (int, int | None) else None,
        )
        fields.append((name, Annotated[option.annotation | None, parameter], field(default=None)))  # type: ignore[operator]
    record = make_dataclass(f"{config.__name__}Flags", fields)
    record.__module__ = __name__  # cyclopts takes what comes from the standard library for a plain value
    return record


def given(record: Any) -> dict[str, Any]:
    """The flags that were given."""
    return {name: value for name, value in vars(record).items() if value is not None} if record else {}
