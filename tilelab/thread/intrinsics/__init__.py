"""Instruction records: for each, its CUDA text, its meaning and its cost in one place.

The only package with `asm` text. Constants are records; functions give one record per parameter
set and always the same object for the same arguments.
"""

from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    FENCE_PROXY_ASYNC_ALL,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_INIT,
    MBARRIER_INIT_FENCE,
    MBARRIER_WAIT,
    NAMED_BARRIER_SYNC,
    SYNCTHREADS,
)
from tilelab.thread.intrinsics.cp_async import (
    CP_ASYNC_COMMIT,
    cp_async,
    cp_async_wait,
    cp_async_zfill,
)
from tilelab.thread.intrinsics.helpers import (
    HELPERS,
    INLINE,
    PRELUDE,
    TENSOR_MAP,
    Helper,
    helper_texts,
)
from tilelab.thread.intrinsics.mma import ldmatrix, mma_sync, stmatrix
from tilelab.thread.intrinsics.tma import (
    PREFETCH_TENSORMAP,
    TMA_STORE_COMMIT,
    tma_load,
    tma_store,
    tma_store_wait,
    tma_store_wait_read,
)
from tilelab.thread.intrinsics.warp import (
    QUAD_TRANSPOSE,
    SHFL_DOWN,
    SHFL_INDEX,
    SHFL_UP,
    SHFL_XOR,
    warpgroup_reg_alloc,
    warpgroup_reg_dealloc,
)
from tilelab.thread.intrinsics.wgmma import (
    DESCRIPTOR_HELPERS,
    WARPGROUP_ARRIVE,
    WARPGROUP_COMMIT,
    descriptor_text,
    fence_registers,
    warpgroup_wait,
    wgmma_rs,
    wgmma_ss,
)

__all__ = [
    "CP_ASYNC_COMMIT",
    "DESCRIPTOR_HELPERS",
    "FENCE_PROXY_ASYNC",
    "FENCE_PROXY_ASYNC_ALL",
    "HELPERS",
    "INLINE",
    "MBARRIER_ARRIVE",
    "MBARRIER_EXPECT_TX",
    "MBARRIER_INIT",
    "MBARRIER_INIT_FENCE",
    "MBARRIER_WAIT",
    "NAMED_BARRIER_SYNC",
    "PREFETCH_TENSORMAP",
    "PRELUDE",
    "QUAD_TRANSPOSE",
    "SHFL_DOWN",
    "SHFL_INDEX",
    "SHFL_UP",
    "SHFL_XOR",
    "SYNCTHREADS",
    "TENSOR_MAP",
    "TMA_STORE_COMMIT",
    "WARPGROUP_ARRIVE",
    "WARPGROUP_COMMIT",
    "Helper",
    "cp_async",
    "cp_async_wait",
    "cp_async_zfill",
    "descriptor_text",
    "fence_registers",
    "helper_texts",
    "ldmatrix",
    "mma_sync",
    "stmatrix",
    "tma_load",
    "tma_store",
    "tma_store_wait",
    "tma_store_wait_read",
    "warpgroup_reg_alloc",
    "warpgroup_reg_dealloc",
    "warpgroup_wait",
    "wgmma_rs",
    "wgmma_ss",
]  # fmt: skip
