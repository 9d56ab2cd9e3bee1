"""Barriers out of branches that threads take apart: a barrier there would wait for threads that
never come. `if own: A; barrier; B` becomes `if own: A`, `barrier`, `if own: B`. Hides how names
and loops are carried across the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tilelab.dtypes import BOOL
from tilelab.errors import Loc, TileNotSupported
from tilelab.ir import (
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    as_expr,
    map_children,
    select,
    unary,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.ir.stmt import may_leave
from tilelab.passes.lowering_context import Names
from tilelab.passes.uniform import Uniformity
from tilelab.thread.intrinsics.barrier import NAMED_BARRIER_SYNC, SYNCTHREADS
from tilelab.thread.nodes import Invoke, ThreadKernel

Note = Callable[[str, Stmt], None]


def part_branches(kernel: ThreadKernel, note: Note) -> ThreadKernel:
    """`kernel` with every inserted barrier where all threads come by.

    Raises TileNotSupported (TL1791) where threads that go round a loop differently often must wait
    for each other.
    """
    if not any(isinstance(n, If | While | For) and _waits(n) for n in walk(kernel.body)):
        return kernel
    parter = _Parter(kernel, note)
    body = parter.everyone(kernel.body)
    if body is kernel.body:
        return kernel
    return replace(kernel, body=body, locals=(*kernel.locals, *parter.kept))


def _is_barrier(n: Node) -> bool:
    return isinstance(n, Invoke) and n.intrinsic in (SYNCTHREADS, NAMED_BARRIER_SYNC)


def _waits(node: Node) -> bool:
    """Whether a barrier that the compiler put stands somewhere inside."""
    return any(_is_barrier(n) and n.reason for n in walk(node))  # type: ignore[union-attr]


class _Parter:
    """Rewrites one kernel; `kept` are the registers that carry values from part to part."""

    def __init__(self, kernel: ThreadKernel, note: Note) -> None:
        self.facts, self.note = Uniformity(kernel), note
        self.kept: list[Buffer] = []
        taken = {getattr(n, "name", "") for n in walk(kernel.body)}
        taken.update(b.name for b in (*kernel.locals, *kernel.tensors, *kernel.views))
        self._name = Names(taken)

    def everyone(self, node: Any) -> Any:
        """Statements that all threads run."""
        if isinstance(node, Expr) or not _waits(node):
            return node
        if not self.facts.takes_apart(node):
            return map_children(node, self.everyone)
        if not isinstance(node, If):
            raise _refused(node, "go round this loop differently often")
        self.note("split at its barriers: threads take this branch apart", node)
        return Seq(tuple(self.branch(node, None)), loc=node.loc)

    def branch(self, s: If, own: Expr | None) -> list[Stmt]:
        """A branch that threads take apart; `own`: who comes here at all (None: everyone)."""
        cond = s.cond if own is None else select(own, s.cond, False)
        keep, taken = self.keep("takes", Var("takes", BOOL), cond, s.loc)
        out: list[Stmt] = [keep, *self.parts(s.then, taken)]
        if s.orelse is not None and s.orelse.body:
            other: Expr = unary("not", taken)
            if own is not None:
                other = select(own, other, False)
            out += self.parts(s.orelse, other)
        return out

    def parts(self, s: Seq, own: Expr) -> list[Stmt]:
        """Statements for the threads of `own` only, with the barriers between them for all."""
        out: list[Stmt] = []
        run: list[Stmt] = []
        todo = list(_flat(s))
        for number in range(len(todo)):
            stmt = todo[number]  # as the values carried so far have changed it
            if not _waits(stmt):
                run += self._with_carried(stmt, todo, number + 1)
                continue
            if run:
                out.append(_under(own, run, s.loc))
                run = []
            out += self.part(stmt, own)
        return [*out, _under(own, run, s.loc)] if run else out

    def part(self, stmt: Stmt, own: Expr) -> list[Stmt]:
        """One statement with barriers inside."""
        if _is_barrier(stmt):
            return [stmt]
        if isinstance(stmt, If):
            return self.branch(stmt, own)
        bounds = (stmt.start, stmt.extent, stmt.step) if isinstance(stmt, For) else ()
        if isinstance(stmt, For) and not self.facts.takes_apart(stmt) and _known(bounds):
            return [replace(stmt, body=Seq(tuple(self.parts(stmt.body, own)), loc=stmt.loc))]
        raise _refused(stmt, "come to this statement apart")

    def keep(self, name: str, var: Var, value: Expr, loc: Loc | None) -> tuple[Store, Load]:
        """A register that holds a value from here on."""
        buffer = Buffer(self._name(name), (1,), var.dtype, Scope.LOCAL, loc=loc)
        self.kept.append(buffer)
        place = (as_expr(0),)
        return Store(buffer, place, value, loc=loc), Load(buffer, place)

    def _with_carried(self, stmt: Stmt, todo: list[Stmt], first: int) -> list[Stmt]:
        """A statement; where it names a value that is read beyond a barrier, the value goes into
        a register, which `todo` reads from `first` on."""
        name: Var | None = stmt.var if isinstance(stmt, Let) else getattr(stmt, "result", None)
        later = todo[first:]
        used = name is not None and any(n is name for x in later for n in walk(x))
        if name is None or not used or not any(map(_waits, later)):
            return [stmt]
        value = stmt.value if isinstance(stmt, Let) else name
        store, load = self.keep(name.name, name, value, stmt.loc)
        todo[first:] = [substitute(x, {name: load}) for x in later]
        return [store] if isinstance(stmt, Let) else [stmt, store]


def _flat(s: Seq) -> Iterable[Stmt]:
    for stmt in s.body:
        if isinstance(stmt, Seq) and _waits(stmt):
            yield from _flat(stmt)
        else:
            yield stmt


def _under(own: Expr, run: list[Stmt], loc: Loc | None) -> If:
    return If(own, Seq(tuple(run), loc=loc), loc=loc)


def _known(bounds: Iterable[Expr]) -> bool:
    """Whether threads that skip a loop may compute its bounds: these read no memory."""
    loads = (n for e in bounds for n in walk(e) if isinstance(n, Load))
    return all(n.buffer.scope is Scope.LOCAL for n in loads)


def _refused(stmt: Stmt, what: str) -> TileNotSupported:
    leaves = may_leave(stmt)
    return TileNotSupported(
        f"threads that {what} hand shared data to each other: a barrier here would wait for "
        "threads that never come",
        code="TL1791", loc=stmt.loc,
        hint="let all threads go through the loop the same number of times, and test inside"
        + (" instead of leaving it" if leaves else ""),
    )  # fmt: skip
