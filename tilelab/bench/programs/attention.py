"""Attention forward with an online softmax, in TileLang's lazy style; whole rows per warp."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET
from tilelab.bench.programs.online_softmax import online_softmax


def attention(batch, heads, seq, dim, causal=False, tile_m=128, tile_n=128, stages=2, threads=256):
    """Out = softmax(Q K^T / sqrt(dim)) V for (batch, seq, heads, dim) float16 tensors."""
    shape, dtype = (batch, seq, heads, dim), "float16"
    scale = dim**-0.5 * 1.4426950408889634  # exp2 takes the place of exp
    by_rows = T.GemmWarpPolicy.FullRow
    step = online_softmax(tile_m, tile_n, dim, scale)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq, tile_m), heads, batch, threads=threads) as (rows, h, b):
            q_tile = T.alloc_shared((tile_m, dim), dtype)
            k_tile = T.alloc_shared((tile_n, dim), dtype)
            v_tile = T.alloc_shared((tile_n, dim), dtype)
            score = T.alloc_fragment((tile_m, tile_n), "float")
            weight = T.alloc_fragment((tile_m, tile_n), dtype)
            acc = T.alloc_fragment((tile_m, dim), "float")
            top = T.alloc_fragment((tile_m,), "float")
            before = T.alloc_fragment((tile_m,), "float")
            fade = T.alloc_fragment((tile_m,), "float")
            total = T.alloc_fragment((tile_m,), "float")
            T.copy(Q[b, rows * tile_m : (rows + 1) * tile_m, h, :], q_tile)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float"))
            columns = T.ceildiv((rows + 1) * tile_m, tile_n) if causal else T.ceildiv(seq, tile_n)
            for n in T.Pipelined(columns, num_stages=stages):
                T.copy(K[b, n * tile_n : (n + 1) * tile_n, h, :], k_tile)
                if causal:
                    for i, j in T.Parallel(tile_m, tile_n):
                        seen = rows * tile_m + i >= n * tile_n + j
                        score[i, j] = T.if_then_else(seen, 0, -T.infinity("float"))
                else:
                    T.clear(score)
                T.gemm(q_tile, k_tile, score, transpose_B=True, policy=by_rows)
                T.copy(V[b, n * tile_n : (n + 1) * tile_n, h, :], v_tile)
                step(score, acc, top, before, fade, total)
                T.copy(score, weight)
                T.gemm(weight, v_tile, acc, policy=by_rows)
            for i, j in T.Parallel(tile_m, dim):
                acc[i, j] /= total[i]
            T.copy(acc, Out[b, rows * tile_m : (rows + 1) * tile_m, h, :])

    return main


def build(*sizes, target=TARGET, pass_configs=None, **config):
    """The compiled kernel; its output is allocated and returned by a call."""
    program = attention(*sizes, **config)
    return tilelang.compile(program, out_idx=[3], target=target, pass_configs=pass_configs)
