"""reduce_sum, reduce_max, ... (src, out, dim): combine a tile along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tilelab.errors import TileNotSupported, TileTypeError, TileValueError
from tilelab.ir import Expr, Region, Scope, Stmt, Var, as_expr, const_int
from tilelab.ir.builder import current
from tilelab.layout import Fragment
from tilelab.tile.combine import COMBINES
from tilelab.tile.context import LowerContext
from tilelab.tile.op import Access, Env, Fact, LayoutContext, Loop, TileOp, lowering, reads, updates
from tilelab.tile.operands import as_region, axis_of, here, in_registers, shape_text
from tilelab.tile.ops.reduce_lower import reduce_tile
from tilelab.tile.ops.reduce_private import reduce_private

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
NAN_KINDS = ("max", "min", "absmax")


def reduce(
    buffer: Any, out: Any, reduce_type: str, dim: int = -1, clear: bool = True, batch: int = 1,
    nan_propagate: bool = False, annotations: Any = None,
) -> Reduce:  # fmt: skip
    """Combine `buffer` along axis `dim` into `out` (that axis removed, or kept with extent 1).

    `buffer`, `out`: fragments or shared buffers, whole or a region; or both arrays of each thread.
    `reduce_type`: "sum", "max", "min", "abssum", "absmax", "bitand", "bitor" or "bitxor".
    `clear=False` combines with what `out` holds instead of replacing it. Every thread that holds
    an element of `out` gets the result. Values are combined in the type of `out`. A maximum or
    minimum passes over NaN unless `nan_propagate`. Raises TileValueError (TL1521) for an unknown
    kind, axis or shape, TileNotSupported (TL1522) for other memory, TileTypeError (TL1525) for
    bits of floats.
    """
    del batch, annotations  # hints of the peer change no result
    _check_kind(reduce_type, nan_propagate)
    source = as_region(buffer, "buffer")
    target = as_region(out, "out", (1,) if len(source.tile_shape) == 1 else None)
    axis = axis_of(dim, source, source.buffer.name, "TL1521")
    kind = reduce_type + ("_nan" if nan_propagate else "")
    op = Reduce(source, target, kind, axis, bool(clear), loc=here())
    op.check()
    current().emit(op, anywhere=True)
    return op


def _check_kind(kind: str, nan_propagate: bool) -> None:
    allowed = NAN_KINDS if nan_propagate else KINDS
    if kind not in allowed:
        raise TileValueError(
            f"no reduction is called {kind!r}"
            + (" with nan_propagate" if nan_propagate and kind in KINDS else ""),
            code="TL1521",
            loc=here(),
            hint="use one of " + ", ".join(allowed),
        )


def reduce_sum(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    annotations: Any = None,
) -> Reduce:  # fmt: skip
    """`out = sum(buffer, dim)`; `clear=False` adds to `out`. See `reduce`."""
    return reduce(buffer, out, "sum", dim, clear, batch, annotations=annotations)


def reduce_max(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    nan_propagate: bool = False, annotations: Any = None,
) -> Reduce:  # fmt: skip
    """`out = max(buffer, dim)`; `clear=False` keeps a larger value of `out`. See `reduce`."""
    return reduce(buffer, out, "max", dim, clear, batch, nan_propagate, annotations)


def reduce_min(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    nan_propagate: bool = False, annotations: Any = None,
) -> Reduce:  # fmt: skip
    """`out = min(buffer, dim)`; `clear=False` keeps a smaller value of `out`. See `reduce`."""
    return reduce(buffer, out, "min", dim, clear, batch, nan_propagate, annotations)


def reduce_abssum(
    buffer: Any, out: Any, dim: int = -1, batch: int = 1, annotations: Any = None
) -> Reduce:
    """`out = sum(|buffer|, dim)`. See `reduce`."""
    return reduce(buffer, out, "abssum", dim, True, batch, annotations=annotations)


def reduce_absmax(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    nan_propagate: bool = False, annotations: Any = None,
) -> Reduce:  # fmt: skip
    """`out = max(|buffer|, dim)`; `clear=False` keeps a larger value of `out`. See `reduce`."""
    return reduce(buffer, out, "absmax", dim, clear, batch, nan_propagate, annotations)


def reduce_bitand(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    annotations: Any = None,
) -> Reduce:  # fmt: skip
    """Bitwise and along `dim`. See `reduce`."""
    return reduce(buffer, out, "bitand", dim, clear, batch, annotations=annotations)


def reduce_bitor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    annotations: Any = None,
) -> Reduce:  # fmt: skip
    """Bitwise or along `dim`. See `reduce`."""
    return reduce(buffer, out, "bitor", dim, clear, batch, annotations=annotations)


def reduce_bitxor(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1,
    annotations: Any = None,
) -> Reduce:  # fmt: skip
    """Bitwise exclusive or along `dim`. See `reduce`."""
    return reduce(buffer, out, "bitxor", dim, clear, batch, annotations=annotations)


REDUCTIONS = (
    reduce,
    reduce_sum,
    reduce_max,
    reduce_min,
    reduce_abssum,
    reduce_absmax,
    reduce_bitand,
    reduce_bitor,
    reduce_bitxor,
)


@dataclass(frozen=True, eq=False)
class Reduce(TileOp):
    """`dst = combine(src along axis) * factor`; the factor is a pass's, for maxima alone. Without
    `joins` each thread keeps the part of its own elements (see `join_parts`)."""

    op_name: ClassVar[str] = "reduce"

    src: Region = reads()
    dst: Region = updates()
    kind: str = "sum"
    axis: int = 0
    clear: bool = True
    factor: float = 1.0
    joins: bool = True
    spread: Fragment | None = None

    def overwrites(self) -> bool:
        return self.clear

    def check(self) -> None:
        for region, name in ((self.src, "buffer"), (self.dst, "out")):
            if region.buffer.scope not in (Scope.FRAGMENT, Scope.SHARED) and not self.is_private:
                raise TileNotSupported(
                    f"{name} = {region.buffer.name} of a reduction lives in "
                    f"{region.buffer.scope.value} memory",
                    code="TL1522",
                    loc=self.loc,
                    hint="use fragments or shared buffers, or arrays of each thread on both sides",
                )
            if self.kind.startswith("bit") and region.dtype.is_float:
                raise TileTypeError(
                    f"reduce_{self.kind} of {region.buffer.name}, which holds {region.dtype}",
                    code="TL1525",
                    loc=self.loc,
                    hint="bits are combined of integers; T.view gives a buffer's bits as such",
                )
        self._check_shapes()

    def _check_shapes(self) -> None:
        shape = [const_int(e) for e in self.src.tile_shape]
        out = [const_int(e) for e in self.dst.tile_shape]
        kept = [*shape[: self.axis], 1, *shape[self.axis + 1 :]]
        dropped = [*shape[: self.axis], *shape[self.axis + 1 :]]
        if out not in (kept, dropped, dropped or [1]):
            raise TileValueError(
                f"reducing axis {self.axis} of {self.src.buffer.name} "
                f"({shape_text(self.src.tile_shape)}) does not give {self.dst.buffer.name} "
                f"({shape_text(self.dst.tile_shape)})",
                code="TL1521",
                loc=self.loc,
                hint="give out the other axes' extents, with or without a 1 for the reduced one",
            )

    @property
    def is_private(self) -> bool:
        """Whether each thread reduces an array of its own."""
        return {self.src.buffer.scope, self.dst.buffer.scope} == {Scope.LOCAL}

    @property
    def ran_by(self) -> str:
        return "each" if self.is_private else self.team

    @property
    def keeps_axis(self) -> bool:
        """Whether `dst` has an axis of extent 1 in place of the reduced one."""
        return len(self.dst.tile_shape) == len(self.src.tile_shape)

    def label(self) -> str:
        return f"{self.kind} {self.src.buffer.name} -> {self.dst.buffer.name}"

    def with_spread(self, spread: Fragment) -> Reduce:
        return replace(self, spread=spread)

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        if self.is_private:
            return
        extents = tuple(int(const_int(e) or 0) for e in self.src.tile_shape)
        vars = tuple(Var(f"c{i}", lo=0, hi=e - 1) for i, e in enumerate(extents))
        zero = as_expr(0)
        rest: tuple[Expr, ...] = (*vars[: self.axis], *vars[self.axis + 1 :])
        if self.keeps_axis:
            rest = (*vars[: self.axis], zero, *vars[self.axis + 1 :])
        accesses: list[Access] = []
        if in_registers(self.src):
            accesses.append(Access(self.src.buffer, vars, False))
        if in_registers(self.dst):
            accesses.append(Access(self.dst.buffer, rest or (zero,), True))
        vector = max(16 // self.src.dtype.bytes, 1) if not in_registers(self.src) else 1
        yield Loop(self, vars, extents, tuple(accesses), self.label(), vector)

    def reference(self, env: Env) -> None:
        combine = COMBINES[self.kind]
        value = env.get(self.src).astype(self.dst.dtype.numpy)
        value = np.abs(value) if self.kind.startswith("abs") else value
        join = getattr(np, combine.numpy)
        result = join.reduce(value, axis=self.axis, keepdims=self.keeps_axis)
        if self.factor != 1:
            result = np.multiply(result, self.factor, dtype=self.dst.dtype.numpy)
        env.put(self.dst, result if self.clear else join(env.get(self.dst), result))


@lowering(Reduce, when=lambda op, ctx: op.is_private)
def _own_array(op: Reduce, ctx: LowerContext) -> Iterable[Stmt]:
    """Each thread goes through its own array."""
    return reduce_private(ctx, op, COMBINES[op.kind])


@lowering(Reduce)
def _registers_then_lanes(op: Reduce, ctx: LowerContext) -> Iterable[Stmt]:
    """Each thread combines its registers, then lanes exchange, then warps through shared memory."""
    return reduce_tile(ctx, op, COMBINES[op.kind])
