"""Layout solver: from facts to one layout per buffer and per loop, each with its reason.

Knows no IR beyond variables as names of loop axes. Instructions fix some layouts; loops carry a
fragment's layout to the other fragments they touch; what is left is spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilelab.ir import Alloc, Buffer, Scope, Stmt
from tilelab.layout import Fragment
from tilelab.passes.layout_derive import (
    axes_of,
    derived,
    is_everywhere,
    padded,
    picking_axes,
    same,
    serves,
    spread_from,
)
from tilelab.passes.layout_views import Views
from tilelab.tile.op import Access, Fact, Fixed, Loop, Prefer


@dataclass
class Solution:
    """`buffers`: id -> (buffer, layout, reason); `loops`: id of the statement -> its spread."""

    buffers: dict[int, tuple[Buffer, Any, str]] = field(default_factory=dict[Any, Any])
    loops: dict[int, Fragment] = field(default_factory=dict[int, Fragment])
    views: Views = field(default_factory=lambda: Views(()))

    def put(self, buffer: Buffer, layout: Any, reason: str) -> None:
        """Decide the layout of a buffer, and with it those of the fragments that view it."""
        entry = (buffer, layout, reason)
        for known in (entry, *self.views.follow(entry)):
            self.buffers[id(known[0])] = known

    def layout(self, buffer: Buffer) -> Any:
        """The layout decided for a buffer, None when there is none yet."""
        found = self.buffers.get(id(buffer))
        return None if found is None else found[1]


class LayoutConflict(Exception):
    """Two uses of a buffer need different layouts: `statement` is the use to be changed."""

    def __init__(self, statement: Stmt, buffer: Buffer, reason: str) -> None:
        super().__init__(reason)
        self.statement, self.buffer, self.reason = statement, buffer, reason


def solve(facts: Sequence[Fact], num_threads: int, views: Views) -> Solution:
    """A layout for every buffer in `facts` and a spread for every loop.

    Raises LayoutConflict at the first use that cannot be served.
    """
    solution = Solution(views=views)
    for fact in facts:
        if isinstance(fact, Fixed):
            _assign(solution, fact.buffer, fact.layout, fact.why, fact.key)
    loops = [f for f in facts if isinstance(f, Loop)]
    _propagate(solution, loops)
    _spread_rest(solution, loops, num_threads)
    prefer = [f for f in facts if isinstance(f, Prefer)]
    for fact in sorted(prefer, key=lambda f: -f.weight):
        if solution.layout(fact.buffer) is None:
            solution.put(fact.buffer, fact.layout, fact.why)
    views.settle_shared(solution.buffers, {id(f.buffer) for f in facts if isinstance(f, Fixed)})
    return solution


def _assign(solution: Solution, buffer: Buffer, layout: Any, why: str, key: Stmt) -> None:
    known = solution.buffers.get(id(buffer))
    if known is None:
        if not isinstance(key, Alloc) and not solution.views.admits(buffer, layout):
            raise LayoutConflict(key, buffer, f"views of {buffer.name} cannot see {layout} ({why})")
        solution.put(buffer, layout, why)
        return
    if not same(known[1], layout):
        reason = f"{buffer.name} is laid out as {known[1]} ({known[2]}); {why} needs {layout}"
        raise LayoutConflict(key, buffer, reason)


def _propagate(solution: Solution, loops: Sequence[Loop]) -> None:
    """Carry layouts through loops until nothing changes."""
    changed = True
    while changed:
        changed = False
        for loop in loops:
            if id(loop.key) in solution.loops:
                continue
            spread = _known_spread(solution, loop)
            if spread is not None:
                _settle(solution, loop, spread)
                changed = True


def _known_spread(solution: Solution, loop: Loop) -> Fragment | None:
    """The spread that a fragment with a layout gives the loop: a written fragment's, whose copies
    must all be reached, else the one with the fewest copies."""
    found: list[tuple[bool, int, Fragment]] = []
    for access in (a for a in loop.accesses if not a.gathers):
        spread = spread_from(solution.layout(access.buffer), axes_of(access, loop), loop)
        if spread is not None:
            found.append((not access.is_write, spread.replication, spread))
    return min(found, key=lambda f: f[:2])[2] if found else None


def _settle(solution: Solution, loop: Loop, spread: Fragment) -> None:
    """Fix a loop's spread and give every fragment it touches the layout that follows."""
    solution.loops[id(loop.key)] = spread
    for access in loop.accesses:
        _serve(solution, loop, access, spread)


