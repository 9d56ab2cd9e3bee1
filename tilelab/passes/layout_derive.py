"""What a loop's spread asks of the fragments it touches, and the other way round.

An index of a fragment may be a loop variable, a constant 0, `variable // constant` where the
spread's digits can be cut there (the fragment is then replicated over the digits below the cut),
or a variable from an offset on (a number, or that of a serial loop of few iterations) where the
part from there on lies in the same threads as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilelab.ir import Binary, Buffer, Const, Expr, Var, const_int, walk
from tilelab.ir.simplify import divisibility, linear, rebuild
from tilelab.layout import Digit, Fragment, equivalent, tables
from tilelab.tile.op import Access, Loop

MOST_OFFSETS = 16
"""Values an offset may take: ptxas writes loops of as many iterations out."""
MOST_HELD = 32
"""Elements of a fragment that every thread may hold."""


@dataclass(frozen=True)
class AxisUse:
    """One axis of a fragment, indexed by loop axis `axis` (None: by 0) divided by `divisor`, from a
    multiple of `offset` on (0: from the start). `picks`: by what is known in each iteration of
    unrolled loops, so every thread that runs points holds the whole axis in registers."""

    axis: int | None
    divisor: int = 1
    offset: int = 0
    picks: bool = False


def axes_of(access: Access, loop: Loop) -> list[AxisUse] | None:
    """How each axis of the fragment is indexed; None when an index has another form, or two axes
    use one loop variable."""
    uses = [_use(index, loop.vars) or _pick(index, loop) for index in access.indices]
    if any(u is None for u in uses):
        return None
    found = [u for u in uses if u is not None]
    if any(u.picks for u in found) and not fits(
        access.buffer, columns_of(found, loop), loop.threads
    ):
        return None
    taken = [u.axis for u in found if u.axis is not None]
    return found if len(taken) == len(set(taken)) else None


def _use(index: Expr, vars: Sequence[Var]) -> AxisUse | None:
    if const_int(index) == 0:
        return AxisUse(None)
    divisor = 1
    if isinstance(index, Binary) and index.op == "//" and isinstance(index.b, Const):
        index, divisor = index.a, int(index.b.value)
    for axis, var in enumerate(vars):
        if var is index and divisor > 0:
            return AxisUse(axis, divisor)
    return _from_offset(index, vars) if divisor == 1 else None


def columns_of(uses: Sequence[AxisUse], loop: Loop) -> int:
    """Points of a loop that index a fragment differently."""
    return prod(loop.extents[u.axis] for u in uses if u.axis is not None)


def shared_out(columns: int, threads: int) -> bool:
    """Whether every thread gets columns, and padding to equal numbers is at most half of them."""
    return columns >= threads and 2 * padded(columns, threads) <= 3 * columns


def padded(columns: int, threads: int, vector: int = 1) -> int:
    """Columns when each of `threads` has as many vectors of neighbours as the first one."""
    return -(-columns // (threads * vector)) * threads * vector


def fits(buffer: Buffer, columns: int, threads: int) -> bool:
    """Whether rows may be picked: threads share the columns, or the fragment is small enough for
    each to hold more than its own."""
    return shared_out(columns, threads) or prod(buffer.static_shape) <= MOST_HELD


def picking_axes(loop: Loop) -> set[int]:
    """The axes of a loop that go over columns of fragments whose rows unrolled loops number, where
    threads share these columns."""
    found = set[int]()
    for access in loop.accesses:
        uses = axes_of(access, loop) or []
        if any(u.picks for u in uses) and shared_out(columns_of(uses, loop), loop.threads):
            found |= {u.axis for u in uses if u.axis is not None}
    return found


def _pick(index: Expr, loop: Loop) -> AxisUse | None:
    inner = [n for n in walk(index) if not isinstance(n, Const | Binary)]
    known = all(isinstance(n, Var) and n in loop.unrolled for n in inner)
    least = index.bounds[0]
    return AxisUse(None, picks=True) if known and least is not None and least >= 0 else None


def _from_offset(index: Expr, vars: Sequence[Var]) -> AxisUse | None:
    """`variable + offset`, the offset one of few: registers are picked by it."""
    terms, constant = linear(index)
    for axis, var in enumerate(vars):
        if terms.get(var.key, (var, 0))[1] != 1:
            continue
        offset = rebuild(({k: t for k, t in terms.items() if k != var.key}, constant), index.dtype)
        inner = [n for n in walk(offset) if isinstance(n, Var)]
        counts = [
            b - a + 1 for a, b in (v.bounds for v in inner) if a is not None and b is not None
        ]
        few = len(counts) == len(inner) and prod(counts) <= MOST_OFFSETS
        least = offset.bounds[0]
        if few and least is not None and least >= 0 and not set(inner) & set(vars):
            return AxisUse(axis, 1, const_int(offset) or divisibility(offset))
    return None


def spread_from(layout: Any, uses: Sequence[AxisUse] | None, loop: Loop) -> Fragment | None:
    """The loop's spread that follows from a fragment which every loop axis indexes plainly."""
    if not isinstance(layout, Fragment) or uses is None or any(u.divisor > 1 for u in uses):
        return None
    used = [u.axis for u in uses if u.axis is not None]
    if sorted(used) != list(range(len(loop.vars))):
        return None
    for axis, use in enumerate(uses):
        if use.offset and use.axis is not None:
            layout = _part(layout, axis, use.offset, loop.extents[use.axis])
            if layout is None:
                return None
    single = [i for i, u in enumerate(uses) if u.axis is None]
    for axis in reversed(single):
        if any(d.owner == "thread" or not uses[axis].picks for d in layout.axes[axis]):
            return None  # one of several: other threads may hold it than those that run points
        layout = layout.reduce(axis)
    spread = layout.transpose([used.index(i) for i in range(len(used))])
    covered = all(c >= e for c, e in zip(spread.covers, loop.extents, strict=True))
    return spread.with_shape(loop.extents) if covered else None


