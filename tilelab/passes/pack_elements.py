"""pack-elements: buffers whose elements share bytes become buffers of bytes.

Tensors and shared memory of sub-byte types get uint8 buffers of the same name; reads take an
element out of its byte, tiles move as bytes, and what needs whole elements gets a tile of its own
that holds them one by one. Hides packing from every later pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import TileNotSupported, TileValueError
from tilelab.ir import (
    Alloc,
    Buffer,
    Function,
    Kernel,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Stmt,
    Store,
    as_expr,
    const_int,
    map_children,
    walk,
)
from tilelab.ir.packing import is_packed, packed
from tilelab.ir.simplify import divisibility
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.pack_stores import Elements, split_by_bytes
from tilelab.passes.pack_tiles import pack_tile
from tilelab.thread.nodes import Ref
from tilelab.tile.op import TileOp
from tilelab.tile.operands import whole


@tile_pass("pack-elements", needs=("checked",))
def pack_elements(function: Function, ctx: PassContext) -> Function:
    """Give packed tensors and shared buffers their bytes, and take elements out of them."""
    packer = Packer(function)
    if not packer.bytes_of and not packer.registers:
        return function
    for found in packer.bytes_of.values():
        if found.origin is not None and is_packed(found.origin):
            ctx.note(f"{found.name}: {found.origin.dtype.per_byte} elements in a byte", found)
    return packer.function(function)


class Packer:
    """Rewrites one function. `bytes_of` maps buffers (by identity) to what stands for them."""

    def __init__(self, function: Function) -> None:
        buffers = {id(n): n for n in walk(function) if isinstance(n, Buffer)}
        self.bytes_of: dict[int, Buffer] = {}
        self.registers = any(b.dtype.per_byte > 1 and not is_packed(b) for b in buffers.values())
        for buffer in buffers.values():
            self._place(buffer)
        self.elements = Elements(self.bytes_of)
        self._allocs: list[Stmt] = []
        self._names = {b.name for b in buffers.values()}

    def _place(self, buffer: Buffer) -> Buffer:
        """The buffer of bytes that stands for a packed one, or for a view of one."""
        known = self.bytes_of.get(id(buffer))
        if known is not None:
            return known
        storage = None if buffer.alias_of is None else self._place(buffer.alias_of)
        made = buffer
        if is_packed(buffer):
            if buffer.layout is not None:
                raise TileNotSupported(
                    f"a layout for {buffer.name}, whose elements of {buffer.dtype} share bytes",
                    loc=buffer.loc, hint="leave the layout out, or view the buffer as uint8",
                )  # fmt: skip
            made = packed(buffer)
        if storage is not None and storage is not buffer.alias_of:
            made = replace(made, alias_of=storage)
        if made is not buffer:
            self.bytes_of[id(buffer)] = made
        return made

    # ---- the walk ----------------------------------------------------------------------------

    def function(self, node: Function) -> Function:
        """The function on bytes."""

        def part(n: Node) -> Node:
            return self._kernel(n) if isinstance(n, Kernel) else self.visit(n)

        return map_children(node, part)

    def _kernel(self, node: Kernel) -> Kernel:
        self._allocs = []
        safe: Any = dict(node.attrs).get("safe_values", ())
        tensors: list[Buffer] = [tensor for tensor, _ in safe]
        for tensor in tensors:
            if is_packed(tensor):
                raise TileNotSupported(
                    f"T.annotate_safe_value for {tensor.name}, whose elements share bytes",
                    loc=node.loc, hint="reads past its end give 0",
                )  # fmt: skip
        made: Any = map_children(node, self.visit)
        body = replace(made.body, body=(*self._allocs, *made.body.body))
        return replace(made, body=body) if self._allocs else made

    def visit(self, node: Node) -> Node:
        if isinstance(node, Buffer):
            return self.bytes_of.get(id(node), node)
        rule = next((r for k, r in _RULES.items() if isinstance(node, k)), None)
        return map_children(node, self.visit) if rule is None else rule(self, node)

    def load(self, node: Load) -> Node:
        """An element out of its byte."""
        made: Any = map_children(node, self.visit)
        return self.elements.read(node.buffer, made.indices) if is_packed(node.buffer) else made

    def store(self, node: Store) -> Node:
        """A thread's own store; TileNotSupported (TL1542) where others write the same byte."""
        if is_packed(node.buffer):
            raise TileNotSupported(
                f"a thread writes one element of {node.buffer.name}, whose elements of "
                f"{node.buffer.dtype} share bytes: it would undo what another one writes beside it",
                code="TL1542", loc=node.loc,
                hint="write it in a T.Parallel loop along its last axis, or T.copy a tile to it",
            )  # fmt: skip
        return map_children(node, self.visit)

    def parallel(self, node: ParallelFor) -> Node:
        """An elementwise loop."""
        stores = [n for n in walk(node.body) if isinstance(n, Store) and is_packed(n.buffer)]
        if not stores:
            return map_children(node, self.visit)
        return split_by_bytes(node, stores, self.elements, self.visit)

    def ref(self, node: Ref) -> Node:
        """The place of an element, for an instruction that takes its address."""
        made: Any = map_children(node, self.visit)
        buffer = node.buffer
        if not is_packed(buffer):
            return made
        count, last = buffer.dtype.per_byte, made.indices[-1]
        if divisibility(last) % count:
            raise self.inside_a_byte(buffer, node)
        place = (*made.indices[:-1], last // count)
        return replace(made, indices=place, count=max(node.count // count, 1))

    def inside_a_byte(self, buffer: Buffer, node: Node) -> TileValueError:
        """A place that may be in the middle of a byte (TL1541)."""
        return TileValueError(
            f"a part of {buffer.name} may begin or end inside a byte: {buffer.dtype.per_byte} "
            f"elements of {buffer.dtype} share one",
            code="TL1541", loc=getattr(node, "loc", None),
            hint=f"let it begin and end at multiples of {buffer.dtype.per_byte} on the last axis",
        )  # fmt: skip

    # ---- tiles -------------------------------------------------------------------------------

    def bytes_region(self, region: Region) -> Region | None:
        """The same tile as bytes; None when it may begin or end inside of one."""
        count, buffer = region.dtype.per_byte, region.buffer
        if not region.tile_axes or region.tile_axes[-1] != buffer.rank - 1:
            return None
        start, extent = as_expr(region.starts[-1]), region.extents[-1]
        full = const_int(start) == 0 and as_expr(extent).key == as_expr(buffer.shape[-1]).key
        if not full and (divisibility(start) % count or divisibility(as_expr(extent)) % count):
            return None
        made = self.bytes_of[id(buffer)]
        size = made.shape[-1] if full else as_expr(extent) // count
        known = const_int(size)
        extents = (*region.extents[:-1], size if known is None else known)
        starts: Any = tuple(self.visit(s) for s in (*region.starts[:-1], start // count))
        return replace(region, buffer=made, starts=starts, extents=extents)

    def tile_of(
        self, region: Region, kind: DType, op: TileOp, scope: Scope | None = None
    ) -> Region:
        """A new tile for a region's elements, one by one, in its own kind of memory."""
        shape = tuple(const_int(e) or 0 for e in region.tile_shape)
        name = f"{region.buffer.name}_unpacked"
        while name in self._names:
            name += "_"
        self._names.add(name)
        made = Buffer(name, shape, kind, scope or region.buffer.scope, loc=op.loc)
        self._allocs.append(Alloc(made, loc=op.loc))
        return whole(made)


_RULES: dict[type[Node], Callable[[Packer, Any], Node]] = {
    Load: Packer.load, Store: Packer.store, ParallelFor: Packer.parallel, Ref: Packer.ref,
    TileOp: pack_tile,
}  # fmt: skip
