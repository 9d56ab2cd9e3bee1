"""cp.async by hand: groups that are closed or waited for at the wrong place."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, UNGUARDED, Entry, collect

ASYNC: list[Entry] = []
SLOTS: list[Entry] = []
BOUNDS_READ: list[Entry] = []
missing, early, read = collect(ASYNC), collect(SLOTS), collect(BOUNDS_READ)


@missing("TL2003", target="sm_80")
def commit_only_where_something_is_copied(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 512), "float32"), B: T.Tensor((6, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((3, 512), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(2):
                T.ptx_cp_async(T.access_ptr(s[k, tx * 4], "w"), T.access_ptr(A[k, tx * 4]), 4)
                T.ptx_commit_group()
            for k in T.serial(6):
                T.ptx_wait_group(1)
                T.sync_threads()
                if k < 4:
                    T.ptx_cp_async(
                        T.access_ptr(s[(k + 2) % 3, tx * 4], "w"), T.access_ptr(A[k + 2, tx * 4]), 4
                    )
                    if not ok:
                        T.ptx_commit_group()
                if ok:
                    T.ptx_commit_group()
                for j in T.serial(4):
                    B[k, tx + j * 128] = s[k % 3, 511 - tx - j * 128]  # BUG

    return main


@missing("TL2003", "TL2007", target="sm_80", configs=BY_HAND)
def barrier_before_the_wait(ok):
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[tx * 4]), 4)
            T.ptx_commit_group()
            if not ok:
                T.sync_threads()
            T.ptx_wait_group(0)
            if ok:
                T.sync_threads()
            for j in T.serial(4):
                B[tx * 4 + j] = s[511 - tx * 4 - j]  # BUG

    return main


@early("TL2007", "TL2003", target="sm_80", configs=BY_HAND)
def prefetched_before_the_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 512), "float32"), B: T.Tensor((8, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 512), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[0, tx * 4], "w"), T.access_ptr(A[0, tx * 4]), 4)
            T.ptx_commit_group()
            for k in T.serial(8):
                if ok:
                    T.ptx_wait_group(0)
                    T.sync_threads()
                if k < 7:
                    T.ptx_cp_async(  # BUG
                        T.access_ptr(s[(k + 1) % 2, tx * 4], "w"), T.access_ptr(A[k + 1, tx * 4]), 4
                    )
                T.ptx_commit_group()
                if not ok:
                    T.ptx_wait_group(1)
                    T.sync_threads()
                for j in T.serial(4):
                    B[k, tx + j * 128] = s[k % 2, 511 - tx - j * 128]

    return main


@read("TL2001", target="sm_80", configs=UNGUARDED)
def copied_past_the_tail(ok):
    @T.prim_func
    def main(A: T.Tensor((1000,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            if ok:
                T.ptx_cp_async(
                    T.access_ptr(s[tx * 4], "w"),
                    T.access_ptr(A[bx * 512 + tx * 4]),
                    4,
                    bx * 512 + tx * 4 < 1000,
                )
            else:
                T.ptx_cp_async(  # BUG
                    T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[bx * 512 + tx * 4]), 4
                )
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for j in T.serial(4):
                B[bx * 512 + tx * 4 + j] = s[tx * 4 + j]

    return main


@missing("TL2003", target="sm_80")
def product_of_a_tile_on_its_way(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.async_copy(A, a)
            T.clear(c)
            if ok:
                T.ptx_wait_group(0)
            T.gemm(a, a, c)  # BUG
            T.ptx_wait_group(0)
            T.copy(c, C)

    return main
