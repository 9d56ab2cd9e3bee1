"""stamp-schedule: notes when one block waits, loads and frees slots (`tl.stamp_schedule`: N).

Runs last, and only when a schedule is to be measured: the instructions around it are those of the
kernel without stamps. Hides which instructions tell of a schedule, and who stamps for a role: its
first thread, which counts its stamps in one register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilelab.dtypes import UINT32
from tilelab.errors import TileValueError
from tilelab.ir import (
    Buffer,
    Const,
    Expr,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    as_expr,
    map_children,
    walk,
)
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.plan import Stamp
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.intrinsics.stamp import MOST, stamp
from tilelab.thread.nodes import Invoke, Program, Ref, Role, ThreadKernel

KEY = "tl.stamp_schedule"

_KINDS = {
    "mbarrier_wait": "wait", "mbarrier_test_wait": "wait", "mbarrier_expect_tx": "expect",
    "mbarrier_arrive": "arrive", "syncthreads": "wait", "cp_async_commit": "commit",
}  # fmt: skip
"""Instruction -> what its event is called; one that waits is stamped before and after."""
_NAMES = {"syncthreads": "__syncthreads", "cp_async_commit": "cp.async"}


@tile_pass(KEY.removeprefix("tl.").replace("_", "-"))
def stamp_schedule(program: Program, ctx: PassContext) -> Program:
    """Note when one block waits for slots, loads them and frees them."""
    block = ctx.option(KEY)
    if not isinstance(block, int) or isinstance(block, bool) or block < 0:
        raise TileValueError(
            f"{KEY}={block!r} is no number of a block", code="TL1202",
            hint="give the number of the block to be timed, from 0 on",
        )  # fmt: skip
    roles = sum(isinstance(n, Role) for n in walk(program))
    record = stamp(roles + len(program.kernels), block)
    sites, rows = ctx.trace.stamps, dict[tuple[str, str], int]()
    kernels = tuple(_Stamper(k, record, sites, rows).stamped() for k in program.kernels)
    return replace(program, kernels=kernels)


class _Stamper:
    """Puts stamps into one kernel. `sites` and `rows` (a row for each role) are those of the
    whole program, which it extends."""

    def __init__(
        self, kernel: ThreadKernel, record: Intrinsic, sites: list[Stamp],
        rows: dict[tuple[str, str], int],
    ) -> None:  # fmt: skip
        self._kernel, self._record, self._sites, self._rows = kernel, record, sites, rows
        self._count = Buffer("stamped", (1,), UINT32, Scope.LOCAL, loc=kernel.loc)

    def stamped(self) -> ThreadKernel:
        """The kernel with its stamps, and a register that counts them from 0."""
        before = len(self._sites)
        body = self._visit(self._kernel.body, 0, "block")
        if len(self._sites) == before:
            return self._kernel
        zero = Store(self._count, (as_expr(0),), Const(0, UINT32), loc=self._kernel.loc)
        return replace(
            self._kernel,
            locals=(*self._kernel.locals, self._count),
            body=replace(body, body=(zero, *body.body)),
        )

    def _visit(self, node: Any, first: int, role: str) -> Any:
        """The node with stamps around the instructions that tell something."""
        if isinstance(node, Role):
            return replace(node, body=self._visit(node.body, node.first, node.name))
        if isinstance(node, Seq):
            parts = [part for s in node.body for part in self._around(s, first, role)]
            return replace(node, body=tuple(parts))
        return map_children(node, lambda child: self._visit(child, first, role))

    def _around(self, stmt: Stmt, first: int, role: str) -> Sequence[Stmt]:
        told = _told(stmt)
        if told is None or len(self._sites) + 2 > MOST:
            return (self._visit(stmt, first, role),)
        edges = ("start", "end") if told.kind == "wait" else ("at",)
        made = [self._stamp(told, edge, first, role, stmt) for edge in edges]
        return (*made[:1], stmt, *made[1:])

    def _stamp(self, told: _Told, edge: str, first: int, role: str, stmt: Stmt) -> Stmt:
        row = self._rows.setdefault((self._kernel.name, role), len(self._rows))
        site = len(self._sites)
        self._sites.append(
            Stamp(self._kernel.name, role, row, told.kind, told.name, edge, stmt.loc)
        )
        count = Ref(self._count, (as_expr(0),))
        numbers = [as_expr(n) for n in (row, first, site)]
        return Invoke(self._record, (*numbers, told.which, count), loc=stmt.loc)


@dataclass(frozen=True)
class _Told:
    """What an instruction says about the schedule."""

    kind: str
    name: str
    which: Expr


def _told(stmt: Node) -> _Told | None:
    """What an instruction says about the schedule; None: nothing."""
    if not isinstance(stmt, Invoke):
        return None
    name = stmt.intrinsic.name
    if name.startswith("cp_async_wait"):
        return _Told("wait", "cp.async", as_expr(0))
    kind = _KINDS.get(name)
    if kind is None:
        return None
    bar = stmt.operands[0] if stmt.operands else None
    if isinstance(bar, Ref):
        return _Told(kind, bar.buffer.root.name, bar.indices[0])
    return _Told(kind, _NAMES[name], as_expr(0))
