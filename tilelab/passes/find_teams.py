"""Tile operations in branches that only some threads take: they are spread over just those threads.

For ranges of threads that are no whole warps, whose tiles are moved element by element. Hides how
a condition is taken to pieces; what cannot be told is an error, not a tile with holes.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.errors import TileNotSupported
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    For,
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
    While,
    as_expr,
    binary,
    map_children,
    walk,
)
from tilelab.ir.build import conjuncts
from tilelab.passes.base import PassContext
from tilelab.passes.thread_ranges import Threads, ranges_of, threads_where
from tilelab.passes.uniform import Uniformity
from tilelab.thread.nodes import Role, WarpRoles
from tilelab.tile.op import TileOp


def find_teams(kernel: Kernel, thread: Var | None, ctx: PassContext) -> Kernel:
    """`kernel` with the threads of such branches noted on them. `thread`: the index, where the
    block has one axis.

    Raises TileNotSupported (TL1792) for a tile operation that the threads which come to it cannot
    do together.
    """
    branches = (n for n in walk(kernel.body) if isinstance(n, If | For | While))
    if not any(_spread_in(n) for n in branches):
        return kernel
    teams = _Teams(kernel, thread, ctx)
    return map_children(kernel, lambda n: teams.visit(n, Threads(0, kernel.num_threads)))


def _spreads(n: Node) -> bool:
    return isinstance(n, ParallelFor) or (isinstance(n, TileOp) and n.ran_by != "each")


def _spread_in(node: Node) -> list[Node]:
    """What is spread over threads inside of a statement."""
    return [n for n in walk(node) if _spreads(n)]


class _Teams:
    """Rewrites one kernel; `within` are the threads that come to a statement together."""

    def __init__(self, kernel: Kernel, thread: Var | None, ctx: PassContext) -> None:
        self.thread, self.ctx = thread, ctx
        self.facts = Uniformity(kernel)

    def visit(self, node: Node, within: Threads) -> Node:
        if isinstance(node, Expr) or not _spread_in(node):
            return node
        if isinstance(node, Role):
            within = Threads(node.first, node.first + node.count)
        elif self.facts.takes_apart(node):
            return self.apart(node, within)
        return map_children(node, lambda n: self.visit(n, within))

    def apart(self, stmt: Node, within: Threads) -> Stmt:
        """A statement whose tile operations only some threads come to."""
        if not isinstance(stmt, If):
            raise self.refused(stmt, "threads go round this loop differently often")
        ranges = self._ranges(stmt, within)
        if ranges is None:
            return self._of_range_and_rest(stmt, within)
        done = tuple(self._team(stmt, cond, mine, body) for cond, mine, body in ranges)
        return done[0] if len(done) == 1 else Seq(done, loc=stmt.loc)

    def _ranges(self, stmt: If, within: Threads) -> list[tuple[Expr, Threads, Seq]] | None:
        """The threads of every side, and the condition that says them; None where they are none."""
        ranges, thread = ranges_of(stmt, self.thread, within), self.thread
        if ranges is None or thread is None:
            return None
        # A later side's own condition holds for threads of the sides before it too.
        said = (stmt.cond, *(_between(thread, mine) for _, mine, _ in ranges[1:]))
        return [(c, mine, body) for c, (_, mine, body) in zip(said, ranges, strict=True)]

    def _of_range_and_rest(self, stmt: If, within: Threads) -> Stmt:
        """`if tx < 48 and more` as two branches, where only one of them is on the thread."""
        parts = list(conjuncts(stmt.cond))
        on_thread = [c for c in parts if threads_where(c, self.thread, within) is not None]
        rest = [c for c in parts if not any(c is x for x in on_thread)]
        plain = stmt.orelse is None or not stmt.orelse.body
        if not plain or not on_thread or not rest or any(map(self.facts.differs, rest)):
            raise self.refused(stmt, "threads take this branch apart")
        inner = replace(stmt, cond=_all(rest))
        outer = replace(stmt, cond=_all(on_thread), then=Seq((inner,), loc=stmt.loc))
        return self.apart(outer, within)

    def _team(self, stmt: If, cond: Expr, mine: Threads, body: Seq) -> Stmt:
        """One side, for its threads."""
        done = map_children(body, lambda n: self.visit(n, mine))
        spread, count = _spread_in(body), mine.count
        branch = If(cond, done, loc=stmt.loc)
        if not spread or count <= 0:
            return branch
        if mine.whole_warps:
            role = Role(mine.text, mine.first, count, done, own_barriers=False)
            return WarpRoles((role,), loc=stmt.loc)
        foreign = _foreign_fragments(body)
        if foreign and mine.first == 0 and all(b.static_shape in ((), (1,)) for b in foreign):
            return branch  # one element, which all threads hold: the first of them acts
        if foreign:
            names = ", ".join(sorted({b.name for b in foreign}))
            raise self.refused(stmt, f"other threads hold parts of {names}")
        for op in spread:
            if isinstance(op, TileOp) and op.ran_by == "warps":
                raise self.refused(
                    op, f"{op.op_name} needs whole warps, and here are {count} threads"
                )
        self.ctx.note(f"tiles are spread over {mine.text}", stmt)
        return replace(branch, threads=(mine.first, count))

    def refused(self, stmt: Node, why: str) -> TileNotSupported:
        first = next(iter(_spread_in(stmt)), stmt)
        what = first.op_name if isinstance(first, TileOp) else "a T.Parallel loop"
        return TileNotSupported(
            f"{why}: {what} stands where only some threads come, and its tile would have holes",
            code="TL1792", loc=getattr(first, "loc", None),
            hint="let all threads run it, or a range of whole warps (T.ws, `if tx < 64`), and put "
            "what depends on the thread into the elements",
        )  # fmt: skip


def _between(thread: Var, mine: Threads) -> Expr:
    return _all([binary(">=", thread, mine.first), binary("<", thread, mine.stop)])


def _all(conditions: list[Expr]) -> Expr:
    out = as_expr(conditions[0])
    for cond in conditions[1:]:
        out = binary("and", out, cond)
    return out


def _foreign_fragments(body: Seq) -> list[Buffer]:
    """Fragments that come from outside of a branch and are used by what is spread inside."""
    own = {id(n.buffer.storage) for n in walk(body) if isinstance(n, Alloc)}
    used: list[Buffer] = []
    for op in _spread_in(body):
        if isinstance(op, TileOp):
            used += [r.buffer for r in (*op.read_regions(), *op.written_regions())]
        used += [n.buffer for n in walk(op) if isinstance(n, Load | Store)]
    return [b for b in used if b.scope is Scope.FRAGMENT and id(b.storage) not in own]
