"""Short vectors of one thread: T.float32x4(...), T.Ramp, T.Broadcast and the packed T.add2, ...

Hides that a vector is a slice of a small array of the thread, and that functions work lane by lane
(the chip's compiler pairs them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.calls import answers
from tilelab.dtypes import BFLOAT16, DTYPES, FLOAT16, FLOAT32, DType
from tilelab.errors import TileTypeError
from tilelab.frontend import open_kernel, plain_dtype, session
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    Load,
    Region,
    Scope,
    Store,
    as_expr,
    binary,
    call,
    cast,
    const_int,
    is_scalar,
)
from tilelab.language.views import view

LANES = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class VectorType:
    """`lanes` elements of one type: `T.float32x4(a, b, c, d)` is a vector of these values, and
    `T.reinterpret(bits, T.float32x4)` one of these bits."""

    element: DType
    lanes: int

    @property
    def name(self) -> str:
        return f"{self.element}x{self.lanes}"

    @property
    def bits(self) -> int:
        """Bits of all lanes."""
        return self.element.bits * self.lanes

    def __str__(self) -> str:
        return self.name

    @answers("a vector type of T")
    def __call__(self, *values: Any) -> Region:
        """The vector of `lanes` numbers, or of another vector's lanes, converted.
        TileTypeError (TL1783) for another number of them."""
        parts = list(values)
        if len(parts) == 1 and isinstance(parts[0], Region):
            parts = lanes_of(parts[0], f"T.{self}")
        if len(parts) != self.lanes or not all(map(is_scalar, parts)):
            raise _misfit(f"T.{self} of {len(parts)} values", f"give {self.lanes} numbers")
        return held([cast(as_expr(p, self.element), self.element) for p in parts], self.element)


def held(values: Sequence[Expr], dtype: DType) -> Region:
    """A vector of these values, computed now."""
    open_kernel("a vector")
    trace, loc, count = session(), session().loc(), len(values)
    buffer = Buffer(trace.hinted("lanes"), (count,), dtype, Scope.LOCAL, loc=loc)
    trace.emit(Alloc(buffer, loc=loc), anywhere=True)
    for lane, value in enumerate(values):
        trace.emit(Store(buffer, (as_expr(lane),), value, loc=loc), anywhere=True)
    return Region(buffer, (as_expr(0),), (count,), (0,))


def lanes_of(vector: Any, what: str) -> list[Expr]:
    """The elements of a vector: of a slice A[i : i + n] along one axis."""
    shape = [const_int(n) for n in vector.tile_shape] if isinstance(vector, Region) else []
    if len(shape) != 1 or shape[0] is None:
        raise _misfit(f"{what} of {vector!r}, which is no vector", "give a slice A[i : i + 2]")
    return [Load(vector.buffer, vector.index((lane,))) for lane in range(shape[0])]


def reinterpret_lanes(value: Region, to: Any) -> Region:
    """The bits of a vector as one of another type (of an element's, as many as fit)."""
    parts = lanes_of(value, "T.reinterpret")
    element = to.element if isinstance(to, VectorType) else plain_dtype(to)
    bits = len(parts) * value.dtype.bits
    if bits % element.bits or (isinstance(to, VectorType) and to.bits != bits):
        text = f"T.reinterpret of {len(parts)} {value.dtype} ({bits} bits) as {to}"
        raise _misfit(text, "use a type of as many bits")
    words = held(parts, value.dtype)
    count = bits // element.bits
    return Region(view(words.buffer, (count,), element), (as_expr(0),), (count,), (0,))


def Ramp(base: Any, stride: Any, lanes: int) -> slice:
    """The indices base, base + 1, ...: `A[T.Ramp(i, 1, 4)]` is A[i : i + 4]. TileTypeError
    (TL1783) for another stride."""
    if const_int(stride) != 1:
        raise _misfit(f"T.Ramp with the stride {stride!r}", "loop over elements that lie apart")
    return slice(as_expr(base), as_expr(base) + lanes)


def Broadcast(value: Any, lanes: int) -> Region:
    """A vector of `lanes` times the same number."""
    number = as_expr(value)
    return held([number] * lanes, DTYPES[number.dtype.name])


def _misfit(text: str, hint: str) -> TileTypeError:
    return TileTypeError(text, code="TL1783", loc=session().loc(), hint=hint)


def _packed(name: str, op: str, *vectors: Any) -> Region:
    """An operator or function lane by lane; TileTypeError (TL1783) for other operands."""
    what = f"T.{name}"
    parts = [lanes_of(v, what) for v in vectors]
    dtype = vectors[0].dtype
    alike = all(v.dtype == dtype and len(p) == 2 for v, p in zip(vectors, parts, strict=True))
    if not alike or dtype not in (FLOAT32, FLOAT16, BFLOAT16):
        given = ", ".join(f"{len(p)} {v.dtype}" for p, v in zip(parts, vectors, strict=True))
        raise _misfit(
            f"{what} of {given}: operands have the same dtype and two lanes",
            "give slices A[i : i + 2] of float32, float16 or bfloat16",
        )
    work: Callable[..., Expr] = binary if op in _OPERATORS else call
    return held([work(op, *each) for each in zip(*parts, strict=True)], dtype)


_OPERATORS = ("+", "-", "*")


def abs2(x: Any) -> Region:
    """The absolute values of two lanes: of a slice A[i : i + 2], or a vector."""
    return _packed("abs2", "abs", x)


def add2(x: Any, y: Any) -> Region:
    """x + y in two lanes."""
    return _packed("add2", "+", x, y)


def sub2(x: Any, y: Any) -> Region:
    """x - y in two lanes."""
    return _packed("sub2", "-", x, y)


def mul2(x: Any, y: Any) -> Region:
    """x * y in two lanes."""
    return _packed("mul2", "*", x, y)


def max2(x: Any, y: Any) -> Region:
    """The larger ones in two lanes."""
    return _packed("max2", "max", x, y)


def min2(x: Any, y: Any) -> Region:
    """The smaller ones in two lanes."""
    return _packed("min2", "min", x, y)


def fma2(x: Any, y: Any, z: Any) -> Region:
    """x * y + z in two lanes, each rounded once."""
    return _packed("fma2", "ieee_fmaf_rn", x, y, z)


NAMES: dict[str, Any] = {
    f.__name__: f for f in (Broadcast, Ramp, abs2, add2, fma2, max2, min2, mul2, sub2)
}
"""What this module adds to the language, with the vector types."""
NAMES.update(
    (f"{d}x{n}", VectorType(d, n))
    for d in DTYPES.values() if d.bits >= 8 and not d.is_bool for n in LANES
)  # fmt: skip
