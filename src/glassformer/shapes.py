"""Shapes in the signatures of functions on NumPy arrays: those of jaxtyping where it is loaded, as in tests, which
check them. Elsewhere they are only read by people, and importing jaxtyping would take longer than translating a line.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
else:

    class Shape:
        """A stand-in: `Float[ndarray, "rows columns"]` is the type of the array."""

        def __class_getitem__(cls, item: tuple[type, str]) -> type:
            return item[0]

    Bool = Float = Int = Shape
