"""Writes of a loop's iterations that never meet: no barrier stands between them.

Hides the proof: on some axis an iteration keeps to a band of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelab.ir import Buffer, Expr, For, Store, While, const_int, walk
from tilelab.ir.simplify import linear, rebuild
from tilelab.passes.shared_accesses import WRITE, shared_accesses
from tilelab.thread.nodes import VectorCopy


def apart(loop: For | While) -> set[int]:
    """Storages (ids) in shared memory that a loop only writes, in one statement, each iteration
    elements that no other one writes, whichever thread does."""
    if isinstance(loop, While):
        return set()
    found: dict[int, list[str]] = {}
    for buffer, mode in shared_accesses(loop.body):
        found.setdefault(id(buffer.storage), []).append(mode)
    once = {key for key, modes in found.items() if modes == [WRITE]}
    writes = [w for w in _writes(loop) if id(w[0].storage) in once]
    return {id(b.storage) for b, indices, count in writes if _own_band(loop, indices, count)}


def _writes(loop: For) -> Iterator[tuple[Buffer, Sequence[Expr], int]]:
    for n in walk(loop.body):
        if isinstance(n, Store):
            yield n.buffer, n.indices, 1
        elif isinstance(n, VectorCopy):
            yield n.dst.buffer, n.dst.indices, n.count


def _own_band(loop: For, indices: Sequence[Expr], count: int) -> bool:
    """Whether an index moves at least as far from iteration to iteration as it reaches in one."""
    step = abs(const_int(loop.step) or 0)
    for axis, index in enumerate(indices):
        terms, constant = linear(index)
        mine = terms.pop(loop.var.key, None)
        if mine is None or any(n is loop.var for t, _ in terms.values() for n in walk(t)):
            continue
        low, high = rebuild((terms, constant), index.dtype).bounds
        width = count if axis == len(indices) - 1 else 1
        if low is not None and high is not None and high - low + width <= abs(mine[1]) * step:
            return True
    return False
