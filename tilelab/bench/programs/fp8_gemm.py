"""GEMM of 8-bit floats (e4m3), B transposed, bfloat16 out; one or two levels of accumulation."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET

FP8 = "float8_e4m3fn"


def fp8_gemm(
    M, N, K, tile_m=128, tile_n=256, tile_k=128, stages=4, threads=256, two_levels=False
):  # fmt: skip
    """C = A @ B^T. `two_levels`: the tensor cores add up one tile of K only, and the sums are
    added in float32 by ordinary instructions, which keeps more bits."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), FP8), B: T.Tensor((N, K), FP8), C: T.Tensor((M, N), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, tile_n), T.ceildiv(M, tile_m), threads=threads) as (col, row):
            a_tile = T.alloc_shared((tile_m, tile_k), FP8)
            b_tile = T.alloc_shared((tile_n, tile_k), FP8)
            part = T.alloc_fragment((tile_m, tile_n), "float")
            acc = T.alloc_fragment((tile_m, tile_n), "float")
            T.clear(part)
            if two_levels:
                T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, tile_k), num_stages=stages):
                T.copy(A[row * tile_m, k * tile_k], a_tile)
                T.copy(B[col * tile_n, k * tile_k], b_tile)
                T.gemm(a_tile, b_tile, part, transpose_B=True)
                if two_levels:
                    for i, j in T.Parallel(tile_m, tile_n):
                        acc[i, j] += part[i, j]
                    T.clear(part)
            if two_levels:
                T.copy(acc, C[row * tile_m, col * tile_n])
            else:
                T.copy(part, C[row * tile_m, col * tile_n])

    return main


def build(*sizes, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    return tilelang.compile(fp8_gemm(*sizes, **config), out_idx=[2], target=TARGET)
