"""Layouts: pure algebra of where the elements of a tile are, in registers and shared memory.

Imports nothing but ``tilelab.errors``. Indices may be ints, numpy arrays or IR expressions.
"""

from . import atoms, banks
from .digits import Axes, Digit, Index, Owner, Replicas
from .fragment import Fragment
from .probe import from_function
from .shared import SharedLayout, best_swizzle, padded, row_major, swizzled
from .swizzle import TMA_32B, TMA_64B, TMA_128B, TMA_SWIZZLES, Swizzle
from .table import AnyFragment, TableFragment, equivalent, tables
from .view import ViewLayout, reshaped

blocked = Fragment.blocked

__all__ = [
    "TMA_32B",
    "TMA_64B",
    "TMA_128B",
    "TMA_SWIZZLES",
    "AnyFragment",
    "Axes",
    "Digit",
    "Fragment",
    "Index",
    "Owner",
    "Replicas",
    "SharedLayout",
    "Swizzle",
    "TableFragment",
    "ViewLayout",
    "atoms",
    "banks",
    "best_swizzle",
    "blocked",
    "equivalent",
    "from_function",
    "padded",
    "reshaped",
    "row_major",
    "swizzled",
    "tables",
]
