"""Expressions in CUDA: few parentheses, C's meaning equal to the IR's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.codegen import programs
from tests.ir.trees import Space, Tree, evaluate, spaces, trees
from tilelab.codegen import emit
from tilelab.dtypes import BOOL, DTYPES, FLOAT16, FLOAT32, INT32, INT64, UINT32, DType
from tilelab.ir import (
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Scope,
    Seq,
    Store,
    Var,
    as_expr,
    call,
    cast,
    select,
    unary,
)


def text_of(e: Expr, scalars: tuple[Var, ...], more: tuple[Buffer, ...] = ()) -> str:
    """The text of `e` where it is stored to a buffer of its type."""
    out = Buffer("out", (1,), e.dtype, Scope.GLOBAL)
    store = Store(out, (as_expr(0),), e)
    k = programs.kernel("k", Seq((store,)), tensors=(out, *more), scalars=scalars)
    source = emit(programs.program(k, (out, *more)))
    body = " ".join(line.strip() for line in source.kernel_text("k").splitlines())
    found = re.search(r"out\[0\] = (.*);", body)
    assert found is not None, body
    return found[1]


X, Y = Var("x", lo=0, hi=127), Var("y", lo=0, hi=9)
M, J, L = Var("i"), Var("j"), Var("l", INT64)
F, G, H, K = Var("f", FLOAT32), Var("g", FLOAT32), Var("h", FLOAT16), Var("k2", FLOAT16)
P, Q, R = Var("p", BOOL), Var("q", BOOL), Var("r", BOOL)
U = Var("u", UINT32)
SCALARS = (X, Y, M, J, L, F, G, H, K, P, Q, R, U)


def raw(op: str, a: Expr, b: Expr, dtype: DType | None = None) -> Binary:
    return Binary(op, a, b, dtype or a.dtype)


CASES: list[tuple[Any, str]] = [
    # precedence and associativity
    (raw("-", M, raw("-", M, J)), "i - (i - j)"),
    (raw("-", raw("-", M, J), M), "i - j - i"),
    (raw("+", M, raw("+", M, J)), "i + i + j"),
    (raw("+", F, raw("+", F, G)), "f + (f + g)"),
    (raw("*", raw("+", M, J), J), "(i + j) * j"),
    (raw("*", M, X // 3), "i * (x / 3)"),
    (X // 3 * M, "x / 3 * i"),
    (raw("/", F, raw("*", F, G)), "f / (f * g)"),
    (raw("^", X % 8, raw("&", X, Y)), "(x % 8) ^ (x & y)"),
    (raw("+", raw("^", X, Y), M), "(x ^ y) + i"),
    (raw("^", raw("^", X, Y), M), "x ^ y ^ i"),
    (raw("and", raw("or", P, Q), R), "(p || q) && r"),
    (raw("or", raw("and", P, Q), R), "p && q || r"),
    (raw("and", M < J, unary("not", P)), "i < j && !p"),
    (raw("==", M < J, P), "i < j == p"),
    (unary("not", raw("and", P, Q)), "!(p && q)"),
    (unary("not", M < J), "i >= j"),
    (unary("not", F < G), "!(f < g)"),
    (select(P, M, select(Q, J, X)), "p ? i : q ? j : x"),
    (select(P, select(Q, M, J), X), "p ? (q ? i : j) : x"),
    (raw("+", select(P, M, J), M), "(p ? i : j) + i"),
    (unary("-", raw("+", F, G)), "-(f + g)"),
    (unary("-", unary("-", F)), "-(-f)"),
    (raw("-", F, as_expr(-1.0)), "f - -1.0f"),
    # // and % floor
    (X // 8, "x / 8"),
    (X % Y, "x % y"),
    (M // 8, "tl::floordiv(i, 8)"),
    (M % J, "tl::floormod(i, j)"),
    (L // 8, "tl::floordiv(l, 8LL)"),
    (U // 8, "u / 8u"),
    (raw("//", F, G), "tl::floordiv_float(f, g)"),
    (raw("%", H, K), "half(tl::floormod_float(float(h), float(k2)))"),
    # types
    (M + F, "float(i) + f"),
    (H * 2.0, "h * half(2.0f)"),
    (cast(H * K, FLOAT32), "float(h * k2)"),
    (cast(F, FLOAT16), "half(f)"),
    (L + M, "l + i"),
    (L * 8, "l * 8"),
    (cast(M, INT64) * J, "i64(i) * j"),
    (raw("*", cast(M, INT64), raw("*", cast(J, INT64), L)), "i64(i) * j * l"),
    (raw("<<", cast(M, INT64), L), "i64(i) << l"),
    (call("max", L, 3), "max(l, 3LL)"),
    (cast(M, BOOL), "i != 0"),
    (cast(raw("^", X, Y), BOOL), "(x ^ y) != 0"),
    (Cast(DTYPES["int8"], M), "i8(i)"),
    (Cast(DTYPES["bfloat16"], H), "__nv_bfloat16(float(h))"),
    (Cast(DTYPES["float64"], H), "double(float(h))"),
    (Cast(DTYPES["float8_e4m3fn"], M), "__nv_fp8_e4m3(float(i))"),
    # literals
    (as_expr(1.0), "1.0f"),
    (as_expr(0.1), "0.1f"),
    (as_expr(1e-5), "1e-05f"),
    (as_expr(float("inf")), "__int_as_float(0x7f800000)"),
    (as_expr(float("-inf")), "__int_as_float(0xff800000)"),
    (as_expr(float("nan")), "__int_as_float(0x7fffffff)"),
    (as_expr(1e300), "__int_as_float(0x7f800000)"),
    (Const(0.1, DTYPES["float64"]), "0.1"),
    (Const(float("inf"), DTYPES["float64"]), "__longlong_as_double(0x7ff0000000000000LL)"),
    (Const(0.1, FLOAT16), "half(0.099975586f)"),
    (Const(1e9, FLOAT16), "half(__int_as_float(0x7f800000))"),
    (cast(Const(2049.5, FLOAT16), FLOAT32), "2050.0f"),
    (Cast(DTYPES["float64"], Const(0.1, FLOAT32)), "0.10000000149011612"),
    (cast(cast(257, DTYPES["bfloat16"]), FLOAT32), "256.0f"),
    (Const(1 << 40, INT64), "1099511627776LL"),
    (Const(-(1 << 31), INT32), "int(0x80000000)"),
    (Const(-1, UINT32), "4294967295u"),
    (as_expr(True), "true"),
    # functions
    (call("max", F, 0), "fmaxf(f, 0.0f)"),
    (call("min", M, J), "min(i, j)"),
    (call("exp2", F - G), "exp2f(f - g)"),
    (Call("bitwise_and", (M + 1, J), INT32), "(i + 1) & j"),
]


@pytest.mark.parametrize(("e", "text"), CASES, ids=[t for _, t in CASES])
def test_text(e: Expr, text: str) -> None:
    assert text_of(e, SCALARS) == text


def test_narrow_integers_wrap_at_their_width() -> None:
    a = Var("a", DTYPES["int8"])
    assert text_of(Cast(INT32, raw("+", a, a)), (a,)) == "int(i8(a + a))"
    assert text_of(Cast(INT32, unary("~", a)), (a,)) == "int(i8(~a))"
    assert text_of(Cast(INT32, call("abs", a)), (a,)) == "int(i8(abs(a)))"


def test_fp8_computes_as_float() -> None:
    a = Var("a", DTYPES["float8_e4m3fn"])
    assert text_of(a * a, (a,)) == "__nv_fp8_e4m3(float(a) * float(a))"
    assert text_of(a < a, (a,)) == "float(a) < float(a)"


class C(int):
    """A C++ int: `/` and `%` truncate."""

    def __truediv__(self, other: Any) -> C:
        size = abs(int(self)) // abs(int(other))
        return C(size if (self < 0) == (other < 0) else -size)

    def __mod__(self, other: Any) -> C:
        return C(int(self) - int(self / C(other)) * int(other))


def _wrapping(name: str) -> Callable[..., C]:
    inner = getattr(int, name)
    return lambda self, *others: C(inner(int(self), *(int(o) for o in others)))


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift", "neg", "invert"):
    setattr(C, f"__{_name}__", _wrapping(f"__{_name}__"))


def run_c(text: str, values: Mapping[str, int]) -> int:
    """The value of a C++ integer expression without `?:` and comparisons."""
    python = re.sub(r"\b(\d+)\b", r"C(\1)", text).replace("tl::", "")
    helpers = {
        "C": C,
        "min": lambda a, b: C(min(a, b)),
        "max": lambda a, b: C(max(a, b)),
        "floordiv": lambda a, b: C(a / b - (a % b != 0 and (a < 0) != (b < 0))),
        "floormod": lambda a, b: C(int(a) - int(b) * (int(a) // int(b))),
    }
    return eval(python, helpers, {n: C(v) for n, v in values.items()})


@given(trees, spaces())
def test_c_computes_what_the_ir_means(tree: Tree, space: Space) -> None:
    variables = space.variables()
    try:
        e = as_expr(tree.build(variables))
        value = evaluate(e, {id(v): space.values[n] for n, v in variables.items()})
    except (ZeroDivisionError, ValueError):
        return
    if e.dtype.is_bool or not -(1 << 31) < value < 1 << 31 or "select" in repr(tree):
        return
    text = text_of(e, tuple(variables.values()))
    assert run_c(text, space.values) == value, text


class Sized:
    """A C++ integer that knows its width: 32-bit arithmetic must not leave its range."""

    def __init__(self, value: int, wide: bool = False) -> None:
        assert wide or -(1 << 31) <= value < 1 << 31, f"{value} overflows 32 bits"
        self.value, self.wide = value, wide

    def _with(self, other: Sized, value: int) -> Sized:
        return Sized(value, self.wide or other.wide)

    def __add__(self, other: Sized) -> Sized:
        return self._with(other, self.value + other.value)

    def __sub__(self, other: Sized) -> Sized:
        return self._with(other, self.value - other.value)

    def __mul__(self, other: Sized) -> Sized:
        return self._with(other, self.value * other.value)

    def __neg__(self) -> Sized:
        return Sized(-self.value, self.wide)


_wide_leaves = st.sampled_from([cast(M, INT64), cast(J, INT64), L, Const(3, INT64)])
_wide_trees = st.recursive(
    _wide_leaves, lambda inner: st.builds(raw, st.sampled_from("+-*"), inner, inner), max_leaves=8
)


@given(_wide_trees, st.integers(1 << 20, 1 << 30), st.integers(1 << 20, 1 << 30))
def test_64_bit_arithmetic_is_never_done_in_32_bits(e: Expr, i: int, j: int) -> None:
    text = text_of(e, SCALARS)
    python = re.sub(r"\b(\d+)(LL)?\b", lambda m: f"N({m[1]}, {bool(m[2])})", text)
    values = {"i": Sized(i), "j": Sized(j), "l": Sized(1 << 40, True), "N": Sized}
    found = eval(python, values | {"i64": lambda v: Sized(v.value, True)})
    expected = evaluate(e, {id(M): i, id(J): j, id(L): 1 << 40})
    assert found.value == expected, text
