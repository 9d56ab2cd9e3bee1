"""The tracer's part for assignments: lets, stores to variables and elements, two-phase swaps.

Hides the difference between a Python value (kept), a let (bound once), and T.alloc_var (stored).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any, TypeGuard

from tilelab.errors import TileIndexError, TileRuntimeError, TileTypeError, warn
from tilelab.frontend.kernel import KernelFrame
from tilelab.frontend.loops import python_values
from tilelab.frontend.poison import Poison, raise_poison
from tilelab.frontend.session import Session
from tilelab.frontend.values import apply, is_traced
from tilelab.ir import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    Let,
    Load,
    Region,
    ScalarBuffer,
    Select,
    Store,
    Unary,
    Var,
    as_expr,
    binary,
    cast,
    const_int,
    is_scalar,
    walk,
)
from tilelab.ir.operators import Operators

_MANY = 256  # stores that a slice assignment may be before a tile was probably meant
_PURE = frozenset({Var, Const, Binary, Unary, Cast, Select})


class ElementRef(Operators):
    """One element passed by reference (T.Ref): reads load it, assignments store to it."""

    def __init__(self, place: Load) -> None:
        self.place = place

    def __expr__(self) -> Expr:
        return self.place


class Assign:
    """Methods that rewritten assignments call."""

    session: Session

    def __init__(self) -> None:
        self.variables: dict[str, ScalarBuffer | ElementRef] = {}

    def named(self, name: str | tuple[str, ...]) -> Callable[[Any], Any]:
        """Announce the name that the next value will get; the function ends the announcement."""
        self.session.hint = name
        return self._done

    def _done(self, value: Any) -> Any:
        self.session.hint = None
        return value

    def at(self, name: str) -> Callable[[Any], Any]:
        """As `named`, and bind the value too (a walrus)."""
        self.session.hint = name
        return partial(self.bind, name)

    def bind(self, name: str, value: Any) -> Any:
        """`name = value`: what the name holds from now on."""
        self.session.hint = None
        if isinstance(value, Poison):
            raise_poison(value)
        held = self.variables.get(name)
        if held is not None and value is not held and is_scalar(value) and not self._is_new(value):
            self._store_to(held, value)
            return held
        if held is not None and value is held:
            return held
        self.variables.pop(name, None)
        return self._first(name, value)

    def _is_new(self, value: object) -> TypeGuard[ScalarBuffer]:
        """An alloc_var that no name holds yet (it is being defined, not read)."""
        return isinstance(value, ScalarBuffer) and not self.session.owns(value)

    def _first(self, name: str, value: Any) -> Any:
        if isinstance(value, KernelFrame) and not value.opened:
            return self._open_frame(name, value)
        if self._is_new(value):
            self.session.own(value)
            self.variables[name] = value
            return value
        return self.snapshot(name, value)

    def _open_frame(self, names: str | tuple[str, ...], frame: KernelFrame) -> Any:
        """`bx = T.Kernel(4)`: the body reaches to the end of the function."""
        self.session.hint = names
        frame.open()
        self.open_frames.append(frame)
        return frame.block_vars[0] if len(frame.block_vars) == 1 else list(frame.block_vars)

    open_frames: list[KernelFrame]

    def hold(self, name: str, place: ScalarBuffer | ElementRef) -> None:
        """`name` is a variable by reference."""
        self.variables[name] = place

    def snapshot(self, name: str, value: Any) -> Any:
        """`value` as it is now: expressions that could change later are bound to a Let."""
        if not isinstance(value, Expr) and not hasattr(value, "__expr__"):
            return value
        expr = as_expr(value)
        if self.session.kernel is None or _is_timeless(expr):
            return expr
        lo, hi = expr.bounds
        fresh = self.session.fresh(name if name.strip("_") else "value")
        var = Var(fresh, expr.dtype, lo, hi)
        self.session.emit(Let(var, expr, loc=self.session.loc()), anywhere=True)
        return var

    def unpack(self, names: tuple[str, ...], value: Any) -> list[Any]:
        """The values of a tuple assignment, taken before any target changes."""
        if isinstance(value, KernelFrame) and not value.opened:
            self._open_frame(names, value)
        items = python_values(value)
        if items is None:
            raise TileTypeError(
                f"{type(value).__name__} is one value, and has no parts for {len(names)} names",
                code="TL1460", hint="assign it to one name",
            )  # fmt: skip
        items = list(items)
        if len(items) != len(names):
            raise TileTypeError(
                f"{len(items)} values cannot be assigned to {len(names)} names",
                code="TL1460",
                hint="match the number of names on the left",
            )
        return [
            v if self._is_new(v) else self.snapshot(n or "value", v)
            for n, v in zip(names, items, strict=True)
        ]

    # ---- stores -----------------------------------------------------------------------------

    def _store_to(self, place: ScalarBuffer | ElementRef, value: Any) -> None:
        if isinstance(place, ElementRef):
            self._store_element(place.place.buffer, place.place.indices, value)
        else:
            self._store_element(place, (as_expr(0),), value)

    def _store_element(self, buffer: Buffer, indices: tuple[Expr, ...], value: Any) -> None:
        if not is_scalar(value):
            raise TileTypeError(
                f"an element of {buffer.name} cannot hold a {type(value).__name__}",
                code="TL1461",
                hint="store a number; copy tiles with T.copy",
            )
        stored = cast(as_expr(value, buffer.dtype), buffer.dtype)
        self.session.emit(Store(buffer, indices, stored, loc=self.session.loc()))

    def store(self, target: Any, index: Any, value: Any) -> None:
        """`target[index] = value`."""
        self.session.hint = None
        if not isinstance(target, Buffer):
            target[index] = value
            return
        place = target[index]
        if isinstance(place, Region):
            self._store_region(place, value)
        else:
            self._store_element(target, place.indices, value)

    def _store_region(self, place: Region, value: Any) -> None:
        """`s[0:4] = A[4:8]`: element by element, all read before any is written."""
        name = place.buffer.name
        if not isinstance(value, Region):
            raise TileTypeError(
                f"a slice of {name} cannot be set to one value", code="TL1462",
                hint=f"use T.fill({name}[...], value)",
            )  # fmt: skip
        shape, other = _static_shape(place), _static_shape(value)
        if shape != other:
            raise TileIndexError(
                f"a slice of shape {other} does not fit {name}'s slice of shape {shape}",
                code="TL1463",
                hint="both sides of a slice assignment have one shape",
            )
        points = list(product(*(range(extent) for extent in shape)))
        if len(points) > _MANY:
            warn(
                f"{name}[...] = {value.buffer.name}[...] is {len(points):,} assignments, which "
                f"every thread makes by itself: T.copy({value.buffer.name}[...], {name}[...]) "
                "spreads a tile over the threads"
            )
        loads = [Load(value.buffer, value.index(p)) for p in points]
        if value.buffer is place.buffer:
            values: Iterable[Any] = [self.snapshot("lane", load) for load in loads]
        else:
            values = loads
        for point, load in zip(points, values, strict=True):
            self._store_element(place.buffer, place.index(point), load)

    def aug(self, name: str, op: str, old: Any, value: Any) -> Any:
        """`name op= value`."""
        if isinstance(old, Buffer) and not isinstance(old, ScalarBuffer):
            raise TileRuntimeError(
                f"{old.name} {op}= ... changes a whole buffer",
                code="TL1464",
                hint="loop over its elements with T.Parallel",
            )
        held = self.variables.get(name)
        if held is not None and held is old:
            self._store_to(held, _combine(op, old, value))
            return held
        return self.bind(name, _combine(op, old, value))

    def aug_store(self, op: str, target: Any, index: Any, value: Any) -> None:
        """`target[index] op= value`."""
        if not isinstance(target, Buffer):
            target[index] = apply(op, target[index], value)
            return
        self.store(target, index, _combine(op, target[index], value))


def _combine(op: str, old: Any, value: Any) -> Any:
    if not is_traced(old) and not is_traced(value) and not isinstance(old, Const):
        return apply(op, old, value)
    if op in ("**", "@"):
        hint = "use T.gemm" if op == "@" else "write x * x for a square, or T.pow(x, y)"
        raise TileTypeError(f"`{op}=` is not supported", code="TL1465", hint=hint)
    result = binary(op, old, value)
    if op == "//" and result.dtype.is_float:
        raise TileTypeError("`//=` is for integers", code="TL1465", hint="use T.floor(a / b)")
    return result


def _is_timeless(expr: Expr) -> bool:
    """Whether an expression means the same wherever it stands, and costs next to nothing."""
    if isinstance(expr, Var | Const):
        return True
    if expr.dtype.is_float:
        return False
    return all(type(part) in _PURE for part in walk(expr))


def _static_shape(region: Region) -> tuple[int, ...]:
    sizes = tuple(const_int(extent) for extent in region.tile_shape)
    if any(size is None for size in sizes):
        raise TileIndexError(
            f"a slice of {region.buffer.name} has an extent that is known only at run time",
            code="TL1463",
            hint="use constant slice bounds, or T.copy",
        )
    return tuple(size for size in sizes if size is not None)
