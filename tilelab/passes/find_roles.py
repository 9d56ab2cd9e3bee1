"""find-roles: branches on ranges of whole warps become warp roles.

`if tx < 128: A elif tx < 256: B else: C` says what T.ws says: each side is a program of its own
threads. As roles, tile operations inside are spread over just those threads, and the barriers
that they need join just those threads. Branches without such work stay branches. Tile operations
in other branches on the thread index: `find_teams.py`.
"""

from __future__ import annotations

from tilelab.ir import (
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
    map_children,
    walk,
)
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.find_teams import find_teams
from tilelab.passes.thread_ranges import Threads, ranges_of
from tilelab.thread.nodes import Invoke, Role, WarpRoles
from tilelab.tile.op import TileOp


@kernel_pass("find-roles", needs=("checked",))
def find_roles(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Turn branches on ranges of whole warps, with tile work inside, into warp roles."""
    wide = [v for v, n in zip(kernel.thread_vars, kernel.threads, strict=False) if n > 1]
    one_axis = len(wide) == 1 and wide[0] is kernel.thread_vars[0]
    thread = wide[0] if one_axis else None
    finder = _Finder(thread, Threads(0, kernel.num_threads), ctx)
    return find_teams(map_children(kernel, finder.visit), thread, ctx)


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
        ranges = ranges_of(branch, self.thread, self.block)
        if ranges is None or not all(t.whole_warps and t != self.block for _, t, _ in ranges):
            return None
        found = [Role(t.text, t.first, t.count, body, own_barriers=False) for _, t, body in ranges]
        self.ctx.note(f"{len(found)} warp role(s) by thread index", branch)
        return WarpRoles(tuple(found), loc=branch.loc)


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
