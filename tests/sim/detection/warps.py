"""Races inside one warp and in unlike styles: lanes without T.sync_warp, atomics beside plain
accesses, roles, buffers that serve twice."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

SHARED: list[Entry] = []
shared = collect(SHARED)


@shared("TL2007", configs=BY_HAND)
def lanes_of_one_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if ok:
                T.sync_warp()
            B[tx] = s[31 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND, target="sm_80")
def tail_of_a_reduction_without_sync_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads()
            if tx < 32:
                for k in T.serial(6):
                    if tx < (32 >> k):
                        s[tx] = s[tx] + s[tx + (32 >> k)]  # BUG
                    if ok:
                        T.sync_warp()
            if tx == 0:
                B[0] = s[0]

    return main


@shared("TL2007", configs=BY_HAND)
def lane_overwrites_what_its_neighbour_reads(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_warp()
            left = T.alloc_var("int32", init=0)
            left = s[(tx + 31) % 32]
            if ok:
                T.sync_warp()
            s[tx] = left + 1  # BUG
            B[tx] = s[tx]

    return main


@shared("TL2007", configs=BY_HAND)
def one_lane_fills_for_its_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4,), "int32")
            tx = T.get_thread_binding()
            if tx % 32 == 0:
                s[tx // 32] = A[tx // 32]
            if ok:
                T.sync_warp()
            B[tx] = s[tx // 32]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def atomic_beside_a_plain_read(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((1,), "int32")
            tx = T.get_thread_binding()
            if tx == 0:
                s[0] = 0
            T.sync_threads()
            T.atomic_add(s[0], A[tx])
            if ok:
                T.sync_threads()
            B[tx] = s[0]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def cleared_beside_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((8,), "int32")
            tx = T.get_thread_binding()
            if tx >= 120:
                s[tx - 120] = 0
            if ok:
                T.sync_threads()
            T.atomic_add(s[A[tx] % 8], 1)  # BUG
            T.sync_threads()
            if tx < 8:
                B[tx] = s[tx]

    return main


@shared("TL2007", configs=BY_HAND)
def warp_partials_without_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4,), "float32")
            tx = T.get_thread_binding()
            part = T.warp_reduce_sum(A[tx])
            if tx % 32 == 0:
                s[tx // 32] = part
            if ok:
                T.sync_threads()
            if tx == 0:
                B[0] = s[0] + s[1] + s[2] + s[3]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def partials_of_two_reductions_share_a_buffer(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 128), "float32"), B: T.Tensor((2, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4,), "float32")
            tx = T.get_thread_binding()
            for r in T.serial(2):
                part = T.warp_reduce_max(A[r, tx])
                if tx % 32 == 0:
                    s[tx // 32] = part + r  # BUG
                T.sync_threads()
                B[r, tx] = T.max(T.max(s[0], s[1]), T.max(s[2], s[3]))
                if ok:
                    T.sync_threads()

    return main


@shared("TL2007", configs=BY_HAND)
def two_slots_for_three_steps(ok):
    depth = 3 if ok else 2

    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), B: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((depth, 64), "float32")
            tx = T.get_thread_binding()
            s[0, tx] = A[0, tx]
            s[1, tx] = A[1, tx]
            for k in T.serial(6):
                T.sync_threads()
                B[k, tx] = s[k % depth, 63 - tx]
                if k < 4:
                    s[(k + 2) % depth, tx] = A[k + 2, tx]  # BUG

    return main


@shared("TL2007")
def roles_swap_halves(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "float32")
            done = T.alloc_barrier([128, 128])
            tx = T.get_thread_binding()
            with T.ws(0):
                s[tx] = A[tx]
                T.mbarrier_arrive(done[0])
                T.mbarrier_wait_parity(done[1], 0)
                B[tx] = s[255 - tx]  # BUG
            with T.ws(1):
                if not ok:
                    T.mbarrier_arrive(done[1])
                s[tx] = A[tx]  # BUG
                if ok:
                    T.mbarrier_arrive(done[1])
                T.mbarrier_wait_parity(done[0], 0)
                B[tx] = s[255 - tx]

    return main


@shared("TL2007", configs=BY_HAND)
def transposed_by_two_dimensional_threads(ok):
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=(16, 16)):
            s = T.alloc_shared((16, 17), "float32")
            x, y = T.get_thread_binding(0), T.get_thread_binding(1)
            s[y, x] = A[y, x]
            if ok:
                T.sync_threads()
            B[y, x] = s[x, y]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def barrier_before_instead_of_after(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 128), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "int32")
            tx = T.get_thread_binding()
            k = T.alloc_var("int32", init=0)
            while k < 4:
                T.sync_threads()
                s[tx] = A[k, tx]
                if ok:
                    T.sync_threads()
                B[k, tx] = s[(tx + 32) % 128]  # BUG
                k = k + 1

    return main


@shared("TL2007", configs=BY_HAND)
def flag_polled_without_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            seen = T.alloc_shared((1,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx == 0:
                seen[0] = 1
            if ok:
                T.sync_threads()
            if seen[0] == 1:  # BUG
                B[tx] = s[63 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def every_thread_its_own_value(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16,), "int32")
            tx = T.get_thread_binding()
            s[tx % 16] = A[tx % 16] if ok else A[tx]  # BUG
            T.sync_warp()
            B[tx] = s[tx % 16]

    return main


@shared("TL2007", configs=BY_HAND)
def half_the_warp_syncs(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx < 16 or ok:
                T.sync_warp(0xFFFFFFFF if ok else 0xFFFF)
            B[tx] = s[31 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def one_block_of_many_skips_its_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(8, threads=64) as bx:
            s = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[bx, tx]
            if bx != 5 or ok:
                T.sync_threads()
            B[bx, tx] = s[63 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def barrier_by_the_data_of_a_block(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as bx:
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            for k in T.serial(2):
                s[tx] = A[bx, tx] + k  # BUG
                T.sync_threads()
                B[bx, tx] = s[63 - tx]
                if A[bx, 0] != 31 or ok:
                    T.sync_threads()

    return main


@shared("TL2007", configs=BY_HAND)
def a_view_of_the_same_bytes(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            v = T.view(s, (2, 64))
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if ok:
                T.sync_threads()
            B[tx] = v[1 - tx // 64, tx % 64]  # BUG

    return main


@shared("TL2007", configs=BY_HAND, target="sm_80")
def vector_reads_of_neighbours(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 4), "float32")
            tx = T.get_thread_binding()
            for j in T.vectorized(4):
                s[tx, j] = A[tx, j]
            if ok:
                T.sync_threads()
            for j in T.vectorized(4):
                B[tx, j] = s[tx ^ 1, j]  # BUG

    return main
