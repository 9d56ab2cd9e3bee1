"""T.alloc_reducer: results that threads gather over many loops and combine once."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileValueError
from tilelab.frontend import as_dims, plain_dtype, session
from tilelab.ir import Alloc, ReducerBuffer, Scope, const_int
from tilelab.tile.ops.reducer import finalize_reducer, reducer_init, reducer_update

_OPS = ("sum", "max", "min", "bitand", "bitor", "bitxor")


def alloc_reducer(
    shape: Any, dtype: Any, op: str = "sum", replication: str | None = None
) -> ReducerBuffer:
    """A reducer of `shape`: T.reducer_init it, T.reducer_update its elements in loops, and
    T.finalize_reducer it into a fragment.

    `op`: "sum", "max", "min", "bitand", "bitor" or "bitxor". In the older form, named by
    `replication` ("all" or "none"), it is filled by T.clear or T.fill, updated as
    `r[i] += x` (or `r[i] = T.max(r[i], x)`), and read as a fragment once it is finalized; how many
    threads hold an element is the compiler's choice. Raises TileValueError (TL1540) for another
    operation, replication or shape.
    """
    extents = tuple(const_int(d) for d in as_dims(shape, "a reducer"))
    sizes = tuple(e for e in extents if e is not None and e > 0)
    kind = plain_dtype(dtype)
    fits = op in _OPS and replication in (None, "all", "none") and len(sizes) == len(extents)
    if not fits or (op.startswith("bit") and kind.is_float):
        raise TileValueError(
            f"T.alloc_reducer({shape!r}, {str(kind)!r}, op={op!r}, replication={replication!r})",
            code="TL1540",
            hint="op is " + ", ".join(_OPS) + " (bits of integers); the shape is constant; "
            "replication is all, none or left out",
        )  # fmt: skip
    trace = session()
    made = ReducerBuffer(
        trace.hinted("reducer"), sizes, kind, Scope.FRAGMENT, loc=trace.loc(), op=op
    )
    trace.emit(Alloc(made, loc=made.loc), anywhere=True)
    return made


NAMES: dict[str, Any] = {
    f.__name__: f for f in (alloc_reducer, finalize_reducer, reducer_init, reducer_update)
}
"""What this module adds to the language."""
