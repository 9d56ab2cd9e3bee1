"""T.Parallel loops of a pipeline that fill a tile from looked-up rows, as copies that run ahead.

Hides which loops those are.
"""

from __future__ import annotations

from tilelab.ir import Const, Expr, Let, Load, ParallelFor, Scope, Select, Store, Var, const_int
from tilelab.ir.rewrite import substitute
from tilelab.passes.guards import let_values
from tilelab.tile.context import LowerContext
from tilelab.tile.operands import whole
from tilelab.tile.ops.gather import Gather, gather_width


def gather_of(loop: ParallelFor, names: dict[Var, Expr], ctx: LowerContext) -> Gather | None:
    """The loop as a Gather: it stores one element of a tensor (or zero) to each element of a whole
    shared tile, 4 bytes or more at once. None for others. `names`: what names of the enclosing
    loop's body stand for."""
    *lets, store = loop.body.body or (None,)
    if not isinstance(store, Store) or not all(isinstance(s, Let) for s in lets):
        return None
    tile = store.buffer
    extents = tuple(const_int(e) for e in loop.extents)
    filled = extents == tuple(const_int(n) for n in tile.shape) and None not in extents
    own = [i is v for i, v in zip(store.indices, loop.vars, strict=False)]
    if tile.scope is not Scope.SHARED or not filled or not all(own) or len(own) != tile.rank:
        return None
    value = substitute(store.value, {**names, **let_values(loop.body)})
    when: Expr | None = None
    if isinstance(value, Select) and isinstance(value.b, Const) and value.b.value == 0:
        when, value = value.cond, value.a
    if not isinstance(value, Load) or value.buffer.scope is not Scope.GLOBAL:
        return None
    src, dst = whole(value.buffer), whole(tile)
    made = Gather(src, dst, loop.vars, value.indices, when, loc=store.loc)
    return None if gather_width(made, ctx.trial()) is None else made
