"""Races: between threads of a block in shared memory, and between blocks in global memory."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

SHARED: list[Entry] = []
GLOBAL: list[Entry] = []
shared, blocks = collect(SHARED), collect(GLOBAL)


@shared("TL2007", configs=BY_HAND)
def reversed_without_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if ok:
                T.sync_threads()
            B[tx] = s[127 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND, target="sm_80")
def tree_reduction(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads()
            for k in T.serial(8):
                if tx < (128 >> k):
                    s[tx] = s[tx] + s[tx + (128 >> k)]  # BUG
                if ok:
                    T.sync_threads()
            if tx == 0:
                B[0] = s[0]

    return main


@shared("TL2007", configs=BY_HAND)
def stencil_updated_in_place(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads()
            for _ in T.serial(3):
                left = s[(tx + 127) % 128]  # BUG
                if ok:
                    T.sync_threads()
                s[tx] = left  # BUG
                if ok:
                    T.sync_threads()
            B[tx] = s[tx]

    return main


@shared("TL2007", configs=BY_HAND)
def tile_reused_by_the_next_iteration(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((8, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(8):
                s[tx] = A[k, tx]  # BUG
                T.sync_threads()
                B[k, tx] = s[127 - tx]
                if ok:
                    T.sync_threads()

    return main


@shared("TL2007")
def two_roles_without_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                s[tx] = A[tx]
                T.mbarrier_arrive(bar)
            with T.ws(1):
                if ok:
                    T.mbarrier_wait_parity(bar, 0)
                B[tx - 128] = s[tx - 128]  # BUG

    return main


@shared("TL2007", target="sm_80")
def one_winner_for_all(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((1,), "int32")
            tx = T.get_thread_binding()
            if A[tx] == 50 if ok else A[tx] < 3:
                s[0] = tx  # BUG
            T.sync_threads()
            if tx == 0:
                B[0] = s[0]

    return main


@shared("TL2007", configs=BY_HAND)
def counter_without_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4,), "int32")
            tx = T.get_thread_binding()
            if tx < 4:
                s[tx] = 0
            T.sync_threads()
            if ok:
                T.atomic_add(s[A[tx] % 4], 1)
            else:
                s[A[tx] % 4] = s[A[tx] % 4] + 1  # BUG
            T.sync_threads()
            if tx < 4:
                B[tx] = s[tx]

    return main


@shared("TL2007", configs=BY_HAND, target="sm_80")
def scan_in_one_buffer(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads()
            for k in T.serial(7):
                v = T.alloc_var("int32", init=0)
                if tx >= (1 << k):
                    v = s[tx - (1 << k)]  # BUG
                if ok:
                    T.sync_threads()
                s[tx] = s[tx] + v  # BUG
                T.sync_threads()
            B[tx] = s[tx]

    return main


@shared("TL2007")
def named_barrier_of_too_few(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            if tx < 128:
                s[tx] = A[tx]
                if ok:
                    T.sync_threads(1, 256)
                else:
                    T.sync_threads(1, 128)
            else:
                if ok:
                    T.sync_threads(1, 256)
                else:
                    T.sync_threads(2, 128)
                B[tx - 128] = s[tx - 128]  # BUG

    return main


# ---- between blocks ----------------------------------------------------------------------------


@blocks("TL2007")
def every_block_writes_one_element(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                B[bx if ok else 0] = A[bx, 0]  # BUG

    return main


@blocks("TL2007", target="sm_80")
def sum_without_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            if ok:
                T.atomic_add(B[tx], A[bx, tx])
            else:
                B[tx] = B[tx] + A[bx, tx]  # BUG

    return main


@blocks("TL2007")
def overlapping_tiles(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            f = T.alloc_fragment((64,), "float32")
            T.copy(A[bx, 0], f)
            T.copy(f, B[bx * (64 if ok else 60)])  # BUG

    return main


@blocks("TL2007")
def halo_from_the_output(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            i = bx * 64 + tx
            right = (A if ok else B)[(i + 1) % 256]  # BUG
            B[i] = right + 1.0  # BUG

    return main


@blocks("TL2007", target="sm_80")
def split_k_without_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(2, threads=128) as bk:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A[0, bk * 32], a)
            T.copy(B[bk * 32, 0], b)
            T.gemm(a, b, c)
            if ok:
                T.atomic_add(C, c)
            else:
                T.copy(c, C)  # BUG

    return main


@blocks("TL2007")
def in_place_transpose(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            s = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], s)  # BUG
            for i, j in T.Parallel(32, 32):
                if ok:
                    B[bx * 32 + i, by * 32 + j] = s[j, i]
                else:
                    A[bx * 32 + i, by * 32 + j] = s[j, i]  # BUG

    return main


@blocks("TL2007")
def flag_read_by_others(ok):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            if bx == 0:
                if tx == 0 and not ok:
                    A[0] = 7  # BUG
            else:
                if tx == 0:
                    B[bx] = A[0]  # BUG

    return main


@blocks("TL2007")
def tma_stores_onto_each_other(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A[bx, 0, 0], s)
            T.copy(s, B[bx * (64 if ok else 32), 0])  # BUG

    return main


@blocks("TL2007", target="sm_80")
def last_block_by_a_plain_counter(ok):
    @T.prim_func
    def main(N: T.Tensor((1,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                if ok:
                    B[bx] = T.atomic_add(N[0], 1, return_prev=True)
                else:
                    B[bx] = N[0]  # BUG
                    N[0] = N[0] + 1  # BUG

    return main
