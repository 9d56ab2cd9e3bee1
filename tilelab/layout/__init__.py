"""Layouts: pure algebra of where the elements of a tile are, in registers and shared memory.

Imports nothing but rank 0. Indices may be ints, numpy arrays or IR expressions.
"""

from tilelab.absent import absent
from tilelab.calls import answer_all

from . import atoms, banks
from .digits import Axes, Digit, Index, Owner, Replicas
from .fragment import Fragment
from .probe import from_function
from .reshaping import reshaped, seen_as
from .shared import SharedLayout, best_swizzle, padded, row_major, swizzled
from .swizzle import TMA_32B, TMA_64B, TMA_128B, TMA_SWIZZLES, Swizzle
from .table import AnyFragment, TableFragment, equivalent, tables
from .user import (
    Layout,
    MapLayout,
    make_full_bank_swizzled_layout,
    make_fully_replicated_layout_fragment,
    make_gemm_fragment_8x8,
    make_gemm_fragment_8x8_transposed,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
    make_wgmma_swizzled_layout,
)
from .user_fragment import FragmentMap
from .view import ViewLayout

blocked = Fragment.blocked
_HINT = "use make_swizzled_layout"
make_volta_swizzled_layout = absent(
    "layout.make_volta_swizzled_layout", "no such target is compiled for", _HINT
)
make_tcgen05mma_swizzled_layout = absent(
    "layout.make_tcgen05mma_swizzled_layout", "no such target is compiled for", _HINT
)
make_cutlass_metadata_layout = absent(
    "layout.make_cutlass_metadata_layout", "sparse matrix instructions are not supported", _HINT
)

__all__ = [
    "TMA_32B",
    "TMA_64B",
    "TMA_128B",
    "TMA_SWIZZLES",
    "AnyFragment",
    "Axes",
    "Digit",
    "Fragment",
    "FragmentMap",
    "Index",
    "Layout",
    "MapLayout",
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
    "make_full_bank_swizzled_layout",
    "make_fully_replicated_layout_fragment",
    "make_gemm_fragment_8x8",
    "make_gemm_fragment_8x8_transposed",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "make_wgmma_swizzled_layout",
    "padded",
    "reshaped",
    "row_major",
    "seen_as",
    "swizzled",
    "tables",
]

answer_all(globals(), (*filter(str.islower, __all__), "Layout", "FragmentMap"), "layout")
