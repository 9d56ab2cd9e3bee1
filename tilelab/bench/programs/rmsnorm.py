"""RMSNorm of rows, one block a row, the row kept in registers."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET


def rmsnorm(M, N, threads=256, dtype="float16"):
    """Y = X / sqrt(mean(X^2) + 1e-6) by rows."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as row:
            x = T.alloc_fragment((1, N), dtype)
            square = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[row, 0], x)
            for i, j in T.Parallel(1, N):
                square[i, j] = T.cast(x[i, j], "float32") * T.cast(x[i, j], "float32")
            T.reduce_sum(square, total, dim=1)
            for i in T.Parallel(1):
                total[i] = T.rsqrt(total[i] / N + 1e-6)
            for i, j in T.Parallel(1, N):
                x[i, j] = T.cast(x[i, j], "float32") * total[i]
            T.copy(x, Y[row, 0])

    return main


def build(*sizes, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    return tilelang.compile(rmsnorm(*sizes, **config), out_idx=[1], target=TARGET)
