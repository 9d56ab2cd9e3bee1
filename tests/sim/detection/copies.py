"""Copies and products that are not waited for, in unlike styles."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

ASYNC: list[Entry] = []
missing = collect(ASYNC)


@missing("TL2003")
def product_read_in_flight(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c, wg_wait=0 if ok else -1)
            for i, j in T.Parallel(64, 64):
                c[i, j] = c[i, j] * 2.0  # BUG
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


@missing("TL2003")
def one_product_too_many_left(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((2, 64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            T.clear(d)
            T.gemm(a, a, c, wg_wait=-1)
            T.gemm(a, a, d, wg_wait=-1)
            T.wait_wgmma(1)
            T.copy(c if ok else d, C[0, 0, 0])  # BUG
            T.wait_wgmma(0)
            T.copy(d if ok else c, C[1, 0, 0])

    return main


@missing("TL2003", "TL2007")
def operand_overwritten_by_threads(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c, wg_wait=-1)
            if ok:
                T.wait_wgmma(0)
            T.sync_threads()
            T.clear(a)  # BUG
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


@missing("TL2003", "TL2007")
def operand_refilled_by_tma(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(128)
            T.clear(c)
            for k in T.serial(2):
                T.tma_copy(A[k, 0, 0], a, barrier=bar)  # BUG
                T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k)
                T.gemm(a, a, c, wg_wait=-1)
                if ok:
                    T.wait_wgmma(0)
                T.sync_threads()
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


@missing("TL2003", target="sm_80")
def groups_counted_off_by_one_in_a_prologue(ok):
    depth = 3

    @T.prim_func
    def main(A: T.Tensor((8, 512), "float32"), B: T.Tensor((8, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((depth, 512), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(depth - 1):
                T.ptx_cp_async(T.access_ptr(s[k, tx * 4], "w"), T.access_ptr(A[k, tx * 4]), 4)
                T.ptx_commit_group()
            for k in T.serial(8):
                T.ptx_wait_group(depth - 2 if ok else depth - 1)
                T.sync_threads()
                for j in T.serial(4):
                    B[k, tx + j * 128] = s[k % depth, 511 - tx - j * 128]  # BUG
                if k + depth - 1 < 8:
                    T.ptx_cp_async(
                        T.access_ptr(s[(k + depth - 1) % depth, tx * 4], "w"),
                        T.access_ptr(A[k + depth - 1, tx * 4]),
                        4,
                    )
                T.ptx_commit_group()

    return main


@missing("TL2003", target="sm_80")
def last_groups_never_drained(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 512), "float32"), B: T.Tensor((4, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4, 512), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(4):
                T.ptx_cp_async(T.access_ptr(s[k, tx * 4], "w"), T.access_ptr(A[k, tx * 4]), 4)
                T.ptx_commit_group()
            for k in T.serial(4):
                if k == 3 and ok:
                    T.ptx_wait_group(0)
                else:
                    T.ptx_wait_group(1)
                T.sync_threads()
                for j in T.serial(4):
                    B[k, tx * 4 + j] = s[k, 511 - tx * 4 - j]  # BUG

    return main


@missing("TL2003", "TL2007", target="sm_80", configs=BY_HAND)
def own_wait_but_no_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[tx * 4]), 4)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            if ok:
                T.sync_threads()
            for j in T.serial(4):
                B[tx * 4 + j] = s[511 - tx * 4 - j]  # BUG

    return main


@missing("TL2003", target="sm_80")
def read_where_the_copy_was_skipped_the_wait(ok):
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[tx * 4]), 4)
            T.ptx_commit_group()
            if bx == 0 or ok:
                T.ptx_wait_group(0)
            T.sync_threads()
            for j in T.serial(2):
                B[bx * 256 + tx * 2 + j] = s[511 - tx * 2 - j]  # BUG

    return main


@missing("TL2003")
def first_phase_waited_for_twice(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), B: T.Tensor((2, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            for k in T.serial(2):
                T.tma_copy(A[k, 0, 0], s, barrier=bar)
                T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k if ok else 0)
                for i in T.serial(32):
                    B[k, i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]  # BUG
                T.sync_threads()

    return main


@missing("TL2003", "TL2002")
def arrived_before_the_copy_was_issued(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(1):
                if ok:
                    T.tma_copy(A[0, 0], s, barrier=bar)
                T.barrier_arrive(bar)
                if not ok:
                    T.tma_copy(A[0, 0], s, barrier=bar)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                for i in T.serial(32):
                    B[i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]  # BUG

    return main


@missing("TL2003")
def only_one_role_waits_for_the_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((2, 64, 64), "float16")):
        with T.Kernel(1, threads=384):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(2):
                T.tma_copy(A[0, 0], s, barrier=bar)
                T.barrier_arrive(bar)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                for i in T.serial(32):
                    B[0, i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]
            with T.ws(1):
                if ok:
                    T.mbarrier_wait_parity(bar, 0)
                for i in T.serial(32):
                    B[1, i * 2 + tx // 64 - 2, tx % 64] = s[i * 2 + tx // 64 - 2, tx % 64]  # BUG

    return main


@missing("TL2003")
def kernel_ends_while_a_store_reads(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A, s)
            T.tma_copy(s, B)  # BUG
            if ok:
                T.tma_store_wait(0)

    return main


@missing("TL2003")
def operand_in_registers_rewritten(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            p = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(a, p)
            T.clear(c)
            T.gemm(p, a, c, wg_wait=0 if ok else -1)
            for i, j in T.Parallel(64, 64):
                p[i, j] = 0.0  # BUG
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


@missing("TL2003")
def another_thread_waits_for_the_store(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            tx = T.get_thread_binding()
            T.copy(A, s)
            T.tma_copy(s, B)
            if tx < 64 if ok else tx >= 64:
                T.tma_store_wait(0)
            T.sync_threads()
            for i, j in T.Parallel(64, 64):
                s[i, j] = 0.0  # BUG
            T.tma_store_wait(0)

    return main


@missing("TL2003", target="sm_80")
def half_of_the_copiers_wait(ok):
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[tx * 4]), 4)
            T.ptx_commit_group()
            if tx < (128 if ok else 64):
                T.ptx_wait_group(0)
            T.sync_threads()
            for j in T.serial(4):
                B[tx * 4 + j] = s[511 - tx * 4 - j]  # BUG

    return main


@missing("TL2003")
def one_block_forgets_to_wait(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            T.tma_copy(A[bx, 0, 0], s, barrier=bar)
            T.barrier_arrive(bar)
            if bx < (4 if ok else 3):
                T.mbarrier_wait_parity(bar, 0)
            for i in T.serial(32):
                B[bx, i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]  # BUG

    return main
