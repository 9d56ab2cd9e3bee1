"""The verifier finds every kind of broken rule, and says where."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.codegen import programs
from tests.ir.test_printer import function
from tilelab.dtypes import BOOL, FLOAT16, FLOAT32, UINT64
from tilelab.errors import Loc, TileInternalError
from tilelab.ir import (
    Alloc,
    Binary,
    Break,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
)
from tilelab.ir.verify import verify
from tilelab.thread import Invoke, Ref, Role, VectorCopy, WarpRoles
from tilelab.thread import intrinsics as I
from tilelab.thread.nodes import SharedSlot

LOC = Loc("user.py", 12)
A = Buffer("A", (8, 8), FLOAT32, Scope.GLOBAL)
BARS = Buffer("bars", (2,), UINT64, Scope.BARRIER)
REGS = Buffer("regs", (4,), FLOAT32, Scope.LOCAL)
HALVES = Buffer("halves", (4,), FLOAT16, Scope.LOCAL)
X, Y = Var("x"), Var("y")
ZERO, ONE = as_expr(0), as_expr(1)
F = as_expr(1.0)


def kernel(*body: Stmt) -> Node:
    """A thread kernel in which A, bars, regs, halves and x are known."""
    return programs.kernel(
        "k", Seq(body), tensors=(A,), scalars=(X,), locals=(REGS, HALVES),
        shared=(SharedSlot(BARS, 0, 16, False),),
    )  # fmt: skip


def store(*indices: Expr, value: Expr = F) -> Store:
    return Store(A, indices or (ZERO, ZERO), value, loc=LOC)


def copy_of(count: int, dst: Buffer = REGS, src: Buffer = REGS) -> VectorCopy:
    return VectorCopy(Ref(dst, (ZERO,)), Ref(src, (ZERO,)), count)


def wait(place: Node) -> Invoke:
    return Invoke(programs.constant(I.MBARRIER_WAIT), (place, ZERO))  # type: ignore[arg-type]


def serial(var: Var, *body: Stmt) -> For:
    return For(var, ZERO, as_expr(4), ONE, LoopKind.SERIAL, Seq(body))


def role(first: int, count: int) -> Role:
    return Role(f"r{first}", first, count, Seq(()))


BROKEN: dict[str, tuple[str, Callable[[], Stmt]]] = {
    "undefined variable": ("variable y is used", lambda: store(Y, ZERO)),
    "variable after its scope": (
        "variable y is used", lambda: Seq((serial(Y), store(Y, ZERO)))),
    "let after its block": (
        "variable y is used", lambda: Seq((If(X < 1, Seq((Let(Y, X),))), store(Y, ZERO)))),
    "let before its value": ("variable y is used", lambda: Let(Y, Y + 1)),
    "bound twice": ("y is defined a second time", lambda: serial(Y, serial(Y))),
    "unknown buffer": (
        "global buffer B is used",
        lambda: Store(Buffer("B", (4,), FLOAT32, Scope.GLOBAL), (X,), F)),
    "number of indices": ("2 axes and gets 1", lambda: store(X)),
    "number of indices of a load": (
        "2 axes and gets 1", lambda: store(value=Load(A, (X,)))),
    "float index": ("is no integer", lambda: store(X, F)),
    "mixed types": (
        "`+` between int32 and float32", lambda: store(value=Binary("+", X, F, X.dtype))),
    "comparison of type int": ("has the type int32", lambda: Let(Y, Binary("<", X, ONE, X.dtype))),
    "choice of types": ("a choice between", lambda: store(value=Select(X < 1, F, ONE, F.dtype))),
    "condition": ("a condition has the type int32", lambda: If(X, Seq(()))),
    "let of another type": ("y is int32 and its value float32", lambda: Let(Y, F)),
    "float loop": ("extent of a loop", lambda: For(Y, ZERO, F, ONE, LoopKind.SERIAL, Seq(()))),
    "break outside": ("outside of a loop", lambda: Break()),
    "barrier as data": ("holds barriers", lambda: Store(BARS, (ZERO,), Const(0, UINT64))),
    "barrier operand": ("regs, which is no barrier", lambda: wait(Ref(REGS, (ZERO,)))),
    "value for a place": ("bar of mbarrier_wait is a Const", lambda: wait(ZERO)),
    "operand count": (
        "takes 2 operands, not 1", lambda: Invoke(programs.constant(I.MBARRIER_WAIT), (ZERO,))),
    "vector types": ("from float16 to float32", lambda: copy_of(4, REGS, HALVES)),
    "vector size": ("vector copy of 12 bytes", lambda: copy_of(3)),
    "roles overlap": ("shares threads", lambda: WarpRoles((role(0, 64), role(32, 64)))),
    "part of a warp": ("whole warps", lambda: WarpRoles((role(0, 48),))),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rule_is_found(name: str) -> None:
    text, build = BROKEN[name]
    with pytest.raises(TileInternalError, match=re.escape(text)) as caught:
        verify(kernel(build()))
    assert caught.value.code == "TL1900"


LEFT: dict[str, tuple[str, Callable[[], Stmt]]] = {
    "parallel loop": ("a parallel loop", lambda: ParallelFor((Y,), (4,), Seq(()))),
    "fragment": (
        "the fragment acc",
        lambda: Alloc(Buffer("acc", (4,), FLOAT32, Scope.FRAGMENT))),
    "registers of two axes": (
        "registers acc have 2 axes",
        lambda: Alloc(Buffer("acc", (4, 4), FLOAT32, Scope.LOCAL))),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_facts_add_rules(name: str) -> None:
    text, build = LEFT[name]
    tree = kernel(build())
    verify(tree)
    with pytest.raises(TileInternalError, match=text):
        verify(tree, frozenset({"lowered"}))


def test_the_message_names_node_and_place() -> None:
    with pytest.raises(TileInternalError) as caught:
        verify(kernel(store(Y, ZERO)))
    message = str(caught.value)
    assert "variable y is used where it is not defined" in message
    assert "user.py, line 12" in message and "report" in message


@pytest.mark.parametrize("name", programs.ALL)
def test_sound_thread_programs_pass(name: str) -> None:
    verify(programs.ALL[name](), frozenset({"lowered", "some fact without a checker"}))


def test_sound_tile_programs_pass() -> None:
    verify(function())


def test_sound_scopes() -> None:
    inner = If(X < 4, Seq((Break(),)))
    first, second = serial(Y, store(Y, ZERO), inner), serial(Y, store(Y, ZERO))
    verify(kernel(first, second, Let(Y, X), store(Y, X)))
    verify(kernel(If(Binary("&", X < 1, X < 2, BOOL), Seq((store(),)))))
