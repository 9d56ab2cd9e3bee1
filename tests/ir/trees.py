"""Random integer expressions, as the IR builds them and as Python computes them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tilelab.ir import Binary, Call, Cast, Const, Expr, Select, Unary, Var, call, select

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Tree:
    """`op` applied to trees; a leaf holds a number or the name of a variable."""

    op: str
    args: tuple[Any, ...]

    def value(self, env: Mapping[str, int]) -> int:
        """What Python computes; ZeroDivisionError where it would."""
        if self.op == "const":
            return self.args[0]
        if self.op == "var":
            return env[self.args[0]]
        values = [a.value(env) for a in self.args]
        if self.op == "select":
            return values[1] if values[0] else values[2]
        if self.op in ("min", "max"):
            return (min if self.op == "min" else max)(*values)
        return OPERATORS[self.op](*values)

    def build(self, env: Mapping[str, Var]) -> Any:
        """The IR's expression, folded and simplified as it is built."""
        if self.op == "const":
            return self.args[0]
        if self.op == "var":
            return env[self.args[0]]
        parts = [a.build(env) for a in self.args]
        if self.op == "select":
            return select(*parts)
        if self.op in ("min", "max"):
            return call(self.op, *parts)
        return OPERATORS[self.op](*parts)


@dataclass(frozen=True)
class Space:
    """Variables with inclusive bounds, and one value within them for each."""

    bounds: Mapping[str, tuple[int, int]]
    values: Mapping[str, int]

    def variables(self) -> dict[str, Var]:
        return {name: Var(name, lo=lo, hi=hi) for name, (lo, hi) in self.bounds.items()}


@st.composite
def spaces(draw: st.DrawFn, low: int = -40) -> Space:
    """Three variables; many with the ranges that thread and loop indices have."""
    bounds: dict[str, tuple[int, int]] = {}
    for name in "xyz":
        lo = draw(st.sampled_from([0, 0, 0, 3, low]))
        bounds[name] = (lo, lo + draw(st.sampled_from([0, 1, 3, 7, 15, 31, 127, 50])))
    values = {name: draw(st.integers(lo, hi)) for name, (lo, hi) in bounds.items()}
    return Space(bounds, values)


_leaves = st.one_of(
    st.sampled_from("xyz").map(lambda n: Tree("var", (n,))),
    st.sampled_from([-16, -3, -1, 0, 1, 2, 3, 4, 7, 8, 12, 16, 32, 64, 128]).map(
        lambda c: Tree("const", (c,))
    ),
)


def _pair(op: str, a: Tree, b: Tree) -> Tree:
    return Tree(op, (a, b))


def _grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    divisors = st.sampled_from([1, 2, 3, 4, 8, 16, 64]).map(lambda c: Tree("const", (c,)))
    shifts = st.integers(0, 6).map(lambda c: Tree("const", (c,)))
    plain = st.sampled_from(["+", "-", "*", "&", "|", "^", "min", "max", "//", "%"])
    compare = st.builds(_pair, st.sampled_from(COMPARISONS), inner, inner)
    return st.one_of(
        st.builds(_pair, plain, inner, inner),
        st.builds(_pair, st.sampled_from(["//", "%"]), inner, divisors),
        st.builds(_pair, st.sampled_from(["<<", ">>"]), inner, shifts),
        st.builds(lambda c, a, b: Tree("select", (c, a, b)), compare, inner, inner),
    )


trees = st.recursive(_leaves, _grow, max_leaves=10)


def evaluate(e: Expr, env: Mapping[int, int]) -> int:
    """The value of an integer expression; `env` maps id(variable) to its value."""
    return _EVALUATE[type(e)](e, env)


def _binary(e: Binary, env: Mapping[int, int]) -> int:
    if e.op == "and":
        return evaluate(e.a, env) and evaluate(e.b, env)
    if e.op == "or":
        return evaluate(e.a, env) or evaluate(e.b, env)
    return OPERATORS[e.op](evaluate(e.a, env), evaluate(e.b, env))


def _unary(e: Unary, env: Mapping[int, int]) -> int:
    value = evaluate(e.a, env)
    return {"-": lambda: -value, "~": lambda: ~value, "not": lambda: not value}[e.op]()


def _call(e: Call, env: Mapping[int, int]) -> int:
    return {"min": min, "max": max}[e.fn](*(evaluate(a, env) for a in e.args))


_EVALUATE: dict[type[Expr], Callable[[Any, Mapping[int, int]], int]] = {
    Const: lambda e, env: e.value,
    Var: lambda e, env: env[id(e)],
    Cast: lambda e, env: evaluate(e.a, env),
    Select: lambda e, env: evaluate(e.a if evaluate(e.cond, env) else e.b, env),
    Binary: _binary, Unary: _unary, Call: _call,
}  # fmt: skip
