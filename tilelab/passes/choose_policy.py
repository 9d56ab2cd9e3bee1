"""choose-policy: how warps share gemm tiles whose policy the program leaves open.

When the accumulator of one gemm becomes the A operand of another (attention: scores, then
probabilities), each warp should own whole rows: then it already holds the rows it multiplies next,
and row statistics need no other warp.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.ir import Buffer, Kernel, Load, Node, ParallelFor, Region, Scope, Store, walk
from tilelab.ir.rewrite import rewrite_statements
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.tile.op import TileOp
from tilelab.tile.ops.gemm import Gemm, GemmWarpPolicy


@kernel_pass("choose-policy", needs=("checked",))
def choose_policy(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Give gemms whose result feeds another gemm's registers whole rows per warp."""
    gemms = [n for n in walk(kernel) if isinstance(n, Gemm)]
    fed = [g.a.buffer for g in gemms if g.a.buffer.scope is Scope.FRAGMENT]
    if not fed:
        return kernel
    groups = _connected(kernel)
    wanted = {groups.find(b) for b in fed}

    def with_rows(n: Node) -> Node | None:
        if not isinstance(n, Gemm):
            return None
        if n.policy is not GemmWarpPolicy.AUTO or groups.find(n.c.buffer) not in wanted:
            return n
        ctx.note(f"{n.label()}: whole rows per warp, because its result feeds another gemm", n)
        return replace(n, policy=GemmWarpPolicy.FullRow)

    return rewrite_statements(kernel, with_rows)


class _Groups:
    """Union-find over fragments."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, buffer: Buffer) -> int:
        """The representative of a buffer's group."""
        key = id(buffer)
        while self._parent.get(key, key) != key:
            key = self._parent[key]
        return key

    def join(self, buffers: list[Buffer]) -> None:
        """Put buffers into one group."""
        for other in buffers[1:]:
            self._parent[self.find(other)] = self.find(buffers[0])


def _connected(kernel: Kernel) -> _Groups:
    """Fragments that one elementwise statement touches together hold the same rows."""
    groups = _Groups()
    for node in walk(kernel):
        elementwise = isinstance(node, ParallelFor) or (
            isinstance(node, TileOp) and not isinstance(node, Gemm)
        )
        if elementwise:
            groups.join(_fragments(node))
    return groups


def _fragments(node: Node) -> list[Buffer]:
    found = [n.buffer for n in walk(node) if isinstance(n, Load | Store | Region)]
    return [b for b in found if b.scope is Scope.FRAGMENT and b.rank > 1]
