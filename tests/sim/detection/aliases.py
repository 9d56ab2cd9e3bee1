"""Races through other names of the same bytes, and lanes that masks name."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect
from tilelab.layout import make_swizzled_layout

SHARED: list[Entry] = []
STUCK: list[Entry] = []
shared, stuck = collect(SHARED), collect(STUCK)


@shared("TL2007", configs=BY_HAND)
def rows_by_one_name_columns_by_another(ok):
    @T.prim_func
    def main(A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            flat = T.reshape(s, (4096,))
            tx = T.get_thread_binding()
            for i in T.serial(32):
                s[i * 2 + tx // 64, tx % 64] = A[i * 128 + tx]
            if ok:
                T.sync_threads()
            for i in T.serial(32):
                B[tx * 32 + i] = flat[tx * 32 + i]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def through_a_swizzled_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64, 64), "float16")
            T.annotate_layout({s: make_swizzled_layout(s)})
            tx = T.get_thread_binding()
            for i in T.serial(64):
                s[i, tx] = A[i, tx]
            if ok:
                T.sync_threads()
            for i in T.serial(64):
                B[i, tx] = s[tx, i]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def words_of_half_words(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float16"), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float16")
            w = T.view(s, (64,), dtype="uint32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if ok:
                T.sync_threads()
            if tx < 64:
                B[tx] = w[tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def bytes_beside_words(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "uint8"), B: T.Tensor((32,), "uint32")):
        with T.Kernel(1, threads=128):
            w = T.alloc_shared((32,), "uint32")
            s = T.view(w, (128,), dtype="uint8")
            tx = T.get_thread_binding()
            if tx < 32:
                w[tx] = 0
            if ok:
                T.sync_threads()
            s[tx] = A[tx]  # BUG
            T.sync_threads()
            if tx < 32:
                B[tx] = w[tx]

    return main


@shared("TL2007", configs=BY_HAND)
def one_warp_adds_without_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((16,), "int32")
            tx = T.get_thread_binding()
            if tx < 16:
                s[tx] = 0
            T.sync_threads()
            if tx < 112 or ok:
                T.atomic_add(s[A[tx] % 16], 1)  # BUG
            else:
                s[tx - 112] = s[tx - 112] + 1  # BUG
            T.sync_threads()
            if tx < 16:
                B[tx] = s[tx]

    return main


@stuck("TL2009")
def whole_mask_in_half_a_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            tx = T.get_thread_binding()
            if tx < 16:
                s[tx] = A[tx]
                T.sync_warp(0xFFFF if ok else 0xFFFFFFFF)  # BUG
                B[tx] = s[15 - tx]

    return main


@stuck("TL2009")
def shuffle_with_a_mask_of_others(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[tx] = 0
            if tx < 16:
                if ok:
                    B[tx] = T.shfl_xor(A[tx], 1, 32, 0xFFFF)
                else:
                    B[tx] = T.shfl_xor(A[tx], 1, 32, 0xFF)  # BUG

    return main


@stuck("TL2009", "TL2002")
def shuffle_from_a_lane_that_is_not_there(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[tx] = 0
            if tx < 16:
                if ok:
                    B[tx] = T.shfl_xor(A[tx], 8, 32, 0xFFFF)
                else:
                    B[tx] = T.shfl_xor(A[tx], 16, 32, 0xFFFF)  # BUG

    return main


@shared("TL2007", target="sm_80", configs=BY_HAND)
def product_without_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(32):
                a[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64]
            T.clear(c)
            if ok:
                T.sync_threads()
            T.gemm(a, a, c)  # BUG
            T.copy(c, C)

    return main


@stuck("TL2009", configs=BY_HAND)
def a_side_of_a_branch_does_not_come(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as bx:
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            if (A[bx, tx] + bx) % 3 != 1:
                s[tx] = A[bx, tx]
                T.sync_warp()  # BUG
                B[bx, tx] = s[tx // 32 * 32 + 31 - tx % 32]
            else:
                s[tx] = 2 * A[bx, tx]
                if ok:
                    T.sync_warp()
                else:
                    T.sync_warp(T.ballot_sync(A[bx, tx] % 3 != 1, T.activemask()))  # BUG
                B[bx, tx] = s[tx // 32 * 32 + 31 - tx % 32]

    return main


@stuck("TL2009", configs=BY_HAND)
def halves_of_a_warp_hand_over_in_loops(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16,), "int32")
            n = T.alloc_var("int32", init=0)
            tx = T.get_thread_binding()
            if tx < 16:
                for k in T.serial(4):
                    s[tx] = A[tx] + k
                    T.sync_warp()  # BUG
                    T.sync_warp()  # BUG
            else:
                for k in T.serial(4 if ok else 3):
                    T.sync_warp()
                    n += s[tx - 16]
                    T.sync_warp()
            B[tx] = n

    return main
