"""place-tensors: elements of a tensor lie where the program's T.Layout puts them.

The tensor's bytes get a second name whose shape is the layout's output, and every access goes
there. Hides the rewriting of indices; later passes see an ordinary view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    Kernel,
    Load,
    Node,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    children,
    map_children,
)
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.thread.intrinsics.atomic import atomic
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.elementwise import over_elements
from tilelab.tile.op import TileOp
from tilelab.tile.ops.atomic import AtomicTile
from tilelab.tile.ops.copy import Copy

TENSOR_LAYOUTS = "tensor_layouts"
"""Kernel attribute: pairs of a tensor and its layout, as T.annotate_layout leaves them."""


@kernel_pass("place-tensors", needs=("checked",))
def place_tensors(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Redirect accesses of tensors that have a layout of their own."""
    chosen = next((v for k, v in kernel.attrs if k == TENSOR_LAYOUTS), None)
    if chosen is None:
        return kernel
    placed = {id(tensor): Placed(tensor, layout) for tensor, layout in chosen}  # type: ignore[union-attr]
    for item in placed.values():
        ctx.note(f"{item.tensor.name} is stored as {item.view.static_shape}", kernel)
    body: Seq = Placer(placed).visit(kernel.body)  # type: ignore[assignment]
    views = tuple(Alloc(item.view, loc=kernel.loc) for item in placed.values())
    attrs = tuple(a for a in kernel.attrs if a[0] != TENSOR_LAYOUTS)
    return replace(kernel, attrs=attrs, body=replace(body, body=(*views, *body.body)))


class Placed:
    """A tensor and the view through which its elements are reached."""

    def __init__(self, tensor: Buffer, layout: Any) -> None:
        self.tensor, self.layout = tensor, layout
        axes = [Var(f"i{n}", lo=0, hi=e - 1) for n, e in enumerate(tensor.static_shape)]
        shape: list[int] = []
        for part in layout.map_forward_index(axes):
            lo, hi = as_expr(part).bounds
            if lo is None or lo < 0 or hi is None:
                raise _no_bounds(tensor)
            shape.append(hi + 1)
        if prod(shape) != prod(tensor.static_shape):
            raise _no_bounds(tensor)
        self.view = Buffer(
            f"{tensor.name}_placed", tuple(shape), tensor.dtype, Scope.GLOBAL,
            loc=tensor.loc, alias_of=tensor.storage,
        )  # fmt: skip

    def index(self, indices: Sequence[Any]) -> tuple[Expr, ...]:
        """Where an element lies in the view."""
        return tuple(as_expr(part) for part in self.layout.map_forward_index(list(indices)))


class Placer:
    """Rewrites a kernel body."""

    def __init__(self, placed: dict[int, Placed]) -> None:
        self.placed = placed

    def visit(self, node: Node) -> Node:
        if isinstance(node, TileOp) and any(self._of(r) for r in children(node)):
            rule = _BY_ELEMENTS.get(type(node))
            if rule is None:
                raise TileNotSupported(
                    f"{node.op_name} on a tensor with a layout of its own", loc=node.loc,
                    hint="access its elements in a T.Parallel loop, or copy the tile",
                )  # fmt: skip
            node = over_elements(node, partial(rule, node))
        made = map_children(node, self.visit)
        held = getattr(made, "buffer", None)
        found = self.placed.get(id(held))
        if found is None or not isinstance(made, _ACCESSES):
            return made
        return replace(made, buffer=found.view, indices=found.index(made.indices))

    def _of(self, node: Node) -> bool:
        return isinstance(node, Region) and id(node.buffer) in self.placed


_ACCESSES = (Load, Store, Ref)


def _store(op: Copy, value: Expr, index: tuple[Expr, ...]) -> Stmt:
    return Store(op.dst.buffer, index, value, loc=op.loc)


def _update(op: AtomicTile, value: Expr, index: tuple[Expr, ...]) -> Stmt:
    place = Ref(op.dst.buffer, index)
    return Invoke(atomic(op.op, op.dst.dtype, op.order), (place, value), loc=op.loc)


_BY_ELEMENTS: dict[type[Node], Callable[[Any, Expr, tuple[Expr, ...]], Stmt]] = {
    Copy: _store, AtomicTile: _update,
}  # fmt: skip


def _no_bounds(tensor: Buffer) -> TileValueError:
    return TileValueError(
        f"the layout given for {tensor.name} does not fill {tensor.static_shape} without holes",
        code="TL1537", loc=tensor.loc, hint="every element needs a place of its own",
    )  # fmt: skip
