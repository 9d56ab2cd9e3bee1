"""Attention of one new token a sequence: the keys split over blocks, a second kernel joins them."""

import tilelang  # pyright: ignore[reportMissingImports]
import tilelang.language as T  # pyright: ignore[reportMissingImports]

from tilelab.bench.programs import TARGET
from tilelab.bench.programs.online_softmax import online_softmax


def split(batch, heads, kv_heads, seq, dim, splits, tile_n=64, stages=4, threads=128):
    """P[b, h, s] = softmax(q K_s^T / sqrt(dim)) V_s for part s of the keys, and in L the logarithm
    (base 2) of its weight. `heads // kv_heads` query heads share a head of K and V; they fill a
    tile of 64 rows in part."""
    dtype, tile_h = "float16", 64
    share, length = heads // kv_heads, seq // splits
    scale = dim**-0.5 * 1.4426950408889634
    by_rows = T.GemmWarpPolicy.FullRow
    step = online_softmax(tile_h, tile_n, dim, scale)

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype),
        K: T.Tensor((batch, seq, kv_heads, dim), dtype),
        V: T.Tensor((batch, seq, kv_heads, dim), dtype),
        P: T.Tensor((batch, heads, splits, dim), "float32"),
        L: T.Tensor((batch, heads, splits), "float32"),
    ):
        with T.Kernel(splits, kv_heads, batch, threads=threads) as (s, h, b):
            q_tile = T.alloc_shared((tile_h, dim), dtype)
            k_tile = T.alloc_shared((tile_n, dim), dtype)
            v_tile = T.alloc_shared((tile_n, dim), dtype)
            score = T.alloc_fragment((tile_h, tile_n), "float32")
            weight = T.alloc_fragment((tile_h, tile_n), dtype)
            acc = T.alloc_fragment((tile_h, dim), "float32")
            top = T.alloc_fragment((tile_h,), "float32")
            before = T.alloc_fragment((tile_h,), "float32")
            fade = T.alloc_fragment((tile_h,), "float32")
            total = T.alloc_fragment((tile_h,), "float32")
            T.copy(Q[b, h * share : h * share + tile_h, :], q_tile)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            for n in T.Pipelined(length // tile_n, num_stages=stages):
                first = s * length + n * tile_n
                T.copy(K[b, first : first + tile_n, h, :], k_tile)
                T.clear(score)
                T.gemm(q_tile, k_tile, score, transpose_B=True, policy=by_rows)
                T.copy(V[b, first : first + tile_n, h, :], v_tile)
                step(score, acc, top, before, fade, total)
                T.copy(score, weight)
                T.gemm(weight, v_tile, acc, policy=by_rows)
            for i, j in T.Parallel(tile_h, dim):
                if i < share:
                    P[b, h * share + i, s, j] = acc[i, j] / total[i]
            for i in T.Parallel(tile_h):
                if i < share:
                    L[b, h * share + i, s] = T.log2(total[i]) + top[i] * scale

    return main


def join(batch, heads, dim, splits):
    """Out[b, h] = the parts' results by their weights."""

    @T.prim_func
    def main(
        P: T.Tensor((batch, heads, splits, dim), "float32"),
        L: T.Tensor((batch, heads, splits), "float32"),
        Out: T.Tensor((batch, heads, dim), "float16"),
    ):
        with T.Kernel(heads, batch, threads=dim) as (h, b):
            out = T.alloc_fragment((dim,), "float32")
            best = T.alloc_local((1,), "float32")
            mass = T.alloc_local((1,), "float32")
            best[0] = -T.infinity("float32")
            for s in T.serial(splits):
                best[0] = T.max(best[0], L[b, h, s])
            mass[0] = 0.0
            T.clear(out)
            for s in T.serial(splits):
                mass[0] = mass[0] + T.exp2(L[b, h, s] - best[0])
                for j in T.Parallel(dim):
                    out[j] += P[b, h, s, j] * T.exp2(L[b, h, s] - best[0])
            for j in T.Parallel(dim):
                Out[b, h, j] = out[j] / mass[0]

    return main


def build(*sizes, **config):
    """Both kernels as one call of (Q, K, V), which allocates what is between them."""
    batch, heads, _, _, dim, splits = sizes
    parts = tilelang.compile(split(*sizes, **config), out_idx=[3, 4], target=TARGET)
    joined = tilelang.compile(join(batch, heads, dim, splits), out_idx=[2], target=TARGET)
    return lambda q, k, v: joined(*parts(q, k, v))
