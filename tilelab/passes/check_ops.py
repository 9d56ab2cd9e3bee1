"""check-ops: every tile op's own check, and rules about the whole kernel."""

from __future__ import annotations

import warnings

from tilelab.errors import TileValueError, TileWarning
from tilelab.ir import Function, Kernel, ParallelFor, const_int, walk
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.check_loops import check_parallel
from tilelab.passes.check_pools import check_pools
from tilelab.passes.check_reducers import check_reducers
from tilelab.tile.op import TileOp


@tile_pass("check-ops", makes=("checked",))
def check_ops(function: Function, ctx: PassContext) -> Function:
    """Check operand shapes, scopes and element types of every tile op."""
    for kernel in function.kernels:
        _check_grid(kernel)
        check_reducers(kernel)
        check_pools(kernel)
    for node in walk(function):
        if isinstance(node, ParallelFor):
            check_parallel(node)
        if isinstance(node, TileOp):
            node.check()
            _warn_of_readings(node, ctx)
    return function


# CUDA C programming guide, compute capabilities: the same for every chip.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)


def _check_grid(kernel: Kernel) -> None:
    """Whether a launch can have so many blocks; a program that is only looked at may ask for
    more."""
    for extent, most, axis in zip(kernel.grid, _MOST_BLOCKS, "xyz", strict=False):
        constant = const_int(extent)
        if constant is not None and constant > most:
            raise TileValueError(
                f"the grid extent {constant} is too large: a grid has at most {most} blocks "
                f"along {axis}",
                code="TL1430", loc=kernel.loc,
                hint="put the longest extent first, or let a block do more tiles",
            )  # fmt: skip


def _warn_of_readings(op: TileOp, ctx: PassContext) -> None:
    """Say how a base point was read where TileLang reads it differently."""
    for region in (*op.read_regions(), *op.written_regions()):
        if region.note:
            ctx.note(region.note, op, level="warning")
            place = f" ({op.loc})" if op.loc is not None else ""
            warnings.warn(f"{region.buffer.name}: {region.note}{place}", TileWarning, stacklevel=2)
