"""GEMM with 4-bit weights, two in a byte, one scale for each group along K."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET


def dequant_gemm(
    M, N, K, group=128, tile_m=128, tile_n=128, tile_k=64, stages=3, threads=256, dtype="float16"
):  # fmt: skip
    """C = A @ W^T with W[n, k] = (nibble(n, k) - 8) * S[k // group, n]; low nibble first."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        Q: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor((K // group, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, tile_n), T.ceildiv(M, tile_m), threads=threads) as (col, row):
            a_tile = T.alloc_shared((tile_m, tile_k), dtype)
            q_tile = T.alloc_shared((tile_n, tile_k // 2), "uint8")
            q_local = T.alloc_fragment((tile_n, tile_k // 2), "uint8")
            s_tile = T.alloc_shared((tile_n,), dtype)
            w_local = T.alloc_fragment((tile_n, tile_k), dtype)
            w_tile = T.alloc_shared((tile_n, tile_k), dtype)
            acc = T.alloc_fragment((tile_m, tile_n), "float")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, tile_k), num_stages=stages):
                T.copy(A[row * tile_m, k * tile_k], a_tile)
                T.copy(Q[col * tile_n, k * tile_k // 2], q_tile)
                T.copy(S[k * tile_k // group, col * tile_n], s_tile)
                T.copy(q_tile, q_local)
                for i, j in T.Parallel(tile_n, tile_k):
                    shift = T.cast(j % 2 * 4, "uint8")
                    code = T.cast((q_local[i, j // 2] >> shift) & T.cast(15, "uint8"), "int32") - 8
                    w_local[i, j] = T.cast(code, dtype) * s_tile[i]
                T.copy(w_local, w_tile)
                T.gemm(a_tile, w_tile, acc, transpose_B=True)
            T.copy(acc, C[row * tile_m, col * tile_n])

    return main


def build(*sizes, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    return tilelang.compile(dequant_gemm(*sizes, **config), out_idx=[3], target=TARGET)
