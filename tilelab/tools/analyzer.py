"""How much a traced program computes and moves, counted from its text.

Hides how extents of loops are found; branches count as their larger side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.carver.arch.cuda import CUDA
from tilelab.errors import TileTypeError, TileValueError
from tilelab.frontend import PrimFunc
from tilelab.ir import (
    Expr,
    For,
    Function,
    If,
    Kernel,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    While,
    children,
    const_int,
)
from tilelab.tile.op import TileOp
from tilelab.tile.ops.gemm import Gemm


@dataclass(frozen=True)
class Work:
    """Floating-point operations of matrix multiplications, and bytes of tensors touched."""

    flops: int = 0
    bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def times(self, count: int) -> Work:
        """This, `count` times."""
        return Work(self.flops * count, self.bytes * count)


@dataclass(frozen=True)
class AnalysisResult:
    """Work of one call, and what a chip would take for it at best: `estimated_time` in seconds,
    the larger of arithmetic at the tensor cores' peak and traffic at device memory's."""

    total_flops: int
    total_global_bytes: int
    estimated_time: float
    expected_tflops: float
    expected_bandwidth_GBps: float  # TileLang's name


class Analyzer:
    """Counts work: `Analyzer.analysis(prim_func, CUDA("cuda"))`."""

    @staticmethod
    def analysis(fn: Any, device: CUDA) -> AnalysisResult:
        """The work of a T.prim_func, and its best time on `device`.

        A loop whose length is known only at run time counts with its upper bound. Raises
        TileTypeError (TL1656) for something that is no program, TileValueError (TL1656) for a
        loop or grid without a bound.
        """
        function = fn.function if isinstance(fn, PrimFunc) else fn
        if not isinstance(function, Function):
            raise TileTypeError(
                f"Analyzer takes a T.prim_func, got {fn!r}", code="TL1656",
                hint="for a jitted function use f.get_tir(...)",
            )  # fmt: skip
        work = Work()
        for kernel in function.kernels:
            work += _kernel(kernel)
        limits = device.target.limits
        seconds = max(
            work.flops / limits.tensor_flops_16bit, work.bytes / limits.dram_bytes_per_second
        )
        rate = 1 / seconds if seconds else 0.0
        return AnalysisResult(
            work.flops, work.bytes, seconds, work.flops * rate / 1e12, work.bytes * rate / 1e9
        )


def _kernel(kernel: Kernel) -> Work:
    blocks = prod(_count(extent, kernel) for extent in kernel.grid)
    return _of(kernel.body).times(blocks)


def _count(extent: Expr | int, node: Stmt) -> int:
    known = const_int(extent)
    if known is None and isinstance(extent, Expr):
        known = extent.bounds[1]
    if known is None:
        raise TileValueError(
            "the number of repeats here is known only at run time", code="TL1656", loc=node.loc,
            hint="analyse a program whose sizes are numbers",
        )  # fmt: skip
    return max(known, 0)


def _of(node: Node) -> Work:
    """The work of a node and everything under it."""
    counter = next((fn for kind, fn in _COUNTERS.items() if isinstance(node, kind)), None)
    if counter is not None:
        return counter(node)
    return _under(node)


def _under(node: Node) -> Work:
    total = Work()
    for child in children(node):
        total += _of(child)
    return total


def _loop(loop: For) -> Work:
    return _of(loop.body).times(_count(loop.extent, loop))


def _parallel(loop: ParallelFor) -> Work:
    return _of(loop.body).times(prod(_count(e, loop) for e in loop.extents))


def _while(loop: While) -> Work:
    raise TileValueError(
        "a while loop repeats a number of times that is known only at run time", code="TL1656",
        loc=loop.loc, hint="analyse a program with for loops",
    )  # fmt: skip


def _branch(branch: If) -> Work:
    sides = [_of(branch.then), _of(branch.orelse or Seq(()))]
    return Work(max(s.flops for s in sides), max(s.bytes for s in sides)) + _of(branch.cond)


def _load(load: Load) -> Work:
    own = load.buffer.dtype.bits // 8 if load.buffer.scope is Scope.GLOBAL else 0
    return Work(0, own) + _under(load)


def _store(store: Store) -> Work:
    own = store.buffer.dtype.bits // 8 if store.buffer.scope is Scope.GLOBAL else 0
    return Work(0, own) + _under(store)


def _gemm(op: Gemm) -> Work:
    return Work(2 * prod(op.extents))


def _op(op: TileOp) -> Work:
    """A tile op moves its tensor operands, as far as its tiles on the chip can hold them."""
    regions = op.operands("reads", "writes", "updates")
    on_chip = [_elements(r, op) for r in regions if r.buffer.scope is not Scope.GLOBAL]
    moved = 0
    for region in regions:
        if region.buffer.scope is Scope.GLOBAL:
            elements = min([_elements(region, op), *on_chip])
            moved += elements * region.dtype.bits // 8
    return Work(0, moved)


def _elements(region: Region, op: TileOp) -> int:
    return prod(_count(extent, op) for extent in region.tile_shape)


_COUNTERS: dict[type[Any], Callable[[Any], Work]] = {
    Gemm: _gemm, TileOp: _op, For: _loop, ParallelFor: _parallel, While: _while, If: _branch,
    Load: _load, Store: _store,
}  # fmt: skip
