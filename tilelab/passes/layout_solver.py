"""Layout solver: from facts to one layout per buffer and per loop, each with its reason.

Knows no IR beyond variables as names of loop axes. Instructions fix some layouts; loops carry a
fragment's layout to the other fragments they touch; what is left is spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.ir import Buffer, Scope, const_int
from tilelab.layout import Fragment, equivalent
from tilelab.tile.op import Access, Fact, Fixed, Loop, Prefer


@dataclass
class Solution:
    """`buffers`: id -> (buffer, layout, reason); `loops`: id of the statement -> its spread."""

    buffers: dict[int, tuple[Buffer, Any, str]] = field(default_factory=dict[Any, Any])
    loops: dict[int, Fragment] = field(default_factory=dict[int, Fragment])

    def layout(self, buffer: Buffer) -> Any:
        found = self.buffers.get(id(buffer))
        return None if found is None else found[1]


def solve(facts: Sequence[Fact], num_threads: int) -> Solution:
    """A layout for every buffer in `facts` and a spread for every loop.

    Raises TileValueError (TL1701) when two facts demand different layouts, naming both.
    """
    solution = Solution()
    for fact in facts:
        if isinstance(fact, Fixed):
            _assign(solution, fact.buffer, fact.layout, fact.why)
    loops = [f for f in facts if isinstance(f, Loop)]
    _propagate(solution, loops)
    _spread_rest(solution, loops, num_threads)
    prefer = [f for f in facts if isinstance(f, Prefer)]
    for fact in sorted(prefer, key=lambda f: -f.weight):
        if solution.layout(fact.buffer) is None:
            _assign(solution, fact.buffer, fact.layout, fact.why)
    return solution


def _assign(solution: Solution, buffer: Buffer, layout: Any, why: str) -> None:
    known = solution.buffers.get(id(buffer))
    if known is None:
        solution.buffers[id(buffer)] = (buffer, layout, why)
        return
    if not _same(known[1], layout):
        raise TileValueError(
            f"{buffer.name} would need two layouts: {known[1]} ({known[2]}) and {layout} ({why})",
            code="TL1701",
            loc=buffer.loc,
            hint="copy it to another fragment between the two uses",
        )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Fragment) and isinstance(b, Fragment):
        return a == b or (a.shape == b.shape and equivalent(a, b))
    return a == b


def _propagate(solution: Solution, loops: Sequence[Loop]) -> None:
    """Carry layouts through loops until nothing changes."""
    changed = True
    while changed:
        changed = False
        for loop in loops:
            if id(loop.key) in solution.loops:
                continue
            spread = _spread_from(solution, loop)
            if spread is not None:
                _settle(solution, loop, spread)
                changed = True


def _axes_of(access: Access, loop: Loop) -> list[int | None] | None:
    """For each axis of the fragment, which loop axis indexes it; None for a constant 0.

    None instead of a list when an index is neither.
    """
    axes: list[int | None] = []
    for index in access.indices:
        if const_int(index) == 0:
            axes.append(None)
            continue
        found = [i for i, v in enumerate(loop.vars) if v is index]
        if not found or found[0] in axes:
            return None
        axes.append(found[0])
    return axes


def _spread_from(solution: Solution, loop: Loop) -> Fragment | None:
    """The loop's spread when a fragment that all its axes index already has a layout."""
    for access in sorted(loop.accesses, key=lambda a: not a.is_write):
        layout = solution.layout(access.buffer)
        axes = _axes_of(access, loop)
        if not isinstance(layout, Fragment) or axes is None:
            continue
        used = [a for a in axes if a is not None]
        if sorted(used) != list(range(len(loop.vars))):
            continue
        for axis in reversed([i for i, a in enumerate(axes) if a is None]):
            layout = layout.drop_axis(axis)
        spread = layout.transpose([used.index(i) for i in range(len(used))])
        if all(c >= e for c, e in zip(spread.covers, loop.extents, strict=True)):
            return spread.with_shape(loop.extents)
    return None


def _settle(solution: Solution, loop: Loop, spread: Fragment) -> None:
    """Fix a loop's spread and give every fragment it touches the layout that follows."""
    solution.loops[id(loop.key)] = spread
    for access in loop.accesses:
        layout = _derived(access, loop, spread)
        known = solution.layout(access.buffer)
        if known is not None and _serves(known, layout):
            continue
        _assign(solution, access.buffer, layout, f"follows {loop.why}")


def _derived(access: Access, loop: Loop, spread: Fragment) -> Fragment:
    axes = _axes_of(access, loop)
    if axes is None:
        raise TileNotSupported(
            f"the fragment {access.buffer.name} is indexed by an expression of loop variables",
            code="TL1702",
            loc=loop.key.loc,
            hint="index fragments with the loop variables themselves",
        )
    used = [a for a in axes if a is not None]
    layout = spread
    for axis in sorted(set(range(len(loop.vars))) - set(used), reverse=True):
        layout = layout.reduce(axis)
    order = sorted(used)
    layout = layout.transpose([order.index(a) for a in used]) if len(used) > 1 else layout
    for position, axis in enumerate(axes):
        if axis is None:
            layout = layout.insert_axis(position)
    shape = access.buffer.static_shape
    if any(c < n for c, n in zip(layout.covers, shape, strict=True)):
        return _grown(layout, shape)
    return layout.with_shape(shape)


def _grown(layout: Fragment, shape: tuple[int, ...]) -> Fragment:
    """A layout of the loop's points extended over registers to the whole fragment."""
    times = [-(-n // c) for n, c in zip(shape, layout.covers, strict=True)]
    return layout.with_shape(layout.covers).repeat(*times).with_shape(shape)


def _serves(known: Any, wanted: Fragment) -> bool:
    return isinstance(known, Fragment) and known.shape == wanted.shape and _same(known, wanted)


def _spread_rest(solution: Solution, loops: Sequence[Loop], num_threads: int) -> None:
    """Spread loops that nothing decides, the largest first, and let each decide its fragments."""

    def points(loop: Loop) -> int:
        count = 1
        for e in loop.extents:
            count *= e
        return count

    for loop in sorted(loops, key=lambda f: -points(f)):
        if id(loop.key) in solution.loops:
            continue
        spread = Fragment.blocked(loop.extents or (1,), num_threads, loop.vector)
        _settle(solution, loop, spread)
        _propagate(solution, loops)


def unassigned(buffers: Sequence[Buffer], solution: Solution) -> list[Buffer]:
    """Fragments that no loop or instruction touches."""
    return [b for b in buffers if b.scope is Scope.FRAGMENT and solution.layout(b) is None]
