"""A pipelined GEMM in TileLang's lazy style, compiled by whichever `tilelang` is installed."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET


def gemm(M, N, K, tile_m=128, tile_n=128, tile_k=64, stages=3, threads=128, dtype="float16"):
    """C = A @ B, row-major, float32 accumulation, output in the operands' type."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        grid = (T.ceildiv(N, tile_n), T.ceildiv(M, tile_m))
        with T.Kernel(*grid, threads=threads) as (col, row):
            a_tile = T.alloc_shared((tile_m, tile_k), dtype)
            b_tile = T.alloc_shared((tile_k, tile_n), dtype)
            acc = T.alloc_fragment((tile_m, tile_n), "float")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, tile_k), num_stages=stages):
                T.copy(A[row * tile_m, k * tile_k], a_tile)
                T.copy(B[k * tile_k, col * tile_n], b_tile)
                T.gemm(a_tile, b_tile, acc)
            T.copy(acc, C[row * tile_m, col * tile_n])

    return main


def build(*sizes, target=TARGET, pass_configs=None, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    program = gemm(*sizes, **config)
    return tilelang.compile(program, out_idx=[2], target=target, pass_configs=pass_configs)
