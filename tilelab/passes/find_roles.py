"""find-roles: branches on ranges of whole warps become warp roles.

`if tx < 128: A elif tx < 256: B else: C` says what T.ws says: each side is a program of its own
threads. As roles, tile operations inside are spread over just those threads, and the barriers
that they need join just those threads. Branches without such work stay branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilelab.ir import (
    Binary,
    Expr,
    If,
    Kernel,
    Load,
    Node,
    ParallelFor,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    const_int,
    map_children,
    walk,
)
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.thread.nodes import Invoke, Role, WarpRoles
from tilelab.tile.op import TileOp

WARP = 32


@dataclass(frozen=True)
class Threads:
    """Threads first .. stop-1 of the block."""

    first: int
    stop: int

    @property
    def whole_warps(self) -> bool:
        return self.first < self.stop and not (self.first % WARP or self.stop % WARP)

    def minus(self, other: Threads) -> Threads | None:
        """What is left without `other`, which lies at one end; None where that is no range."""
        if other.first == self.first:
            return Threads(other.stop, self.stop)
        return Threads(self.first, other.first) if other.stop == self.stop else None


@kernel_pass("find-roles", needs=("checked",))
def find_roles(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Turn branches on ranges of whole warps, with tile work inside, into warp roles."""
    wide = [v for v, n in zip(kernel.thread_vars, kernel.threads, strict=False) if n > 1]
    one_axis = len(wide) == 1 and wide[0] is kernel.thread_vars[0]
    thread = wide[0] if one_axis else None
    finder = _Finder(thread, Threads(0, kernel.num_threads), ctx)
    return map_children(kernel, finder.visit)


class _Finder:
    """Rewrites one kernel; `block` is all its threads, `thread` their number (None: the block has
    several axes, and conditions are left alone)."""

    def __init__(self, thread: Var | None, block: Threads, ctx: PassContext) -> None:
        self.thread, self.block, self.ctx = thread, block, ctx

    def visit(self, node: Node) -> Node:
        if isinstance(node, If):
            roles = self.roles(node)
            if roles is not None:
                return roles
        if isinstance(node, Expr | WarpRoles):
            return node
        done = map_children(node, self.visit)
        return _merged(done) if isinstance(done, Seq) else done

    def roles(self, branch: If) -> WarpRoles | None:
        """The roles of a branch, or None when it stays a branch."""
        if not _wants_own_threads(branch):
            return None
        found: list[Role] = []
        left: Threads | None = self.block
        for cond, body in _sides(branch):
            if left is None:
                return None
            mine = left if cond is None else threads_where(cond, self.thread, left)
            if mine is None or not mine.whole_warps or mine == self.block:
                return None
            count = mine.stop - mine.first
            name = f"threads {mine.first} to {mine.stop - 1}"
            found.append(Role(name, mine.first, count, body, own_barriers=False))
            left = left.minus(mine)
        self.ctx.note(f"{len(found)} warp role(s) by thread index", branch)
        return WarpRoles(tuple(found), loc=branch.loc)


def threads_where(cond: Expr, thread: Var | None, within: Threads) -> Threads | None:
    """The threads of `within` for which a condition holds, where it says a range."""
    if not isinstance(cond, Binary) or thread is None:
        return None
    if cond.op == "and":
        first = threads_where(cond.a, thread, within)
        return None if first is None else threads_where(cond.b, thread, first)
    limit, rule = const_int(cond.b), _RANGES.get(cond.op)
    size = 1 if cond.a is thread else _group_size(cond.a, thread)
    if size is None or limit is None or rule is None:
        return None
    return rule(limit, size, within)


def _group_size(value: Expr, thread: Var) -> int | None:
    """n where a value is the number of the thread's group of n: `tx // 32` is that of its warp."""
    if not isinstance(value, Binary) or value.op != "//" or value.a is not thread:
        return None
    size = const_int(value.b)
    return size if size is not None and size > 0 else None


def _below(limit: int, size: int, within: Threads) -> Threads:
    return Threads(within.first, min(limit * size, within.stop))


def _from(limit: int, size: int, within: Threads) -> Threads:
    return Threads(max(limit * size, within.first), within.stop)


_RANGES: dict[str, Callable[[int, int, Threads], Threads]] = {
    "<": _below,
    "<=": lambda limit, size, within: _below(limit + 1, size, within),
    ">": lambda limit, size, within: _from(limit + 1, size, within),
    ">=": _from,
    "==": lambda limit, size, within: _below(limit + 1, size, _from(limit, size, within)),
}
"""Threads of a range whose group, of `size` threads, has a number with this relation to a limit."""


def _sides(branch: If) -> Iterator[tuple[Expr | None, Seq]]:
    """Conditions and bodies of an if, elif, else chain."""
    yield branch.cond, branch.then
    rest = branch.orelse
    if rest is None or not rest.body:
        return
    inner = rest.body[0]
    if len(rest.body) == 1 and isinstance(inner, If):
        yield from _sides(inner)
    else:
        yield None, rest


def _wants_own_threads(branch: If) -> bool:
    """Whether a branch holds what is spread over threads, waits, or both writes and reads shared
    memory (so that its threads must wait for each other)."""
    nodes = list(walk(branch))
    if any(isinstance(n, TileOp | ParallelFor) or _waits(n) for n in nodes):
        return True
    shared = [n for n in nodes if isinstance(n, Load | Store) and n.buffer.scope is Scope.SHARED]
    return len({type(n) for n in shared}) > 1


def _waits(n: Node) -> bool:
    return isinstance(n, Invoke) and n.intrinsic.waits


def _merged(block: Seq) -> Seq:
    """Neighbouring roles of different threads run beside each other: one statement."""
    out: list[Stmt] = []
    for stmt in block.body:
        last = out[-1] if out else None
        if isinstance(stmt, WarpRoles) and isinstance(last, WarpRoles) and apart(last, stmt):
            out[-1] = WarpRoles((*last.roles, *stmt.roles), loc=last.loc)
        else:
            out.append(stmt)
    return block if len(out) == len(block.body) else Seq(tuple(out), loc=block.loc)


def apart(a: WarpRoles, b: WarpRoles) -> bool:
    """Whether no thread has a role in both."""
    return all(
        x.first + x.count <= y.first or y.first + y.count <= x.first
        for x in a.roles
        for y in b.roles
    )
