"""Atomic additions of an elementwise loop as stores that add, while wide accesses are sought.

Hides which atomic updates a vector of neighbours can stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.ir import Expr, Load, Node, ParallelFor, Store
from tilelab.ir.rewrite import map_statements
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.intrinsics.atomic import atomic, widest_sum
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext, power_of_two


@dataclass(frozen=True, eq=False)
class AtomicSum(Store):
    """`buffer[indices] += value` in one step, by `record` where it stays a single element."""

    record: Intrinsic

    def alone(self) -> Invoke:
        """The update of this element."""
        return Invoke(self.record, (Ref(self.buffer, self.indices), self.value), loc=self.loc)


def with_sums(loop: ParallelFor) -> ParallelFor:
    """The loop with its relaxed atomic additions, whose values nobody asks for, as AtomicSum."""

    def visit(n: Node) -> Node:
        if not isinstance(n, Invoke) or n.result is not None or len(n.operands) != 2:
            return n
        place, value = n.operands
        if not isinstance(place, Ref) or not isinstance(value, Expr):
            return n
        if n.intrinsic is not atomic("add", place.buffer.dtype, "relaxed"):
            return n
        return AtomicSum(place.buffer, place.indices, value, n.intrinsic, loc=n.loc)

    return map_statements(loop, visit)


def widest(access: Load | Store, ctx: LowerContext, width: int) -> int:
    """`width`, or what of it one instruction takes."""
    if not isinstance(access, AtomicSum):
        return width
    return power_of_two(widest_sum(access.buffer, ctx.target.features), width)
