"""Constructors of expressions: conversion, promotion, folding, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilelab.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, INT32, INT64, UINT32, as_dtype
from tilelab.errors import TileRuntimeError, TileTypeError, TileValueError
from tilelab.ir import (
    Binary,
    Buffer,
    Cast,
    Const,
    Region,
    ScalarBuffer,
    Scope,
    Select,
    Var,
    as_bool,
    as_expr,
    binary,
    call,
    cast,
    ceildiv,
    const_int,
    select,
    unary,
)
from tilelab.ir.printer import to_text

M, J = Var("i", lo=0, hi=9), Var("j")
H, B, F = Var("h", FLOAT16), Var("b", BFLOAT16), Var("f", FLOAT32)


@pytest.mark.parametrize(
    ("value", "dtype"), [(1, INT32), (1 << 40, INT64), (True, BOOL), (1.5, FLOAT32)]
)
def test_python_numbers_have_c_types(value: object, dtype: object) -> None:
    assert as_expr(value).dtype == dtype


@pytest.mark.parametrize(
    ("e", "dtype"),
    [
        (M + 1, INT32),
        (H + 1, FLOAT16),
        (H + 1.5, FLOAT16),
        (H * F, FLOAT32),
        (H * B, FLOAT32),
        (M * H, FLOAT16),
        (M + 1.5, FLOAT32),
        (M < J, BOOL),
        (M + Var("u", UINT32), INT32),
        (M + Var("l", INT64), INT64),
        (H < 1, BOOL),
    ],
)
def test_promotion(e: Binary, dtype: object) -> None:
    assert e.dtype == dtype


def test_operands_are_converted_to_the_common_type() -> None:
    assert to_text(H * F) == "float32(h) * f"
    assert to_text(M + 1.5) == "float32(i) + 1.5"


def test_integer_division_by_slash_is_refused() -> None:
    with pytest.raises(TileRuntimeError, match="ambiguous") as caught:
        _ = M / J
    assert caught.value.code == "TL1104"
    assert "//" in caught.value.hint


def test_strings_are_no_scalars() -> None:
    with pytest.raises(TileTypeError, match="'x'") as caught:
        as_expr("x")
    assert caught.value.code == "TL1103"


def test_no_python_truth_value() -> None:
    with pytest.raises(TileTypeError, match="known only when"):
        bool(M < J)
    with pytest.raises(TileTypeError, match="no Python integer"):
        range(M)  # type: ignore[arg-type]


def test_comparison_builds_an_expression() -> None:
    e = M == 3
    assert isinstance(e, Binary) and e.op == "=="
    assert not isinstance(M == "x", Binary)


def test_hash_is_identity() -> None:
    a, b = Var("a"), Var("a")
    assert len({a, b}) == 2 and hash(a) != hash(b)


def test_casts() -> None:
    assert cast(3, FLOAT32).value == 3.0  # type: ignore[attr-defined]
    assert cast(M, INT32) is M
    assert isinstance(cast(M, FLOAT16), Cast)
    assert cast(Const(2.9, FLOAT32), INT32).value == 2  # type: ignore[attr-defined]
    # The chip rounds to small floats, so a literal that is not exact stays a conversion.
    assert isinstance(cast(Const(0.1, FLOAT32), FLOAT16), Cast)


def test_logic_folds() -> None:
    t, f, p = as_expr(True), as_expr(False), M < J
    assert binary("and", t, p) is p and binary("or", f, p) is p
    assert binary("and", p, f).value is False  # type: ignore[attr-defined]
    assert unary("not", unary("not", p)) is p
    assert to_text(~p) == "not i < j"
    assert to_text(as_bool(J)) == "j != 0"


def test_select_takes_the_common_type() -> None:
    e = select(M < J, H, F)
    assert isinstance(e, Select) and e.dtype == FLOAT32
    assert select(True, M, J) is M


def test_min_max_fold_by_bounds() -> None:
    assert call("min", M, 9) is M
    assert const_int(call("max", M, 20)) == 20
    assert to_text(call("max", M, J)) == "max(i, j)"


def test_call_converts_literals() -> None:
    assert to_text(call("max", H, 0)) == "max(h, float16(0.0))"


@pytest.mark.parametrize(("a", "b"), [(0, 4), (1, 4), (4, 4), (5, 4), (1024, 128)])
def test_ceildiv_of_ints_is_an_int(a: int, b: int) -> None:
    assert ceildiv(a, b) == -(-a // b) and isinstance(ceildiv(a, b), int)


def test_ceildiv_of_a_size() -> None:
    assert to_text(ceildiv(Var("n", lo=0), 128)) == "(n + 127) // 128"


def test_scalar_buffers_are_numbers() -> None:
    x = ScalarBuffer("x", (1,), FLOAT32, Scope.LOCAL)
    assert to_text(x * 2 + 1) == "x * 2.0 + 1.0"
    assert to_text(2 - x) == "2.0 - x"


def test_indexing_counts_axes_and_wraps_constants() -> None:
    a = Buffer("A", (8, 16), FLOAT16, Scope.GLOBAL)
    assert to_text(a[M, -1]) == "A[i, 15]"
    assert to_text(a[M, 2:6]) == "A[i, 2:6]"
    with pytest.raises(IndexError, match="2 axes, 1 index was given"):
        a[M]
    with pytest.raises(IndexError, match="exceeds axis 1"):
        Buffer("s", (8, 16), FLOAT16, Scope.SHARED)[0, 8:20]
    past_the_end = a[0, 8:20]  # of a tensor: a copy clips it, others ask
    assert isinstance(past_the_end, Region)
    with pytest.raises(IndexError, match="exceeds axis 1"):
        past_the_end.check_inside()


def test_numpy_types_are_spellings_too() -> None:
    given = (np.float16, np.dtype("float16"), ml_dtypes.bfloat16, np.bool_, np.uint32)
    assert [as_dtype(d) for d in given] == [FLOAT16, FLOAT16, BFLOAT16, BOOL, UINT32]


@pytest.mark.parametrize(
    ("like", "number", "dtype"),
    [
        ("int8", 127, "int8"), ("int8", 300, "int32"), ("uint8", 255, "uint8"),
        ("uint8", -1, "int32"), ("uint32", 0xFFFFFFFF, "uint32"), ("uint32", -1, "int64"),
        ("int32", 0xFFFFFFFF, "int64"), ("int64", 1 << 63, "uint64"), ("bool", 1 << 31, "int64"),
        ("uint64", -1, "int32"), ("float16", 1 << 70, "float16"),
    ],
)  # fmt: skip
def test_an_integer_literal_takes_a_type_that_holds_it(like: str, number: int, dtype: str) -> None:
    made = as_expr(number, as_dtype(like))
    assert (made.dtype, made.value) == (as_dtype(dtype), number)


def test_literals_beyond_their_neighbour_are_no_smaller_numbers() -> None:
    b, u = Var("b", as_dtype("uint8")), Var("u", UINT32)
    assert (b < 256).a.dtype == INT32
    assert (u > -1).a.dtype == INT64
    assert (b + 300).dtype == INT32
    assert call("max", Var("n"), 2.5).dtype == FLOAT32
    assert call("max", 1, 2.5).value == 2.5
    with pytest.raises(TileValueError, match="2361183241434822606848 needs more than 64 bits"):
        binary("+", u, 1 << 71)


def test_constants_are_computed_as_their_type_would() -> None:
    def f32(value: float) -> Const:
        return Const(value, FLOAT32)

    assert (f32(16777216.0) + f32(1.0)).value == 16777216.0
    assert (f32(1e30) * f32(1e30)).value == float("inf")
    assert cast(f32(0.1), DTYPES["float64"]).value == 0.10000000149011612
    assert cast(cast(16777217, FLOAT32), INT32).value == 16777216
    assert cast(Const(2048.0, FLOAT16), FLOAT32).value == 2048.0
    assert isinstance(cast(Const(2049.5, FLOAT16), FLOAT32), Cast)
    assert isinstance(cast(Const(257.0, BFLOAT16), INT32), Cast)
    assert isinstance(Const(0.1, FLOAT16) < Const(0.10001, FLOAT16), Binary)
    for pair in ((1.0, float("nan")), (float("nan"), 1.0)):
        assert call("max", *map(f32, pair)).value == call("min", *map(f32, pair)).value == 1.0


def test_bits_of_constants() -> None:
    u, i = Var("u", UINT32), Var("i")
    assert (u & 0xFFFFFFFF) is u
    assert (i & -1) is i
    assert to_text(i & 0x7FFFFFFF) == "i & 2147483647"
    assert (~Const(5, UINT32)).value == 0xFFFFFFFA
    assert (-Const(-128, as_dtype("int8"))).value == -128
    assert (Const(1, INT32) << Const(31, INT32)).value == -(1 << 31)
    assert isinstance(Const(1, INT32) << Const(1 << 30, INT32), Binary)
    with pytest.raises(TileValueError, match=r"a shift by -3 bits"):
        binary(">>", i, -3)
    assert (i // 65536 // 65536).dtype == INT32
