"""Reads of memory that nobody wrote."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

READS: list[Entry] = []
bug = collect(READS)


@bug("TL2002")
def accumulator_not_cleared(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_local((2,), "float32")
            tx = T.get_thread_binding()
            T.copy(A, s)
            if ok:
                c[0] = 0.0
            for k in T.serial(64):
                c[0] += T.cast(s[tx % 64, k], "float32")  # BUG
            C[tx % 64, tx // 64] = c[0]

    return main


@bug("TL2002", target="sm_80")
def halo_not_filled(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((66,), "float32")
            tx = T.get_thread_binding()
            s[tx + 1] = A[tx]
            if tx == 0 and ok:
                s[0] = 0.0
                s[65] = 0.0
            B[tx] = s[tx] + s[tx + 2]  # BUG

    return main


@bug("TL2002")
def variable_set_in_one_branch(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_local((1,), "int32")
            tx = T.get_thread_binding()
            if A[tx] > 10:
                x[0] = 1
            else:
                if ok:
                    x[0] = 0
            B[tx] = x[0]  # BUG

    return main


@bug("TL2002")
def half_a_shared_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            for i, j in T.Parallel(64 if ok else 32, 64):
                s[i, j] = A[i, j]
            T.copy(s, B)  # BUG

    return main


@bug("TL2002", target="sm_80")
def fragment_read_first(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((128,), "float32")
            if ok:
                T.copy(A, f)
            T.copy(f, B)  # BUG

    return main


@bug("TL2002", out_idx=[1])
def output_read_before_written(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if ok:
                B[tx] = 0.0
            for k in T.serial(4):
                B[tx] = B[tx] + A[(tx + k) % 64]  # BUG

    return main


@bug("TL2002", out_idx=[1], target="sm_80")
def output_of_a_reduction(ok):
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            acc = T.alloc_var("float32", init=0.0)
            if not ok:
                acc = B[tx]  # BUG
            for k in T.serial(64):
                acc += A[tx, k]
            B[tx] = acc

    return main


@bug("TL2002")
def workspace_not_written(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        W = T.alloc_global((128,), "float32")
        with T.Kernel(2 if ok else 1, threads=64) as bx:
            tx = T.get_thread_binding()
            W[bx * 64 + tx] = A[bx * 64 + tx]
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            B[bx * 64 + tx] = W[bx * 64 + 63 - tx]  # BUG

    return main


@bug("TL2002")
def running_maximum(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(32):
                if k == 0 and ok:
                    s[tx] = A[tx, 0]
                else:
                    s[tx] = T.max(s[tx], A[tx, k])  # BUG
            B[tx] = s[tx]

    return main


@bug("TL2002")
def atomics_on_fresh_shared(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((8,), "int32")
            tx = T.get_thread_binding()
            if ok:
                T.clear(s)
            T.atomic_add(s[A[tx] % 8], 1)  # BUG
            if tx < 8:
                B[tx] = s[tx]

    return main


@bug("TL2002", target="sm_80")
def gemm_accumulates_onto_nothing(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            if bx == (0 if ok else 1):
                T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)  # BUG
            T.copy(c, C)

    return main
