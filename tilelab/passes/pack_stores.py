"""Elements in bytes as expressions, and loops whose points share the bytes they write.

Hides how a T.Parallel loop is split so that one thread has all elements of a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilelab.dtypes import INT32, UINT8, DType
from tilelab.errors import TileNotSupported
from tilelab.ir import (
    Buffer,
    Call,
    Expr,
    If,
    Let,
    Load,
    Node,
    ParallelFor,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    cast,
    const_int,
    walk,
)
from tilelab.ir.packing import is_packed
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import divisibility, linear, rebuild

Visit = Callable[[Node], Node]


class Elements:
    """Packed elements as expressions over the buffers of bytes."""

    def __init__(self, bytes_of: Mapping[int, Buffer]) -> None:
        self._bytes_of = bytes_of

    def byte(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        """Where the byte of an element lies."""
        last = as_expr(indices[-1])
        return self._bytes_of[id(buffer)], (*indices[:-1], last // buffer.dtype.per_byte)

    def shift(self, dtype: DType, last: Expr) -> Expr:
        """The lowest bit of an element in its byte."""
        return cast(as_expr(last) % dtype.per_byte, INT32) * dtype.bits

    def read(self, buffer: Buffer, indices: Sequence[Expr]) -> Expr:
        """The element at logical indices."""
        shift = self.shift(buffer.dtype, indices[-1])
        bits = cast(Load(*self.byte(buffer, indices)), INT32)
        code = bits if const_int(shift) == 0 else bits >> shift
        return Call(f"from_code_{buffer.dtype.name}", (code,), buffer.dtype)

    def code(self, value: Expr, dtype: DType) -> Expr:
        """The bits of a value of a packed type, as int32."""
        return Call(f"to_code_{dtype.name}", (value,), INT32)

    def put(self, store: Store, value: Expr) -> Store:
        """A store into one element of a byte that no other thread writes."""
        dtype, indices = store.buffer.dtype, store.indices
        buffer, place = self.byte(store.buffer, indices)
        shift = self.shift(dtype, indices[-1])
        mask = as_expr((1 << dtype.bits) - 1) << shift
        kept = cast(Load(buffer, place), INT32) & ~mask
        made = cast(kept | (self.code(value, dtype) << shift), UINT8)
        return replace(store, buffer=buffer, indices=place, value=made)

    def put_all(self, store: Store, values: Sequence[Expr]) -> Store:
        """A store of all elements of a byte; `store` names its first one."""
        dtype = store.buffer.dtype
        buffer, place = self.byte(store.buffer, store.indices)
        made = self.code(values[0], dtype)
        for number, value in enumerate(values[1:], 1):
            made = made | (self.code(value, dtype) << (number * dtype.bits))
        return replace(store, buffer=buffer, indices=place, value=cast(made, UINT8))


def split_by_bytes(
    loop: ParallelFor, stores: Sequence[Store], elements: Elements, visit: Visit
) -> ParallelFor:
    """A loop that writes packed elements, with one point for all elements of a byte.

    TileNotSupported (TL1542) where neighbours along its last axis do not share bytes.
    """
    count = max(s.buffer.dtype.per_byte for s in stores)
    var, extent = loop.vars[-1], const_int(loop.extents[-1])
    if extent is None or extent % count or loop.attrs:
        raise _no_bytes(loop, stores[0])
    for store in stores:
        if not _along_bytes(store, var):
            raise _no_bytes(loop, store)
    outer = Var(var.name, var.dtype, lo=0, hi=extent // count - 1)
    points = [{var: as_expr(outer * count + e)} for e in range(count)]
    body = _Points(points, elements, visit).statements(loop.body)
    vars, extents = (*loop.vars[:-1], outer), (*loop.extents[:-1], extent // count)
    return replace(loop, vars=vars, extents=extents, body=replace(loop.body, body=tuple(body)))


def _along_bytes(store: Store, var: Var) -> bool:
    """Whether a store runs along its last axis with step 1 from the beginning of a byte."""
    *others, last = (as_expr(i) for i in store.indices)
    if any(n is var for i in others for n in walk(i)):
        return False
    terms, constant = linear(last)
    term = terms.pop(var.key, None)
    rest = rebuild((terms, constant), last.dtype)
    inside = any(n is var for n in walk(rest))
    return term is not None and term[1] == 1 and not inside and (
        divisibility(rest) % store.buffer.dtype.per_byte == 0
    )  # fmt: skip


def _no_bytes(loop: ParallelFor, store: Store) -> TileNotSupported:
    buffer = store.buffer
    return TileNotSupported(
        f"threads of this loop write parts of the bytes of {buffer.name}, in which "
        f"{buffer.dtype.per_byte} elements of {buffer.dtype} share one",
        code="TL1542", loc=store.loc or loop.loc,
        hint="let the loop's last variable run along the last axis with step 1, from a multiple of "
        f"{buffer.dtype.per_byte} and over a multiple of {buffer.dtype.per_byte}",
    )  # fmt: skip


class _Points:
    """A loop body for several points that one thread runs, statement by statement."""

    def __init__(self, points: list[dict[Var, Expr]], elements: Elements, visit: Visit) -> None:
        self._points, self._elements, self._visit = points, elements, visit

    def _value(self, e: Expr, point: Mapping[Var, Expr]) -> Expr:
        return self._visit(substitute(e, dict(point)))  # type: ignore[return-value]

    def statements(self, body: Seq) -> list[Stmt]:
        """The statements for all points."""
        out: list[Stmt] = []
        for s in body.body:
            out += self._statement(s)
        return out

    def _statement(self, s: Stmt) -> list[Stmt]:
        if isinstance(s, Seq):
            return self.statements(s)
        if isinstance(s, Let):
            return self._let(s)
        if type(s) is Store:
            return self._store(s)
        return [self._alone(s, point) for point in self._points]

    def _let(self, s: Let) -> list[Stmt]:
        out: list[Stmt] = []
        for number, point in enumerate(self._points):
            own = Var(f"{s.var.name}_{number}", s.var.dtype, s.var.lo, s.var.hi)
            out.append(replace(s, var=own, value=self._value(s.value, point)))
            point[s.var] = own
        return out

    def _store(self, s: Store) -> list[Stmt]:
        dtype = s.buffer.dtype
        if not is_packed(s.buffer) or dtype.per_byte != len(self._points):
            return [self._alone(s, point) for point in self._points]
        values = [cast(self._value(s.value, p), dtype) for p in self._points]
        place = tuple(self._value(i, self._points[0]) for i in s.indices)
        return [self._elements.put_all(replace(s, indices=place), values)]

    def _alone(self, s: Stmt, point: Mapping[Var, Expr]) -> Stmt:
        """A statement for one point; its thread has the other elements of the byte too."""
        rule = _ALONE.get(type(s))
        if rule is not None:
            return rule(self, s, point)
        if any(isinstance(n, Store) and is_packed(n.buffer) for n in walk(s)):
            raise TileNotSupported(
                f"a {type(s).__name__} around a write to packed elements", code="TL1542",
                loc=s.loc, hint="write them in a T.Parallel loop of their own",
            )  # fmt: skip
        return self._visit(substitute(s, dict(point)))  # type: ignore[return-value, type-var]

    def seq(self, s: Seq, point: Mapping[Var, Expr]) -> Seq:
        """Statements for one point."""
        return replace(s, body=tuple(self._alone(x, point) for x in s.body))

    def branch(self, s: If, point: Mapping[Var, Expr]) -> Stmt:
        """A branch for one point."""
        orelse = None if s.orelse is None else self.seq(s.orelse, point)
        then = self.seq(s.then, point)
        return replace(s, cond=self._value(s.cond, point), then=then, orelse=orelse)

    def put(self, s: Store, point: Mapping[Var, Expr]) -> Stmt:
        """A store of one point."""
        if not is_packed(s.buffer):
            return self._visit(substitute(s, dict(point)))  # type: ignore[return-value]
        place = tuple(self._value(i, point) for i in s.indices)
        value = cast(self._value(s.value, point), s.buffer.dtype)
        return self._elements.put(replace(s, indices=place), value)


_ALONE: dict[type[Stmt], Callable[..., Stmt]] = {
    Seq: _Points.seq, If: _Points.branch, Store: _Points.put,
}  # fmt: skip
