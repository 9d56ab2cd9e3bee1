"""Guards of elementwise loops: what holds for all points of a tile, or for all of a chunk at once.

`if r + i < N:`, `T.if_then_else(r + i < N, A[r + i], 0)` and indices that may leave a tensor ask
every element whether it exists. Their comparisons are linear in the loop's variables, so the worst
corner of the tile answers for all of it. Hides corners and remainders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tilelab.ir import (
    Binary,
    Expr,
    If,
    Let,
    Load,
    Node,
    ParallelFor,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    children,
    const_int,
    unary,
    walk,
)
from tilelab.ir.build import conjuncts
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import divisibility, linear
from tilelab.passes.split_loops import where_true
from tilelab.passes.versions import with_own_variables
from tilelab.tile.elementwise import both

_SWAPPED = {"<": ("<", False), "<=": ("<=", False), ">": ("<", True), ">=": ("<=", True)}
"""Comparisons as (operator, whether the sides change places) with the smaller side first."""


@dataclass(frozen=True)
class Whole:
    """A loop as it runs on whole tiles: `loop` without the guards that hold where `condition` does
    (None: everywhere). `rows`: accesses (ids) whose points lie in their row then, `inside`: those
    whose points all exist."""

    loop: ParallelFor
    condition: Expr | None
    rows: frozenset[int]
    inside: frozenset[int]


def eager_loads(node: Node) -> Iterator[Load]:
    """Loads under `node` that happen whenever it is evaluated: none of a side not chosen."""
    return (load for load, when in chosen_loads(node) if when is None)


def chosen_loads(node: Node, when: Expr | None = None) -> Iterator[tuple[Load, Expr | None]]:
    """Loads under `node` and when they happen: those of a selection's side where it is chosen
    (None: whenever `node` is evaluated)."""
    if isinstance(node, Load):
        yield node, when
    if isinstance(node, Select):
        yield from chosen_loads(node.cond, when)
        yield from chosen_loads(node.a, both(when, node.cond))
        yield from chosen_loads(node.b, both(when, unary("not", node.cond)))
        return
    lazy = isinstance(node, Binary) and node.op in ("and", "or")
    for number, child in enumerate(children(node)):
        if not lazy or number == 0:
            yield from chosen_loads(child, when)


def let_values(body: Seq) -> dict[Var, Expr]:
    """Names bound in a loop's body, by the expressions over its variables that they stand for."""
    values: dict[Var, Expr] = {}
    for s in body.body:
        if isinstance(s, Let):
            values[s.var] = substitute(s.value, values)
    return values


def whole_tile(loop: ParallelFor, *, in_bounds: bool) -> Whole | None:
    """The loop for whole tiles; None where some point is known not to exist. `in_bounds`: the
    program promises that all indices are."""
    (fresh,) = with_own_variables((loop,))
    assert isinstance(fresh, ParallelFor)
    corner = _Corner(fresh)
    known: set[int] = set()
    found = _Conditions()
    for c in _guards(fresh.body):
        holds = corner.holds(c)
        if holds is not None and const_int(holds) != 0:
            known.add(id(c))
            found.add(holds)
    body = where_true(fresh.body, known)
    done = replace(fresh, body=replace(body, body=tuple(flat_statements(body))))
    rows, inside = set[int](), set[int]()
    for access in _accesses(done.body):
        axes = [in_bounds or corner.exists(access, n) for n in range(access.buffer.rank)]
        if any(const_int(a) == 0 for a in axes if isinstance(a, Expr)):
            return None
        for a in axes:
            if isinstance(a, Expr):
                found.add(a)
        if axes and axes[-1] is not None:
            rows.add(id(access))
        if None not in axes:
            inside.add(id(access))
    return Whole(done, found.all, frozenset(rows), frozenset(inside))


class _Conditions:
    """Conditions joined by `and`, each once."""

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.all: Expr | None = None

    def add(self, condition: Expr) -> None:
        if const_int(condition) is None and condition.key not in self.seen:
            self.seen.add(condition.key)
            self.all = both(self.all, condition)


class _Corner:
    """Comparisons at the corner of a loop's box where they hold least."""

    def __init__(self, loop: ParallelFor) -> None:
        self.own: dict[Var, Expr] = {}
        for v, e in zip(loop.vars, loop.extents, strict=True):
            self.own[v] = Var(v.name, v.dtype, 0, max((const_int(e) or 1) - 1, 0))
        self.ids = {id(v) for v in self.own.values()}
        self.values = {v: substitute(x, self.own) for v, x in let_values(loop.body).items()}

    def holds(self, c: Expr) -> Expr | None:
        """When a comparison holds for every point; None when that is not known."""
        sides = _sides(c)
        if sides is None:
            return None
        op, small, large = sides
        most, least = self._end(small, True), self._end(large, False)
        return None if most is None or least is None else binary(op, most, least)

    def exists(self, access: Load | Store, axis: int) -> Expr | None:
        """When all indices of an access on one axis lie in the tensor; None when not known."""
        index, size = as_expr(access.indices[axis]), as_expr(access.buffer.shape[axis])
        if not _signed(index, size):
            return None
        most, least = self._end(index, True), self._end(index, False)
        if most is None or least is None:
            return None
        return binary("and", binary("<", most, size), binary(">=", least, 0))

    def _end(self, e: Expr, greatest: bool) -> Expr | None:
        """The greatest or least value of a linear expression over the box."""
        e = substitute(substitute(e, self.values), self.own)
        terms, constant = linear(e)
        total: Expr = as_expr(constant, e.dtype)
        for term, coefficient in terms.values():
            if any(isinstance(n, Load) for n in walk(term)):
                return None
            if any(id(n) in self.ids for n in walk(term)):
                low, high = term.bounds
                end = high if (coefficient > 0) == greatest else low
                if end is None:
                    return None
                term = as_expr(end, e.dtype)
            total = total + term * coefficient
        return total


