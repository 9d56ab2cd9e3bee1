"""IR as text: readable, complete, and the same on every run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given

from tests.ir.trees import Space, Tree, evaluate, spaces, trees
from tilelab.dtypes import BOOL, FLOAT16, FLOAT32, INT64
from tilelab.ir import (
    Alloc,
    Binary,
    Break,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    If,
    Kernel,
    Let,
    LoopKind,
    ParallelFor,
    Region,
    ScalarBuffer,
    ScalarParam,
    Scope,
    Seq,
    Stmt,
    Store,
    TensorParam,
    Var,
    While,
    as_expr,
    select,
    unary,
)
from tilelab.ir.printer import to_lines, to_text
from tilelab.layout import blocked, from_function, swizzled


@dataclass(frozen=True, eq=False)
class Move(Stmt):
    """A tile op, as rank 4 will define them."""

    src: Region
    dst: Buffer
    policy: str = "square"


def function() -> Function:
    """A tile program with one of everything."""
    n = Var("n", lo=0, role="size")
    scale = Var("scale", FLOAT32)
    a, b = (Buffer(x, (n, 64), FLOAT16, Scope.GLOBAL) for x in "AB")
    tile = Buffer("tile", (16, 64), FLOAT16, Scope.SHARED, layout=swizzled((16, 64), 16, 128))
    x = ScalarBuffer("x", (1,), FLOAT32, Scope.LOCAL)
    bx, i, j, k, again = Var("bx", lo=0), Var("i"), Var("j"), Var("k"), Var("k")
    zero = as_expr(0)
    body = Seq((
        Alloc(tile),
        Alloc(x),
        Move(a[bx * 16 : bx * 16 + 16, 0:64], tile),
        ParallelFor((i, j), (16, 64), Seq((Store(tile, (i, j), tile[i, j] * scale),))),
        For(k, zero, as_expr(4), as_expr(1), LoopKind.PIPELINED, Seq(()), num_stages=3,
            attrs=(("order", (0, 1)),)),
        For(again, as_expr(2), as_expr(3), as_expr(5), LoopKind.SERIAL, Seq((
            Let(Var("y", FLOAT32), x * 2),
            If(again < n, Seq((Break(),)), Seq((If(x > 0, Seq((Store(x, (zero,), as_expr(1.0)),)),
               Seq((Store(x, (zero,), x - 1),))),))),
        ))),
        While(x < 3, Seq((Store(x, (zero,), x + 1),))),
        Move(tile[:, 0:32], b, "rows"),
    ))  # fmt: skip
    kernel = Kernel(((n + 15) // 16,), (128,), (bx,), (Var("tx"),), body, (("swizzle", 10),))
    params = (TensorParam(a), TensorParam(b), ScalarParam(scale))
    return Function("scale_rows", params, (kernel,), (n,), (1,))


def test_golden(golden) -> None:  # type: ignore[no-untyped-def]
    golden("ir_printer", to_text(function()))


def test_two_equal_programs_print_the_same() -> None:
    assert to_text(function()) == to_text(function())


def test_every_line_knows_its_node() -> None:
    lines = to_lines(function())
    moves = [line for line in lines if isinstance(line.node, Move)]
    assert len(moves) == 2 and all(line.text.startswith("Move(") for line in moves)
    assert all(line.depth >= 1 for line in lines[1:])


@given(trees, spaces())
def test_text_means_what_the_expression_means(tree: Tree, space: Space) -> None:
    variables = space.variables()
    try:
        e = as_expr(tree.build(variables))
        expected = evaluate(e, {id(v): space.values[n] for n, v in variables.items()})
    except (ZeroDivisionError, ValueError):
        return
    assert eval(to_text(e), {"min": min, "max": max}, dict(space.values)) == expected


A, B = Var("a"), Var("b")
P, Q = Var("p", BOOL), Var("q", BOOL)


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary("-", A, Binary("-", A, B, A.dtype), A.dtype), "a - (a - b)"),
        (Binary("*", Binary("+", A, B, A.dtype), B, A.dtype), "(a + b) * b"),
        (Binary("+", Binary("*", A, B, A.dtype), B, A.dtype), "a * b + b"),
        (Binary("==", Binary("<", A, B, BOOL), P, BOOL), "(a < b) == p"),
        (unary("not", Binary("and", P, Q, BOOL)), "not (p and q)"),
        (Binary("and", unary("not", P), Q, BOOL), "not p and q"),
        (select(P, select(Q, A, B), B), "(a if q else b) if p else b"),
        (Const(3, INT64), "int64(3)"),
        (Const(0.5, FLOAT16), "float16(0.5)"),
        (A.astype("float16"), "float16(a)"),
    ],
)
def test_parentheses(e: Expr, text: str) -> None:
    assert to_text(e) == text


def test_layouts_that_differ_print_differently() -> None:
    def text(layout: object) -> str:
        return to_text(Alloc(Buffer("t", (16, 64), FLOAT16, Scope.FRAGMENT, layout=layout)))

    one = from_function((16,), lambda i: (i * 5 % 16, 0))  # no digits: tables
    two = from_function((16,), lambda i: (i * 7 % 16, 0))
    texts = {text(x) for x in (None, swizzled((16, 64), 16), blocked((16, 64), 128), one, two)}
    assert len(texts) == 5 and not any("0x" in t for t in texts)
