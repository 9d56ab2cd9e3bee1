"""print(buffer): one thread prints the elements of a tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilelab.ir import If, Load, Region, Scope, Seq, Stmt, as_expr, binary, cast, const_int
from tilelab.layout.digits import unravel
from tilelab.thread.intrinsics.debug import printable, printf
from tilelab.thread.nodes import Invoke
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import guarded, own_loop
from tilelab.tile.held import to_memory
from tilelab.tile.op import Env, TileOp, lowering, reads
from tilelab.tile.operands import whole


@dataclass(frozen=True, eq=False)
class Print(TileOp):
    """Thread `thread` prints every element of `src`, after `message`."""

    op_name: ClassVar[str] = "print"
    team: ClassVar[str] = "each"

    src: Region = reads()
    message: str = ""
    thread: int = 0

    def label(self) -> str:
        return f"print {self.src.buffer.name}"

    def reference(self, env: Env) -> None:
        """Changes no tile."""


@lowering(Print)
def _one_thread(op: Print, ctx: LowerContext) -> Iterable[Stmt]:
    """Row by row; a fragment is brought together in shared memory first."""
    src, loc = op.src, op.loc
    extents = tuple(int(const_int(e) or 0) for e in src.tile_shape)
    shown = src
    if src.buffer.scope is Scope.FRAGMENT:
        shown = whole(ctx.scratch(f"{src.buffer.name}_printed", extents, src.dtype, loc))
        yield from to_memory(ctx, src, shown, loc)
    number = ctx.fresh("i", prod(extents))
    index = unravel(number, extents)
    form = printable(src.dtype)
    value = cast(Load(ctx.placed(shown.buffer), shown.index(index)), form.dtype)
    place = src.index(index)
    text = f"{_escaped(op.message)}{src.buffer.root.name}[{', '.join(['%d'] * len(place))}] = "
    record = printf(text + form.conversion, len(place) + 1)
    say: Stmt = Invoke(record, (*place, value), loc=loc)
    if src.buffer.scope is Scope.GLOBAL:
        say = guarded(ctx.in_bounds(src, tuple(index)), [say], loc)
    body = own_loop(number, prod(extents), [say], loc)
    mine = binary("==", ctx.tid, as_expr(op.thread))
    yield If(mine, Seq((body,), loc=loc), loc=loc)


def _escaped(message: str) -> str:
    message = message.replace("%", "%%")
    return f"{message}: " if message else ""