def _sides(c: Expr) -> tuple[str, Expr, Expr] | None:
    """A comparison of signed integers as `<` or `<=`, its smaller and its larger side."""
    if not isinstance(c, Binary) or c.op not in _SWAPPED or not _signed(c.a, c.b):
        return None
    op, swapped = _SWAPPED[c.op]
    return (op, c.b, c.a) if swapped else (op, c.a, c.b)


def _signed(*values: Expr) -> bool:
    """Whether sums of these values do not wrap at zero."""
    return all(v.dtype.is_int and v.dtype.kind == "int" and v.dtype.bits >= 32 for v in values)


def _guards(body: Node) -> Iterator[Expr]:
    """The comparisons that branches and selections of a body ask."""
    for n in walk(body):
        if isinstance(n, Select | If):
            yield from conjuncts(n.cond)


def flat_statements(body: Seq) -> Iterator[Stmt]:
    """The statements of a body, those of a Seq in it one by one."""
    for s in body.body:
        if isinstance(s, Seq):
            yield from flat_statements(s)
        else:
            yield s


def _accesses(node: Node) -> Iterator[Load | Store]:
    """Accesses of tensors under `node` that happen whenever a point runs."""
    for n in walk(node):
        if isinstance(n, Store) and n.buffer.scope is Scope.GLOBAL:
            yield n
    yield from (n for n in eager_loads(node) if n.buffer.scope is Scope.GLOBAL)


def same_in_chunks(condition: Expr, var: Var, size: int, multiples: Collection[int] = ()) -> bool:
    """Whether a condition is the same for all points of every chunk of `size` neighbours along
    `var`, chunks starting at multiples of their size. Size variables in `multiples` (ids) are
    known to be multiples of `size`."""
    known = _as_multiples(condition, size, multiples)
    return all(_same(c, var, size) for c in conjuncts(substitute(condition, known)))


def _as_multiples(e: Expr, size: int, multiples: Collection[int]) -> Mapping[Var, Expr]:
    sizes = (n for n in walk(e) if isinstance(n, Var) and id(n) in multiples)
    return {v: Var(f"{v.name}_chunks", v.dtype, 0) * size for v in sizes}


def _same(c: Expr, var: Var, size: int) -> bool:
    if not any(n is var for n in walk(c)):
        return True
    sides = _sides(c)
    if sides is None:
        return False
    op, small, large = sides
    terms, constant = linear(large - small - (1 if op == "<" else 0))  # at least 0 where it holds
    own = terms.pop(var.key, None)
    if (
        own is None
        or own[1] not in (1, -1)
        or any(n is var for t, _ in terms.values() for n in walk(t))
    ):
        return False
    constant += own[1] < 0  # what falls along a chunk must be one less than a multiple
    return constant % size == 0 and all(divisibility(t * k) % size == 0 for t, k in terms.values())


def lasting(condition: Expr) -> dict[object, Expr]:
    """The parts of a condition that stay true once they are, by key: those that read nothing."""
    parts = conjuncts(condition)
    return {p.key: p for p in parts if not any(isinstance(n, Load) for n in walk(p))}


def beside(condition: Expr | None, held: Collection[Expr]) -> bool:
    """Whether one of `held` compares what a part of the condition compares, with a limit that is a
    constant away: `i <= N` beside `i < N`."""
    if condition is None:
        return False
    wanted = [_slack(part) for part in conjuncts(condition)]
    given = [_slack(part) for part in held]
    return any(w is not None and w in given for w in wanted)


def _slack(c: Expr) -> dict[object, int] | None:
    """How far a comparison's sides lie apart, without the constant: coefficients by term."""
    sides = _sides(c)
    if sides is None:
        return None
    _, small, large = sides
    return {key: coefficient for key, (_, coefficient) in linear(large - small)[0].items()}


def unheld(condition: Expr | None, held: Collection[object]) -> Expr | None:
    """A condition without the parts that hold already (by key); None when nothing is left."""
    if condition is None or not held:
        return condition
    left: Expr | None = None
    for part in conjuncts(condition):
        left = left if part.key in held else both(left, part)
    return left
