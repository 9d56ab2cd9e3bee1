"""tma_copy and async_copy: copies whose end the program waits for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.errors import TileNotSupported, TileTypeError
from tilelab.ir import Load, Region, Scope, Seq, Stmt, as_expr
from tilelab.ir.builder import current
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import MBARRIER_ADD_EXPECTED, MBARRIER_EXPECT_TX
from tilelab.thread.intrinsics.cp_async import CP_ASYNC_COMMIT
from tilelab.thread.intrinsics.tma import TMA_STORE_COMMIT, tma_store
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import guarded, tile_extents
from tilelab.tile.op import TileOp, lowering, reads, writes
from tilelab.tile.operands import check_same_tile, here, pair_regions
from tilelab.tile.ops.copy_async import (
    async_width,
    box_width,
    cp_async_tile,
    part_of_panels,
    tensor_boxes,
    tma_load_tile,
    why_not_tma,
)


def tma_copy(
    src: Any, dst: Any, *, barrier: Any = None, cluster_mask: Any = None,
    leader_scope_threads: int | None = None, eviction_policy: str | None = None,
    annotations: dict[str, Any] | None = None,
) -> Stmt:  # fmt: skip
    """Copy a tile by TMA and go on at once: one thread asks for it.

    Global to shared: the bytes are expected at `barrier` (one of T.alloc_barrier); the program
    arrives there and waits for the phase. Shared to global: the store becomes one group, to be
    waited for with T.tma_store_wait. Raises TileTypeError (TL1759) without a barrier, and
    TileNotSupported (TL1760) for tiles that TMA cannot move.
    """
    if cluster_mask is not None:
        raise TileNotSupported(
            "T.tma_copy(cluster_mask=...) is for clusters of blocks", code="TL1755", loc=here(),
            hint="clusters are not supported yet",
        )  # fmt: skip
    source, target = pair_regions(src, dst)
    if source.buffer.scope is Scope.SHARED:
        return _placed(TmaStore(source, target, loc=here()))
    if not isinstance(barrier, Load) and hasattr(barrier, "rank"):
        barrier = Load(barrier, (as_expr(0),) * barrier.rank)
    if not isinstance(barrier, Load) or barrier.buffer.scope is not Scope.BARRIER:
        raise TileTypeError(
            f"T.tma_copy into {target.buffer.name} names no barrier", code="TL1759", loc=here(),
            hint="make one with T.alloc_barrier and pass barrier=bar[i]",
        )  # fmt: skip
    place = Ref(barrier.buffer, barrier.indices)
    arrives = bool((annotations or {}).get("emit_arrive", 0))
    return _placed(TmaLoad(source, target, place, arrives, loc=here()))


def async_copy(
    src: Any, dst: Any, *, coalesced_width: Any = None, annotations: Any = None,
    loop_layout: Any = None,
) -> Stmt:  # fmt: skip
    """Copy a tile from global to shared memory with cp.async, as one group, and go on at once;
    wait with T.ptx_wait_group. Raises TileNotSupported (TL1760) where cp.async cannot copy."""
    source, target = pair_regions(src, dst)
    return _placed(AsyncCopy(source, target, loc=here()))


def _placed(op: Transfer) -> Stmt:
    op.check()
    return current().emit(op)


@dataclass(frozen=True, eq=False)
class Transfer(TileOp):
    """What these copies have in common."""

    team: ClassVar[str] = "any"

    src: Region = reads()
    dst: Region = writes()

    def check(self) -> None:
        check_same_tile(self.op_name, self.src, self.dst, self.loc)

    def label(self) -> str:
        return f"{self.src.buffer.name} -> {self.dst.buffer.name}"

    def refuse(self, why: str) -> TileNotSupported:
        """The error of a tile that this kind of copy cannot move."""
        return TileNotSupported(
            f"{self.op_name} {self.label()} is not possible: {why}", code="TL1760", loc=self.loc,
            hint="use T.copy, which finds a way for every pair of buffers",
        )  # fmt: skip

    def reference(self, env: Any) -> None:
        env.put(self.dst, env.get(self.src))


@dataclass(frozen=True, eq=False)
class TmaLoad(Transfer):
    """One thread starts a TMA load that completes at `barrier`."""

    op_name: ClassVar[str] = "tma_copy"

    barrier: Ref | None = None
    arrives: bool = False


@dataclass(frozen=True, eq=False)
class TmaStore(Transfer):
    """One thread starts a TMA store, as a group of its own."""

    op_name: ClassVar[str] = "tma_copy"


@dataclass(frozen=True, eq=False)
class AsyncCopy(Transfer):
    """Every thread starts its share of cp.async, as a group of its own."""

    op_name: ClassVar[str] = "async_copy"


def _must_be_tma(op: Transfer, outer: Region, tile: Region, ctx: LowerContext) -> None:
    why = why_not_tma(outer, tile, ctx)
    if not why and part_of_panels(tile, ctx):
        columns = box_width(tile)
        why = f"it takes a part of {columns} columns that lie together in {tile.buffer.name}"
    if why:
        raise op.refuse(why)


@lowering(TmaLoad, needs={Feature.TMA, Feature.MBARRIER})
def _load(op: TmaLoad, ctx: LowerContext) -> Iterable[Stmt]:
    """One thread expects the tile's bytes at the barrier and asks for its boxes."""
    assert op.barrier is not None
    _must_be_tma(op, op.src, op.dst, ctx)
    size = op.dst.dtype.bytes
    for extent in tile_extents(op.dst):
        size *= extent
    record = MBARRIER_EXPECT_TX if op.arrives else MBARRIER_ADD_EXPECTED
    expect = Invoke(record, (op.barrier, as_expr(size)), loc=op.loc)
    boxes = tma_load_tile(ctx, op.src, op.dst, op.barrier, op.loc)
    yield guarded(ctx.single_thread(), [expect, *boxes], op.loc)


@lowering(TmaStore, needs={Feature.TMA})
def _store(op: TmaStore, ctx: LowerContext) -> Iterable[Stmt]:
    """One thread hands over the tile's boxes and closes the group."""
    _must_be_tma(op, op.dst, op.src, ctx)
    body: list[Stmt] = []
    for descriptor, place, coordinates in tensor_boxes(ctx, op.dst, op.src):
        record = tma_store(op.dst.buffer.rank)
        body.append(Invoke(record, (descriptor, place, *coordinates), loc=op.loc))
    body.append(Invoke(TMA_STORE_COMMIT, (), loc=op.loc))
    yield guarded(ctx.single_thread(), body, op.loc)


@lowering(AsyncCopy, needs={Feature.CP_ASYNC})
def _async(op: AsyncCopy, ctx: LowerContext) -> Iterable[Stmt]:
    """Every thread starts copies of 4 to 16 bytes, then closes its group."""
    if async_width(op.src, op.dst, ctx) is None:
        raise op.refuse("cp.async moves runs of 4, 8 or 16 bytes from global to shared memory")
    yield Seq(tuple(_statements(op, ctx)), loc=op.loc)


def _statements(op: AsyncCopy, ctx: LowerContext) -> Iterator[Stmt]:
    yield from cp_async_tile(ctx, op.src, op.dst, op.loc)
    yield Invoke(CP_ASYNC_COMMIT, (), loc=op.loc)
