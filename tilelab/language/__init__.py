"""The language: `import tilelab.language as T`.

One module for each group of names; this one puts them together, and answers for names that do
not exist with the near ones.
"""

from typing import Any, NoReturn

from tilelab.calls import answer_all as _answer_all
from tilelab.language.cluster import NAMES as _CLUSTER
from tilelab.language.debug import NAMES as _DEBUG
from tilelab.language.dtypes import NAMES as _DTYPES
from tilelab.language.dtypes import dtype
from tilelab.language.exact import NAMES as _EXACT
from tilelab.language.function import const, dynamic, macro, prim_func, symbolic
from tilelab.language.known import name_error as _name_error
from tilelab.language.launch import (
    Kernel,
    annotate_min_blocks_per_sm,
    get_block_binding,
    get_block_bindings,
    get_block_extent,
    get_block_extents,
    get_lane_idx,
    get_thread_binding,
    get_thread_bindings,
    get_thread_extent,
    get_thread_extents,
    get_warp_group_idx,
    get_warp_idx,
    use_swizzle,
)
from tilelab.language.layouts import NAMES as _LAYOUTS
from tilelab.language.loops import (
    Parallel,
    Persistent,
    Pipelined,
    Serial,
    Unroll,
    Vectorized,
    grid,
    parallel,
    serial,
    unroll,
    vectorized,
)
from tilelab.language.math import FUNCTIONS as _FUNCTIONS
from tilelab.language.math import (
    And,
    Cast,
    Not,
    Or,
    Select,
    align_up,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    cdiv,
    ceildiv,
    clamp,
    clz,
    exp10,
    floordiv,
    floormod,
    if_then_else,
    index_to_coordinates,
    infinity,
    likely,
    max_value,
    min_value,
    popcount,
    round,
    shift_left,
    shift_right,
    truncdiv,
    truncmod,
)
from tilelab.language.memory import alloc_fragment, alloc_local, alloc_shared, alloc_var
from tilelab.language.pointers import NAMES as _POINTERS
from tilelab.language.promises import NAMES as _PROMISES
from tilelab.language.queries import NAMES as _QUERIES
from tilelab.language.reducers import NAMES as _REDUCERS
from tilelab.language.rng import NAMES as _RNG
from tilelab.language.roles import NAMES as _ROLES
from tilelab.language.schedulers import NAMES as _SCHEDULERS
from tilelab.language.sync import NAMES as _SYNC
from tilelab.language.tensor import (
    FragmentBuffer,
    LocalBuffer,
    Ref,
    SharedBuffer,
    StridedTensor,
    Tensor,
    empty,
    handle,
    make_tensor,
    make_tensor_from_addr,
    match_buffer,
    ptr,
)
from tilelab.language.threads import NAMES as _THREADS
from tilelab.language.variables import NAMES as _VARIABLES
from tilelab.language.vectors import NAMES as _VECTORS
from tilelab.language.views import reshape, view
from tilelab.language.warp import NAMES as _WARP
from tilelab.language.words import NAMES as _WORDS
from tilelab.tile.ops import LANGUAGE as _OPS

Buffer = Tensor

__all__ = [
    "And", "Buffer", "Cast", "FragmentBuffer", "Kernel", "LocalBuffer", "Not",
    "Or", "Parallel", "Persistent",
    "Pipelined", "Ref", "Select", "Serial", "SharedBuffer", "StridedTensor", "Tensor",
    "Unroll", "Vectorized", "align_up",
    "alloc_fragment", "alloc_local", "alloc_shared", "alloc_var", "annotate_min_blocks_per_sm",
    "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "cast", "cdiv", "ceildiv", "clamp", "clz", "const", "dtype",
    "dynamic", "empty", "exp10", "floordiv", "floormod",
    "get_block_binding", "get_block_bindings", "get_block_extent", "get_block_extents",
    "get_lane_idx", "get_thread_binding", "get_thread_bindings", "get_thread_extent",
    "get_thread_extents", "get_warp_group_idx", "get_warp_idx", "grid", "handle",
    "if_then_else",
    "index_to_coordinates", "infinity", "likely", "macro", "make_tensor",
    "make_tensor_from_addr", "match_buffer", "max_value", "min_value",
    "parallel", "popcount", "prim_func", "ptr", "reshape", "round", "serial", "shift_left",
    "shift_right",
    "symbolic", "truncdiv", "truncmod", "unroll", "use_swizzle", "vectorized", "view",
]  # fmt: skip
# exp, max, float16, copy, ...: names that a table defines.
_TABLES = (
    _FUNCTIONS, _DEBUG, _DTYPES, _OPS, _POINTERS, _ROLES, _SYNC, _THREADS, _WARP,
    _QUERIES, _LAYOUTS, _REDUCERS, _CLUSTER, _EXACT, _PROMISES, _RNG, _SCHEDULERS, _VARIABLES,
    _VECTORS, _WORDS,
)  # fmt: skip
for _table in _TABLES:
    globals().update(_table)
__all__ += [name for table in _TABLES for name in table if not name.startswith("_")]
_answer_all(globals(), {*__all__, *(n for table in _TABLES for n in table)}, "T", kinds=False)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _name_error(name, __all__)


def __dir__() -> list[Any]:
    return sorted(__all__)
