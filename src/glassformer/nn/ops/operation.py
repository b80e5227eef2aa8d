"""Operations with several implementations, of which each call selects one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def always(*args: Any, **kwargs: Any) -> bool:
    """True for all arguments."""
    return True


@dataclass(frozen=True)
class Implementation(Generic[P, T]):
    """An implementation of an operation. Both conditions take the arguments of the operation."""

    name: str
    compute: Callable[P, T]
    supports: Callable[..., bool] = always
    """Whether it computes the operation for such arguments: their device, types and shapes, on this machine."""
    prefers: Callable[..., bool] = always
    """Whether it is selected where it is supported: usually, whether it is the fastest."""


class Operation(Generic[P, T]):
    """A function with several implementations. A call computes it by the first one that supports its arguments.

    The last one is the reference, in plain PyTorch, which supports all arguments. `use` restricts the selection: tests
    compare each implementation with the reference in this way.
    """

    def __init__(self, reference: Callable[P, T], *implementations: Implementation[P, T], name: str = "") -> None:
        """
        Args:
            reference: its signature is that of the operation.
            implementations: the others, in the order of the selection.
            name: name of the operation in messages. Default: that of the reference.
        """
        self.name = name or reference.__name__
        self.reference = reference
        self.implementations = (*implementations, Implementation("reference", reference))
        self.selectable = self.implementations
        """The implementations that calls select from."""

    def __repr__(self) -> str:
        return f"Operation({self.name!r})"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.select(*args, **kwargs).compute(*args, **kwargs)

    def select(self, *args: P.args, **kwargs: P.kwargs) -> Implementation[P, T]:
        """The implementation that a call with these arguments uses.

        Raises:
            ValueError: inside `use`, no implementation that may be selected supports the arguments.
        """
        for implementation in self.selectable:
            if implementation.prefers(*args, **kwargs) and implementation.supports(*args, **kwargs):
                return implementation
        for implementation in self.selectable:
            if implementation.supports(*args, **kwargs):
                return implementation
        names = ", ".join(implementation.name for implementation in self.selectable)
        raise ValueError(f"{self.name}: these arguments are not supported by: {names}")

    @contextmanager
    def use(self, *names: str) -> Iterator[None]:
        """Inside this context, calls select from these implementations only, in all threads.

        Raises:
            ValueError: there is no implementation of a name.
        """
        known = [implementation.name for implementation in self.implementations]
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{self.name} has no implementation {unknown[0]}; it has {', '.join(known)}")
        before = self.selectable
        self.selectable = tuple(row for row in self.implementations if row.name in names)
        try:
            yield
        finally:
            self.selectable = before
