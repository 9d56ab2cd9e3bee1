"""Thread-block clusters, of one block: what the names of the language mean there.

A cluster of one block is what every launch is, so all names have their meaning; larger clusters,
whose blocks share memory with each other, are refused.
"""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileNotSupported
from tilelab.frontend import KernelFrame, open_kernel, session
from tilelab.ir import Expr, Stmt, as_expr, const_int
from tilelab.language.launch import Kernel, get_block_binding
from tilelab.language.sync import alloc_barrier, mbarrier_arrive, sync_threads


def ClusterKernel(
    *blocks: Any, cluster_dims: Any, threads: Any = None, prelude: str | None = None
) -> KernelFrame:
    """T.Kernel with a cluster shape; TileNotSupported (TL1781) for clusters of several blocks."""
    return Kernel(*blocks, threads=threads, prelude=prelude, cluster_dims=cluster_dims)


def block_rank_in_cluster() -> Expr:
    """The block's number in its cluster: 0."""
    open_kernel("T.block_rank_in_cluster")
    return as_expr(0)


def cluster_sync() -> Stmt:
    """All threads of the cluster, which is the block, wait for each other."""
    return sync_threads()


_ARRIVED = "cluster_arrived"


def cluster_arrive() -> None:
    """The first half of T.cluster_sync; T.cluster_wait is the second."""
    open_kernel("T.cluster_arrive").state[_ARRIVED] = True


def cluster_wait() -> Stmt:
    """Wait for all threads of the cluster after T.cluster_arrive. TileNotSupported (TL1781)
    without one before it."""
    kernel = open_kernel("T.cluster_wait")
    if not kernel.state.pop(_ARRIVED, False):
        raise TileNotSupported(
            "T.cluster_wait stands before any T.cluster_arrive", code="TL1781",
            loc=session().loc(), hint="arrive first, or use T.cluster_sync",
        )  # fmt: skip
    return sync_threads()


def alloc_cluster_barrier(arrive_count: Any) -> Any:
    """T.alloc_barrier: the cluster's barriers are the block's."""
    return alloc_barrier(arrive_count)


def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> Stmt:
    """Arrive at the barrier of block `cta_id` of the cluster, which can only be 0."""
    if const_int(cta_id) != 0:
        raise TileNotSupported(
            f"block {cta_id!r} of a cluster of one block", code="TL1781", loc=session().loc(),
            hint="only block 0 exists: clusters of several blocks are not supported",
        )  # fmt: skip
    return mbarrier_arrive(mbarrier)


def get_cluster_size() -> int:
    """Blocks of a cluster: 1."""
    return 1


def get_cluster_dims() -> list[int]:
    """Blocks of a cluster along x, y and z."""
    return [1, 1, 1]


def get_cluster_extent(dim: int = 0) -> int:
    """Clusters' blocks along an axis: 1."""
    return get_cluster_dims()[dim]


def get_cluster_id(dim: int = 0) -> Expr:
    """The cluster's number along an axis: the block's."""
    return get_block_binding(dim)


def get_cluster_ids() -> list[Expr]:
    """The cluster's numbers along the axes of the grid: the block's."""
    return list(open_kernel("T.get_cluster_ids").block_vars)


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        ClusterKernel, alloc_cluster_barrier, block_rank_in_cluster, cluster_arrive, cluster_sync,
        cluster_wait, get_cluster_dims, get_cluster_extent, get_cluster_id, get_cluster_ids,
        get_cluster_size,
        ptx_arrive_cluster_barrier,
    )
}  # fmt: skip
NAMES["cluster_arrive_relaxed"] = cluster_arrive
NAMES["get_cluster_extents"] = get_cluster_dims
"""What this module adds to the language."""
