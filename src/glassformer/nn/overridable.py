"""Functions whose calls can be intercepted."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from torch.overrides import handle_torch_function, has_torch_function

P = ParamSpec("P")
T = TypeVar("T")


def overridable(function: Callable[P, T]) -> Callable[P, T]:
    """Let a `TorchFunctionMode` intercept the calls of a function, as it intercepts those of torch's functions.

    `glassformer.runtime` records the computation of a model in this way. The functions that have a kernel there are
    marked: linear layers, attention, caches, positions.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        if has_torch_function(args):
            return handle_torch_function(wrapper, args, *args, **kwargs)
        return function(*args, **kwargs)

    return wrapper
