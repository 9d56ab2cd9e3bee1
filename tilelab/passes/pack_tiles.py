"""Tile ops on packed buffers: moved as bytes where whole bytes move, else element by element.

Hides which op takes which way; `pack_elements` walks the program and finds the buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilelab.dtypes import DType, computing
from tilelab.errors import TileNotSupported
from tilelab.ir import Node, Region, Scope, Seq, Stmt, Store, cast, map_children
from tilelab.ir.packing import is_packed
from tilelab.tile.elementwise import over_elements
from tilelab.tile.op import TileOp, operand_fields
from tilelab.tile.ops.async_ops import Transfer
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm

if TYPE_CHECKING:
    from tilelab.passes.pack_elements import Packer


def pack_tile(packer: Packer, op: TileOp) -> Node:
    """The op on bytes, or around it what gives it whole elements."""
    if not any(is_stored(getattr(op, n)) for n in operand_fields(op)):
        return map_children(op, packer.visit)
    rule = next((r for k, r in _TILES.items() if isinstance(op, k)), _through_tiles)
    return rule(packer, op)


def is_stored(region: Region) -> bool:
    """Whether a tile's elements are of a type that is only stored, in memory or registers."""
    return region.dtype.per_byte > 1


def _copy(packer: Packer, op: Copy) -> Node:
    """Bytes where both sides are packed alike, else element by element."""
    in_memory = is_packed(op.src.buffer) and is_packed(op.dst.buffer)
    if in_memory and op.src.dtype == op.dst.dtype:
        return _as_bytes(packer, op)
    if not (is_packed(op.src.buffer) or is_packed(op.dst.buffer)):
        return map_children(op, packer.visit)
    loop = over_elements(op, lambda value, at: Store(op.dst.buffer, at, value, loc=op.loc))
    return packer.visit(loop if loop.vars else loop.body.body[0])


def _as_bytes(packer: Packer, op: Any) -> Node:
    found = {n: packer.bytes_region(getattr(op, n)) for n in ("src", "dst")}
    for name, region in found.items():
        if region is None:
            raise packer.inside_a_byte(getattr(op, name).buffer, op)
    return map_children(replace(op, **found), packer.visit)


def _transfer(packer: Packer, op: Any) -> Node:
    """A copy that the program waits for: of bytes alone."""
    if is_packed(op.src.buffer) and is_packed(op.dst.buffer) and op.src.dtype == op.dst.dtype:
        return _as_bytes(packer, op)
    raise TileNotSupported(
        f"{op.op_name} between {op.src.buffer.name} ({op.src.dtype}) and {op.dst.buffer.name} "
        f"({op.dst.dtype})", loc=op.loc, hint="use T.copy, which converts",
    )  # fmt: skip


def _fill(packer: Packer, op: Fill) -> Node:
    """One byte everywhere."""
    if not is_packed(op.dst.buffer):
        return map_children(op, packer.visit)
    region = packer.bytes_region(op.dst)
    if region is None:
        raise packer.inside_a_byte(op.dst.buffer, op)
    code = packer.elements.code(cast(packer.visit(op.value), op.dst.dtype), op.dst.dtype)
    ones = sum(1 << (n * op.dst.dtype.bits) for n in range(op.dst.dtype.per_byte))
    return replace(op, dst=region, value=cast(code * ones, region.dtype))


def _gemm(packer: Packer, op: Gemm) -> Node:
    """Operands as elements of a type that is multiplied and holds their values."""
    kinds = _multiplied(op.a.dtype, op.b.dtype)
    before: list[Stmt] = []
    parts: dict[str, Region] = {}
    for name, kind in zip(("a", "b"), kinds, strict=True):
        region: Region = getattr(op, name)
        if region.dtype != kind:
            parts[name] = packer.tile_of(region, kind, op)
            before.append(Copy(region, parts[name], loc=op.loc))
    if is_stored(op.c):
        parts["c"] = packer.tile_of(op.c, computing(op.c.dtype), op, Scope.FRAGMENT)
        before.append(Copy(op.c, parts["c"], loc=op.loc))
    body: list[Stmt] = [*before, replace(op, **parts)]
    if "c" in parts:
        body.append(Copy(parts["c"], op.c, loc=op.loc))
    return Seq(tuple(packer.visit(s) for s in body), loc=op.loc)  # type: ignore[misc]


def _through_tiles(packer: Packer, op: TileOp) -> Node:
    """Any other op works on tiles in registers, of the type that operators compute in."""
    before: list[Stmt] = []
    after: list[Stmt] = []
    parts: dict[str, Region] = {}
    for name, effect in operand_fields(op).items():
        region: Region = getattr(op, name)
        if not is_stored(region):
            continue
        tile = packer.tile_of(region, computing(region.dtype), op, Scope.FRAGMENT)
        parts[name] = tile
        if effect == "reads" or (effect == "updates" and not op.overwrites()):
            before.append(Copy(region, tile, loc=op.loc))
        if effect != "reads":
            after.append(Copy(tile, region, loc=op.loc))
    made = replace(op, **parts)
    made.check()
    body = [*before, made, *after]
    return Seq(tuple(packer.visit(s) for s in body), loc=op.loc)  # type: ignore[misc]


def _multiplied(a: DType, b: DType) -> tuple[DType, DType]:
    """The types that a product of stored types is formed in: the other operand's where that holds
    every value, else those that operators compute in."""
    kinds = [a, b]
    for n, (own, other) in enumerate(((a, b), (b, a))):
        if own.per_byte > 1:
            fits = own.is_float and other.is_float and other.per_byte == 1 and not other.is_code
            kinds[n] = other if fits else computing(own)
    return kinds[0], kinds[1]


_TILES: dict[type[TileOp], Callable[[Packer, Any], Node]] = {
    Copy: _copy, Transfer: _transfer, Fill: _fill, Gemm: _gemm,
}  # fmt: skip
