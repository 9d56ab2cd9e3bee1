"""Accesses of one thread as 32-bit words: T.ldg*, stg*, lds*, sts*, T.__ldg, and T.dp4a.

Hides that several words are a small local buffer: what T.ldg128 gives is a slice of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.dtypes import UINT32
from tilelab.errors import TileTypeError
from tilelab.frontend import is_traced, open_kernel, session, truth
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    If,
    Load,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    as_bool,
    as_expr,
    cast,
)
from tilelab.language.instruct import element_place, perform
from tilelab.thread.intrinsics.wide import dot4, wide_load, wide_store
from tilelab.thread.nodes import Invoke, Ref

_WHERE = {"g": Scope.GLOBAL, "s": Scope.SHARED}


def _place(value: Any, what: str, size: int, scope: Scope | None = None) -> Ref:
    """The place that an element or a slice begins at, for `size` bytes."""
    if isinstance(value, Region):
        value = Load(value.buffer, value.starts)
    place = element_place(value, what)
    buffer = place.buffer
    if (scope is not None and buffer.scope is not scope) or size % buffer.dtype.bytes:
        raise TileTypeError(
            f"{what} of {buffer.name}, a {buffer.scope.value} buffer of {buffer.dtype}",
            code="TL1783", loc=session().loc(),
            hint=f"name an element of {scope.value if scope else 'a'} memory whose size divides "
            f"{size} bytes",
        )  # fmt: skip
    return Ref(buffer, place.indices, size // buffer.dtype.bytes)


def _guarded(stmt: Stmt, pred: Any) -> None:
    """Emit a statement, under a condition where there is one."""
    trace = session()
    if pred is None or (not is_traced(pred) and truth(pred)):
        trace.emit(stmt, anywhere=True)
    elif is_traced(pred):
        trace.emit(If(as_bool(pred), Seq((stmt,), loc=stmt.loc), loc=stmt.loc), anywhere=True)


def _load(name: str, size: int, scope: Scope) -> Callable[..., Any]:
    words = size // 4

    def load(src: Any, pred: Any = None) -> Any:
        what = f"T.{name}"
        open_kernel(what)
        trace, loc = session(), session().loc()
        place = _place(src, what, size, scope)
        held = Buffer(trace.hinted("words"), (words,), UINT32, Scope.LOCAL, loc=loc)
        trace.emit(Alloc(held, loc=loc), anywhere=True)
        if pred is not None:
            for word in range(words):
                trace.emit(
                    Store(held, (as_expr(word),), as_expr(0, UINT32), loc=loc), anywhere=True
                )
        into = Ref(held, (as_expr(0),), words)
        _guarded(Invoke(wide_load(size, place.buffer.dtype), (into, place), loc=loc), pred)
        zero = (as_expr(0),)
        return Load(held, zero) if words == 1 else Region(held, zero, (words,), (0,))

    load.__name__ = load.__qualname__ = name
    load.__doc__ = (
        f"The {size} bytes that begin at an element of {scope.value} memory as "
        + ("a uint32" if words == 1 else f"{words} uint32 (a slice; T.extract_lane takes one)")
        + "; zeros where `pred` does not hold. The address must be aligned to them."
    )
    return load


def _store(name: str, size: int, scope: Scope) -> Callable[..., Any]:
    words = size // 4

    def store(dst: Any, value: Any, pred: Any = None) -> None:
        what = f"T.{name}"
        open_kernel(what)
        loc = session().loc()
        place = _place(dst, what, size, scope)
        source = _words(value, words, what)
        _guarded(Invoke(wide_store(size, place.buffer.dtype), (place, source), loc=loc), pred)

    store.__name__ = store.__qualname__ = name
    store.__doc__ = (
        f"Write {size} bytes, {words} uint32, to {scope.value} memory from an element on, where "
        "`pred` holds."
    )
    return store


def _words(value: Any, count: int, what: str) -> Ref:
    """The registers that hold what is to be stored."""
    if isinstance(value, Region) and value.buffer.scope is Scope.LOCAL:
        return Ref(value.buffer, value.starts, count)
    if count > 1:
        raise TileTypeError(
            f"{what} needs {count} words in registers, and {value!r} is none", code="TL1783",
            loc=session().loc(), hint="give what T.ldg or T.lds of that width gives",
        )  # fmt: skip
    trace, loc = session(), session().loc()
    held = Buffer(trace.fresh("word"), (1,), UINT32, Scope.LOCAL, loc=loc)
    zero = (as_expr(0),)
    trace.emit(Alloc(held, loc=loc), anywhere=True)
    trace.emit(Store(held, zero, cast(as_expr(value), UINT32), loc=loc), anywhere=True)
    return Ref(held, zero, 1)


def extract_lane(vector: Any, lane: Any) -> Expr:
    """One element of what T.ldg128 and its kin give, or of another slice."""
    if not isinstance(vector, Region):
        raise TileTypeError(
            f"T.extract_lane of {vector!r}, which is no slice", code="TL1783",
            loc=session().loc(), hint="give what T.ldg64, ldg128 or a slice A[i:j] gives",
        )  # fmt: skip
    *outer, last = vector.starts
    return Load(vector.buffer, (*outer, last + lane))


def read_only_load(load_or_buf: Any, index: Any = None) -> Expr:
    """An element of a tensor that no thread writes meanwhile: `T.__ldg(A[i])` or `(A, i)`."""
    value = load_or_buf if index is None else load_or_buf[index]
    place = element_place(value, "T.__ldg")
    if place.buffer.scope is not Scope.GLOBAL:
        raise TileTypeError(
            f"T.__ldg of {place.buffer.name}, a {place.buffer.scope.value} buffer", code="TL1783",
            loc=session().loc(), hint="name an element of a tensor; others are read as they are",
        )  # fmt: skip
    return Load(place.buffer, place.indices)


def dp4a(A: Any, B: Any, C: Any) -> Stmt:
    """C += the dot product of four neighbouring 8-bit integers of A and of B, which begin at the
    given elements (4-byte aligned); C is an element of int32 (uint32 for unsigned operands)."""
    a, b = (_place(v, "T.dp4a", 4) for v in (A, B))
    c = element_place(Load(C.buffer, C.starts) if isinstance(C, Region) else C, "T.dp4a")
    types = (a.buffer.dtype.name, b.buffer.dtype.name, c.buffer.dtype.name)
    if types not in (("int8", "int8", "int32"), ("uint8", "uint8", "uint32")):
        raise TileTypeError(
            f"T.dp4a of {types[0]} and {types[1]} into {types[2]}", code="TL1783",
            loc=session().loc(), hint="use int8, int8 and int32, or uint8, uint8 and uint32",
        )  # fmt: skip
    return perform(dot4(types[0] == "int8"), Ref(c.buffer, c.indices), a, b, what="T.dp4a")


NAMES: dict[str, Any] = {"dp4a": dp4a, "extract_lane": extract_lane, "__ldg": read_only_load}
for _bits, _letters in ((32, "gs"), (64, "gs"), (128, "gs"), (256, "g")):
    for _letter in _letters:
        _memory = _WHERE[_letter]
        NAMES[f"ld{_letter}{_bits}"] = _load(f"ld{_letter}{_bits}", _bits // 8, _memory)
        NAMES[f"st{_letter}{_bits}"] = _store(f"st{_letter}{_bits}", _bits // 8, _memory)
"""What this module adds to the language."""
