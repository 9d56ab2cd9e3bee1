"""Serial loops whose variable picks rows of a fragment, unrolled: the rows are registers.

    for k in T.serial(8):
        for j in T.Parallel(128): total[j] += rows[k, j]

A thread that holds the whole column j takes register k of it where k is known, in an unrolled
loop. A fragment that lies otherwise goes through shared memory, as before. Rank 5, before
relayout: `infer_layouts` asks where two uses of a fragment conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from math import prod

from tilelab.ir import (
    Break,
    Buffer,
    Continue,
    For,
    Kernel,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Stmt,
    Store,
    Var,
    While,
    children,
    const_int,
    walk,
)
from tilelab.ir.rewrite import rewrite
from tilelab.passes.layout_derive import MOST_OFFSETS, fits
from tilelab.tile.op import TileOp
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.fill import Fill

MOST_UNROLLED = 512
"""Points of a thread in all iterations that are unrolled: ptxas takes seconds over thousands."""
_LARGE = (For, While, Break, Continue)  # what a loop that is unrolled has none of


def unrolled_vars(kernel: Kernel) -> frozenset[Var]:
    """Variables of short loops that are unrolled: a register may be numbered by them."""
    loops = (n for n in walk(kernel) if isinstance(n, For) and n.kind is LoopKind.UNROLL)
    return frozenset(n.var for n in loops if _short(n))


def unrolled_for(kernel: Kernel, statement: Stmt, buffer: Buffer, threads: int) -> Kernel | None:
    """The kernel with the serial loops around or inside `statement` unrolled by which it picks
    rows of the fragment `buffer`; None where there are none, one of them is long or large, or
    the `threads` would hold copies of too many columns."""
    if not isinstance(statement, ParallelFor):
        return None
    around = [n for n in (*_path(kernel.body, statement), *walk(statement)) if isinstance(n, For)]
    accesses = [
        n for n in walk(statement.body) if isinstance(n, Load | Store) and n.buffer is buffer
    ]
    rows = [i for n in accesses for i in n.indices if not _names(i, statement.vars)]
    if not all(fits(buffer, _columns(n, statement), threads) for n in accesses):
        return None
    picked = [n for n in around if any(_names(i, (n.var,)) for i in rows)]
    serial = {id(n) for n in picked if n.kind is LoopKind.SERIAL}
    if not serial or not all(_short(n) and _small(n) for n in picked):
        return None
    points = prod(const_int(n) or 0 for n in (*statement.extents, *(n.extent for n in picked)))
    if points > MOST_UNROLLED * threads:
        return None

    def visit(node: Node) -> Node | None:
        if id(node) not in serial:
            return None
        assert isinstance(node, For)
        return replace(node, kind=LoopKind.UNROLL)

    return replace(kernel, body=rewrite(kernel.body, visit))


def _columns(access: Load | Store, loop: ParallelFor) -> int:
    sides = zip(loop.vars, loop.extents, strict=True)
    used = (n for v, n in sides if any(_names(i, (v,)) for i in access.indices))
    return prod(const_int(n) or 0 for n in used)


def _names(index: Node, vars: Collection[Var]) -> bool:
    return any(n is v for n in walk(index) for v in vars)


def _short(loop: For) -> bool:
    extent = const_int(loop.extent)
    return extent is not None and 0 < extent <= MOST_OFFSETS and const_int(loop.start) is not None


def _small(loop: For) -> bool:
    """Whether its body is worth repeating: elementwise loops, fills and copies."""
    return not any(
        isinstance(n, _LARGE) or (isinstance(n, TileOp) and not isinstance(n, Copy | Fill))
        for n in walk(loop.body)
    )


def _path(node: Node, target: Node) -> Iterator[Node]:
    """From `node` down to the one that holds `target`; nothing where it does not."""
    if node is target:
        return
    for child in children(node):
        if any(n is target for n in walk(child)):
            yield node
            yield from _path(child, target)
            return
