"""What a kernel may not do with tables of addresses: later passes take a table for constant."""

from __future__ import annotations

from tilelab.errors import Loc, TileNotSupported
from tilelab.ir import Alloc, Kernel, Pool, walk
from tilelab.passes.place_tensors import TENSOR_LAYOUTS
from tilelab.passes.touch import touches


def check_pools(kernel: Kernel) -> None:
    """Raise TileNotSupported (TL1770) for a table that the kernel writes, that has a layout of its
    own, or whose tensors are seen with two shapes or types, as no pass could tell them apart."""
    pools = [n.buffer for n in walk(kernel) if isinstance(n, Alloc) and isinstance(n.buffer, Pool)]
    if not pools:
        return
    placed = next((v for k, v in kernel.attrs if k == TENSOR_LAYOUTS), ())
    laid_out = {id(tensor) for tensor, _ in placed}  # type: ignore[union-attr]
    written = {id(t.buffer.storage): t.stmt.loc for t in touches(kernel) if t.is_write}
    first: dict[int, Pool] = {}
    for pool in pools:
        table, name = pool.table, pool.table.name
        other = first.setdefault(id(table), pool)
        if other is not pool:
            raise _refused(
                f"the tensors of {name} are {other.name} and {pool.name}, of two shapes or types",
                pool.loc, "give tensors of each shape and type a table of their own",
            )  # fmt: skip
        if id(table) in written:
            raise _refused(
                f"the kernel writes {name}, whose addresses it follows", written[id(table)],
                "write the table in an earlier kernel",
            )  # fmt: skip
        if id(table) in laid_out:
            raise _refused(f"{name} holds addresses, and has a layout of its own", pool.loc,
                           "leave its layout out")  # fmt: skip


def _refused(text: str, loc: Loc | None, hint: str) -> TileNotSupported:
    return TileNotSupported(text, code="TL1770", loc=loc, hint=hint)