def derived(uses: Sequence[AxisUse], shape: tuple[int, ...], spread: Fragment) -> Fragment | None:
    """The layout a fragment of `shape` needs so that each thread holds what its points touch;
    None when the digits of the spread cannot be cut where an index divides."""
    layout: Fragment | None = spread
    used = [u.axis for u in uses if u.axis is not None]
    for use in uses:
        if use.axis is not None and use.divisor > 1 and layout is not None:
            layout = _cut(layout, use.axis, use.divisor)
    if layout is None:
        return None
    for axis in sorted(set(range(len(spread.shape))) - set(used), reverse=True):
        layout = layout.reduce(axis)
    if any(u.axis is not None and u.offset % spread.covers[u.axis] for u in uses):
        return None  # other threads would hold that part
    order = sorted(used)
    if len(used) > 1:
        layout = layout.transpose([order.index(a) for a in used])
    for position, use in enumerate(uses):
        if use.axis is None:
            layout = layout.insert_axis(position)
    if any(c < n for c, n in zip(layout.covers, shape, strict=True)):
        return _grown(layout, shape)
    return layout.with_shape(shape)


def _cut(layout: Fragment, axis: int, divisor: int) -> Fragment | None:
    """Split `axis` into (axis // divisor, axis % divisor) and drop the lower part."""
    parts = _split(layout, axis, divisor)
    return None if parts is None else parts.reduce(axis + 1)


def _part(layout: Fragment, axis: int, offset: int, extent: int) -> Fragment | None:
    """The layout of `extent` indices of `axis` from `offset` on, where the threads that hold them
    are those that hold the first ones, in the same order; None elsewhere."""
    for size in (d for d in range(extent, offset + 1) if offset % d == 0):
        parts = _split(layout, axis, size)
        if parts is not None and all(d.owner == "register" for d in parts.axes[axis]):
            return parts.reduce(axis)
    return None


def _split(layout: Fragment, axis: int, divisor: int) -> Fragment | None:
    """`axis` as two, (axis // divisor, axis % divisor); None where a digit cannot be cut there."""
    lower: list[Digit] = []
    upper = list(layout.axes[axis])
    left = divisor
    while left > 1 and upper:
        digit = upper[0]
        if left % digit.extent == 0:
            lower.append(upper.pop(0))
            left //= digit.extent
        elif digit.extent % left == 0:
            lower.append(Digit(left, digit.owner, digit.stride))
            upper[0] = Digit(digit.extent // left, digit.owner, digit.stride * left)
            left = 1
        else:
            return None
    shape = (*layout.shape[:axis], -(-layout.shape[axis] // divisor), divisor)
    shape = (*shape, *layout.shape[axis + 1 :])
    axes = (*layout.axes[:axis], tuple(upper), tuple(lower), *layout.axes[axis + 1 :])
    return Fragment(shape, axes, layout.replicas)


def _grown(layout: Fragment, shape: tuple[int, ...]) -> Fragment:
    """A layout of the loop's points extended over registers to the whole fragment."""
    times = [-(-n // c) for n, c in zip(shape, layout.covers, strict=True)]
    return layout.with_shape(layout.covers).repeat(*times).with_shape(shape)


def same(a: Any, b: Any) -> bool:
    """Whether two layouts put every element in the same place."""
    if isinstance(a, Fragment) and isinstance(b, Fragment):
        return a == b or (a.shape == b.shape and equivalent(a, b))
    return a == b


def serves(known: Any, wanted: Fragment, is_write: bool) -> bool:
    """Whether a fragment laid out as `known` can be used where `wanted` is asked for.

    A read needs every element in (at least) the threads that want it; a write must reach every
    thread that holds the element.
    """
    if not isinstance(known, Fragment) or known.shape != wanted.shape:
        return False
    if same(known, wanted):
        return True
    if known.num_threads != wanted.num_threads:
        return False
    have, need = _holders(known), _holders(wanted)
    return bool((have == need).all()) if is_write else not bool((need & ~have).any())


def is_everywhere(layout: Any) -> bool:
    """Whether every thread holds every element."""
    if not isinstance(layout, Fragment):
        return False
    return not any(d.owner == "thread" and d.extent > 1 for axis in layout.axes for d in axis)


def _holders(layout: Fragment) -> Any:
    """(elements, threads): which threads hold which element."""
    threads, _ = tables(layout)
    flat = threads.reshape(-1, threads.shape[-1])
    held = np.zeros((flat.shape[0], layout.num_threads), bool)
    np.put_along_axis(held, flat, True, axis=1)
    return held