def _serve(solution: Solution, loop: Loop, access: Access, spread: Fragment) -> None:
    buffer = access.buffer
    if access.gathers and is_everywhere(solution.layout(buffer)):
        return
    uses = axes_of(access, loop)
    layout = None if uses is None else derived(uses, buffer.static_shape, spread)
    if layout is None:
        reason = f"{buffer.name} is indexed by an expression that crosses threads in {loop.why}"
        raise LayoutConflict(loop.key, buffer, reason)
    known = solution.buffers.get(id(buffer))
    if known is None and not solution.views.admits(buffer, layout):
        reason = f"views of {buffer.name} cannot see it as {loop.why} needs it"
        raise LayoutConflict(loop.key, buffer, reason)
    if known is None:
        solution.put(buffer, layout, f"follows {loop.why}")
    elif not serves(known[1], layout, access.is_write and not access.gathers):
        reason = f"{buffer.name} is laid out as {known[1]} ({known[2]}); {loop.why} needs {layout}"
        raise LayoutConflict(loop.key, buffer, reason)


def _spread_rest(solution: Solution, loops: Sequence[Loop], num_threads: int) -> None:
    """Spread loops that nothing decides, the largest first, of equal ones those that want the
    widest vectors, and let each decide its fragments. Loops that pick rows come before: no other
    one needs whole columns in a thread's registers."""

    def order(loop: Loop) -> tuple[bool, int, int]:
        return not picking_axes(loop), -prod(loop.extents), -loop.vector

    for loop in sorted(loops, key=order):
        if id(loop.key) in solution.loops:
            continue
        threads = loop.threads or num_threads
        spread, vector = _even(loop, loops, threads)
        for buffer in _hidden_from_views(solution, loop, spread):
            layout = solution.views.common(buffer, threads, vector)
            solution.put(buffer, layout, "seen under several shapes")
        _propagate(solution, loops)
        if id(loop.key) not in solution.loops:
            _settle(solution, loop, spread)
            _propagate(solution, loops)


def _even(loop: Loop, loops: Sequence[Loop], threads: int) -> tuple[Fragment, int]:
    """A spread that nothing decides, and its vector: no vector so wide that threads are left
    without elements. Of a loop that picks rows its columns are spread, in vectors as the loops
    want them that it shares fragments with, and each thread has all points of a column."""
    columns, wanted, extents = picking_axes(loop), loop.vector, loop.extents or (1,)
    own = {id(a.buffer) for a in loop.accesses}
    if columns:
        wanted = max(f.vector for f in loops if any(id(a.buffer) in own for a in f.accesses))
        wanted = wanted if len(extents) - 1 in columns else 1
    spread = [n if not columns or i in columns else 1 for i, n in enumerate(extents)]
    points = prod(spread)
    vector = min(wanted, 1 << (max(points // threads, 1).bit_length() - 1))
    while columns and vector > 1 and padded(points, threads, vector) > padded(points, threads):
        vector //= 2
    times = [n // s for n, s in zip(extents, spread, strict=True)]
    return Fragment.blocked(spread, threads, vector).repeat(*times), vector


def _hidden_from_views(solution: Solution, loop: Loop, spread: Fragment) -> Iterator[Buffer]:
    """Fragments without a layout to which the spread would give one that their views cannot
    see."""
    for access in loop.accesses:
        uses = axes_of(access, loop)
        if uses is None or solution.layout(access.buffer) is not None:
            continue
        layout = derived(uses, access.buffer.static_shape, spread)
        if layout is not None and not solution.views.admits(access.buffer, layout):
            yield access.buffer


def unassigned(buffers: Sequence[Buffer], solution: Solution) -> list[Buffer]:
    """Fragments that no loop or instruction touches."""
    return [b for b in buffers if b.scope is Scope.FRAGMENT and solution.layout(b) is None]
