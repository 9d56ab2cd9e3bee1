"""relax-math: cheaper arithmetic in float32 whose results differ in the last bits at most.

Hides which rewrites there are; `tl.precise_math` turns all of them off:

* exp2 is the hardware's approximation (2 units in the last place; subnormal results are 0);
* a tile divided by a value of its row is multiplied by the row's reciprocal;
* a scale factor moves from a tile to where its elements are used: the maximum of a row is scaled
  instead of the row, and the exponential's difference takes the product in the same instruction;
* a sum over a tile that was just rounded to 16 bits adds the values before rounding;
* a row's sum that grows in a loop is kept in parts, one a thread, and joined behind the loop.
"""

from __future__ import annotations

from tilelab.ir import (
    Alloc,
    Binary,
    Buffer,
    Call,
    Const,
    Expr,
    Kernel,
    Node,
    ParallelFor,
    Seq,
    binary,
    call,
    map_children,
    walk,
)
from tilelab.ir.rewrite import rewrite
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.defer_sums import defer_sums
from tilelab.passes.forward_scale import forward_scales
from tilelab.passes.unrounded_sums import unrounded_sums
from tilelab.tile.structure import DEFER_SUMS, PRECISE_MATH, setting

FAST_EXP2 = "__exp2f"


@kernel_pass("relax-math", needs=("checked",))
def relax_math(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Take cheaper float32 arithmetic where only last bits change."""
    if setting(ctx, PRECISE_MATH):
        return kernel
    made: list[Buffer] = []

    def visit(node: Node) -> Node:
        if isinstance(node, Expr):
            return rewrite(node, _exp2)
        if isinstance(node, ParallelFor):
            node = _reciprocals(node, ctx)
        done = map_children(node, visit)
        if not isinstance(done, Seq):
            return done
        done = unrounded_sums(forward_scales(done, ctx), made, ctx)
        return defer_sums(done, ctx) if setting(ctx, DEFER_SUMS) else done

    done = map_children(kernel, visit)
    if not made:
        return done
    allocs = tuple(Alloc(b, loc=b.loc) for b in made)
    return _with_body(done, (*allocs, *done.body.body))


def _with_body(kernel: Kernel, body: tuple[Node, ...]) -> Kernel:
    return map_children(kernel, lambda n: Seq(body, loc=n.loc) if n is kernel.body else n)  # type: ignore[arg-type, union-attr]


def _exp2(n: Node) -> Node | None:
    """exp2 of up to 32 bits as the hardware has it."""
    if not isinstance(n, Call) or n.fn != "exp2" or n.dtype.bits > 32:
        return None
    return call(FAST_EXP2, *(rewrite(a, _exp2) for a in n.args), dtype=n.dtype)


def _reciprocals(loop: ParallelFor, ctx: PassContext) -> ParallelFor:
    """Division of a row by one value of the row as multiplication with its reciprocal."""
    if len(loop.vars) < 2:
        return loop
    inner = loop.vars[-1]

    def replace_division(n: Node) -> Node | None:
        if not isinstance(n, Binary) or n.op != "/" or n.dtype.name != "float32":
            return None
        same = not isinstance(n.b, Const) and not any(v is inner for v in walk(n.b))
        if not same:
            return None
        a, b = rewrite(n.a, replace_division), rewrite(n.b, replace_division)
        return binary("*", a, binary("/", Const(1.0, n.dtype), b))

    done = map_children(loop, lambda n: rewrite(n, replace_division) if isinstance(n, Seq) else n)
    if done is not loop:
        ctx.note("one reciprocal for each row instead of a division for each element", loop)
    return done


__all__ = ["FAST_EXP2", "relax_math"]
