"""The rules of the IR as code; the pass runner checks them after every pass.

Four tables say what holds, and higher ranks extend them: BINDERS (what a node brings into scope
for what is under it), DECLARES (what a statement brings into scope for those after it), NODE_RULES
(what one node must be like) and CHECKERS (what a fact that some pass made promises about the tree).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tilelab.errors import Loc, TileInternalError
from tilelab.ir.buffer import Buffer, Region, Scope
from tilelab.ir.core import Node, children, walk
from tilelab.ir.expr import COMPARISONS, LOGICAL, Binary, Call, Expr, Load, Select, Unary, Var
from tilelab.ir.printer import to_text
from tilelab.ir.stmt import (
    RESIDENT,
    Alloc,
    Break,
    Continue,
    For,
    Function,
    If,
    Kernel,
    Let,
    ParallelFor,
    ScalarParam,
    Seq,
    Store,
    TensorParam,
    While,
)


@dataclass(frozen=True)
class Problem:
    """A broken rule: one sentence, and the node it is about."""

    text: str
    node: Node


def verify(node: Node, facts: frozenset[str] = frozenset()) -> None:
    """Check the rules that always hold, and those of `facts`.

    Raises TileInternalError (TL1900) that names the node, its place and the rule.
    """
    for problem, loc in problems(node, facts):
        line = to_text(problem.node).split("\n", 1)[0]
        raise TileInternalError(
            f"{problem.text}: {line}",
            loc=loc,
            hint="this is a bug of tilelab: please report it with the program",
        )


def problems(
    node: Node, facts: frozenset[str] = frozenset()
) -> Iterator[tuple[Problem, Loc | None]]:
    """Every broken rule, with the Python place of the nearest statement that has one."""
    yield from _Scopes().visit(node, _Env(), None)
    for fact in sorted(facts):
        check = CHECKERS.get(fact)
        if check is not None:
            for problem in check(node):
                yield problem, getattr(problem.node, "loc", None)


# ---- scopes -------------------------------------------------------------------------------------


@dataclass
class _Env:
    """What is in scope, by identity, and whether a loop encloses this place."""

    known: set[int] = field(default_factory=set[int])
    in_loop: bool = False

    def inner(self, more: Iterable[Node] = (), in_loop: bool | None = None) -> _Env:
        known = self.known | {id(n) for n in more}
        return _Env(known, self.in_loop if in_loop is None else in_loop)


Found = Iterator[tuple[Problem, Loc | None]]


class _Scopes:
    """Walks a tree with what is in scope at each place, and applies NODE_RULES."""

    def visit(self, node: Node, env: _Env, loc: Loc | None) -> Found:
        loc = _loc(node) or loc
        for text in _rules(node):
            yield Problem(text, node), loc
        walk_here = next((_Scopes.WALKS[k] for k in type(node).__mro__ if k in _Scopes.WALKS), None)
        yield from (walk_here or _Scopes._others)(self, node, env, loc)

    def _jump(self, node: Break | Continue, env: _Env, loc: Loc | None) -> Found:
        if not env.in_loop:
            yield Problem(f"`{to_text(node)}` stands outside of a loop", node), loc

    def _others(self, node: Node, env: _Env, loc: Loc | None) -> Found:
        bind = BINDERS.get(type(node))
        bound = list(bind(node)) if bind is not None else []
        yield from self._twice(node, bound, env, loc)
        inside = env.inner(bound, True if isinstance(node, For | While) else None)
        for child in children(node):
            yield from self.visit(child, inside, loc)

    def _seq(self, node: Seq, env: _Env, loc: Loc | None) -> Found:
        inside = env.inner()
        for stmt in node.body:
            binds = DECLARES.get(type(stmt))
            declared = None if binds is None else binds(stmt)
            if declared is None:
                yield from self.visit(stmt, inside, loc)
                continue
            new, uses = declared
            for use in uses:
                yield from self.visit(use, inside, _loc(stmt) or loc)
            yield from self._twice(stmt, [new], inside, loc)
            for text in _rules(stmt):
                yield Problem(text, stmt), _loc(stmt) or loc
            inside.known.add(id(new))

    def _twice(self, node: Node, bound: list[Node], env: _Env, loc: Loc | None) -> Found:
        if not isinstance(node, For | ParallelFor | Let):
            return
        for new in bound:
            if id(new) in env.known:
                name = getattr(new, "name", "?")
                yield Problem(f"{name} is defined a second time inside its scope", node), loc

    def _use(self, node: Var | Buffer, env: _Env, loc: Loc | None) -> Found:
        if id(node) not in env.known:
            kind = "variable" if isinstance(node, Var) else f"{node.scope.value} buffer"
            yield Problem(f"the {kind} {node.name} is used where it is not defined", node), loc

    WALKS: ClassVar[dict[type[Node], Callable[..., Found]]] = {
        Var: _use, Buffer: _use, Seq: _seq, Break: _jump, Continue: _jump,
    }  # fmt: skip


def _loc(node: Node) -> Loc | None:
    return None if isinstance(node, Buffer) else getattr(node, "loc", None)


def _rules(node: Node) -> Iterator[str]:
    for kind in type(node).__mro__:
        rule = NODE_RULES.get(kind)
        if rule is not None:
            yield from rule(node)


DECLARES: dict[type[Node], Callable[[Any], tuple[Node, tuple[Node, ...]] | None]] = {
    Let: lambda s: (s.var, (s.value,)),
    Alloc: lambda s: (s.buffer, () if s.buffer.alias_of is None else (s.buffer.alias_of,)),
}
"""What a statement defines for those after it, and what it uses; None when it defines nothing."""


def _function(f: Function) -> Iterable[Node]:
    yield RESIDENT
    yield from f.sizes
    yield from f.workspaces
    for param in f.params:
        yield param.var if isinstance(param, ScalarParam) else param.buffer


def _kernel(k: Kernel) -> Iterable[Node]:
    launched = () if k.launched is None else (k.launched,)
    return (*k.block_vars, *k.thread_vars, *launched)


BINDERS: dict[type[Node], Callable[[Any], Iterable[Node]]] = {
    For: lambda s: (s.var,),
    ParallelFor: lambda s: s.vars,
    Kernel: _kernel,
    Function: _function,
    TensorParam: lambda p: (),
}
"""What a node defines for everything under it."""


# ---- rules of single nodes ----------------------------------------------------------------------


def _indices(node: Load | Store) -> Iterator[str]:
    if len(node.indices) != node.buffer.rank:
        yield f"{node.buffer.name} has {node.buffer.rank} axes and gets {len(node.indices)} indices"
    yield from (f"the index `{to_text(i)}` is no integer" for i in node.indices if not _is_int(i))
    if node.buffer.scope is Scope.BARRIER:
        yield f"{node.buffer.name} holds barriers and is read or written as data"


def _is_int(e: Expr) -> bool:
    return e.dtype.is_int or e.dtype.is_bool


def _binary(node: Binary) -> Iterator[str]:
    a, b = node.a.dtype, node.b.dtype
    if a != b and node.op not in ("<<", ">>"):
        yield f"`{node.op}` between {a} and {b}"
    logical = node.op in COMPARISONS or node.op in LOGICAL
    if logical != node.dtype.is_bool and not (node.op in "&|^" and a.is_bool):
        yield f"`{node.op}` has the type {node.dtype}"
    if node.op in LOGICAL and not a.is_bool:
        yield f"`{node.op}` of {a} values"


def _select(node: Select) -> Iterator[str]:
    if not node.cond.dtype.is_bool:
        yield f"a condition has the type {node.cond.dtype}"
    if not node.a.dtype == node.b.dtype == node.dtype:
        yield f"a choice between {node.a.dtype} and {node.b.dtype} has the type {node.dtype}"


def _unary(node: Unary) -> Iterator[str]:
    if (node.op == "not") != node.dtype.is_bool or node.a.dtype != node.dtype:
        yield f"`{node.op}` of {node.a.dtype} has the type {node.dtype}"


def _call(node: Call) -> Iterator[str]:
    types = {a.dtype.name for a in node.args}
    if len(types) > 1:
        yield f"{node.fn} gets operands of different types ({', '.join(sorted(types))})"


def _condition(node: If | While) -> Iterator[str]:
    if not node.cond.dtype.is_bool:
        yield f"a condition has the type {node.cond.dtype}"


def _loop(node: For) -> Iterator[str]:
    parts = {"start": node.start, "extent": node.extent, "step": node.step, "variable": node.var}
    for name, e in parts.items():
        if not e.dtype.is_int:
            yield f"the {name} of a loop has the type {e.dtype}"


def _let(node: Let) -> Iterator[str]:
    if node.var.dtype != node.value.dtype:
        yield f"{node.var.name} is {node.var.dtype} and its value {node.value.dtype}"


def _region(node: Region) -> Iterator[str]:
    name, rank = node.buffer.name, node.buffer.rank
    if not len(node.starts) == len(node.extents) == rank:
        yield f"a region of {name} has {len(node.starts)} starts for {rank} axes"


NODE_RULES: dict[type[Node], Callable[[Any], Iterator[str]]] = {
    Load: _indices, Store: _indices, Binary: _binary, Select: _select, Unary: _unary, Call: _call,
    If: _condition, While: _condition, For: _loop, Let: _let, Region: _region,
}  # fmt: skip
"""What must hold for one node: sentences about what does not."""


# ---- what facts promise -------------------------------------------------------------------------


def _lowered(node: Node) -> Iterator[Problem]:
    """After lowering: no tiles are left, and registers are numbered."""
    for n in walk(node):
        if isinstance(n, ParallelFor):
            yield Problem("a parallel loop over a tile is left after lowering", n)
        elif isinstance(n, Buffer):
            yield from _lowered_buffer(n)


def _lowered_buffer(b: Buffer) -> Iterator[Problem]:
    if b.scope is Scope.FRAGMENT:
        yield Problem(f"the fragment {b.name} is left after lowering", b)
    elif b.scope is Scope.LOCAL and b.rank != 1:
        yield Problem(f"the registers {b.name} have {b.rank} axes instead of one", b)


CHECKERS: dict[str, Callable[[Node], Iterator[Problem]]] = {"lowered": _lowered}
"""Fact -> what it promises. A pass that makes a fact adds its checker here."""
