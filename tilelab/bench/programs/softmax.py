"""Softmax of rows, one block a row, the row read once and kept in registers."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET


def softmax(M, N, threads=256, dtype="float16"):
    """Y = softmax(X) by rows, computed in float32."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as row:
            x = T.alloc_fragment((1, N), dtype)
            weight = T.alloc_fragment((1, N), "float32")
            top = T.alloc_fragment((1,), dtype)
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[row, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(1, N):
                weight[i, j] = T.exp2(
                    (T.cast(x[i, j], "float32") - T.cast(top[i], "float32")) * 1.4426950408889634
                )
            T.reduce_sum(weight, total, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = weight[i, j] / total[i]
            T.copy(x, Y[row, 0])

    return main


def build(*sizes, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    return tilelang.compile(softmax(*sizes, **config), out_idx=[1], target=TARGET)
