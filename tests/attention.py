"""Attention programs for tests: the plain forward pass, with the mask and sizes as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelab
import tilelab.language as T

Shape = tuple[int, int, int, int]  # batch, rows, heads, columns of a head


def flash_attention(
    shape: Shape, block_M: int = 64, block_N: int = 64, threads: int = 128, stages: int = 2,
    causal: bool = True,
) -> Any:  # fmt: skip
    """Softmax(Q K^T / sqrt(dim)) V with a running maximum, as a tile program."""
    (_, seq, heads, dim), scale = shape, shape[3] ** -0.5 * 1.44269504
    tensor = T.Tensor(shape, "float16")

    @T.prim_func
    def attention(Q: tensor, K: tensor, V: tensor, Out: tensor):
        with T.Kernel(T.ceildiv(seq, block_M), heads, shape[0], threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), "float16")
            K_shared = T.alloc_shared((block_N, dim), "float16")
            V_shared = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float")
            probs = T.alloc_fragment((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, dim), "float")
            per_row = [T.alloc_fragment((block_M,), "float") for _ in range(4)]
            row_max, row_sum, before, rescale = per_row
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(row_sum, 0)
            T.fill(row_max, -T.infinity("float"))
            last = (bx + 1) * block_M if causal else seq
            for ko in T.Pipelined(T.ceildiv(last, block_N), num_stages=stages):
                T.copy(K[bz, ko * block_N : (ko + 1) * block_N, by, :], K_shared)
                T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    column = ko * block_N + j
                    seen = bx * block_M + i >= column if causal else column < seq
                    scores[i, j] = T.if_then_else(seen, scores[i, j] * scale, -T.infinity("float"))
                T.copy(row_max, before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2(before[i] - row_max[i])
                for i, j in T.Parallel(block_M, block_N):
                    probs[i, j] = T.exp2(scores[i, j] - row_max[i])
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                for i in T.Parallel(block_M):
                    row_sum[i] *= rescale[i]
                T.reduce_sum(probs, row_sum, dim=1, clear=False)
                T.copy(V[bz, ko * block_N : (ko + 1) * block_N, by, :], V_shared)
                T.gemm(probs, V_shared, acc)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= row_sum[i]
            T.copy(acc, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return attention


def mask_first(shape: Shape, block_M: int, block_N: int, threads: int) -> Any:
    """Causal attention written another way: scores start as the mask, the scale stands at each
    use, and a row's sum has a tile of its own."""
    (_, seq, heads, dim), scale = shape, shape[3] ** -0.5 * 1.44269504
    tensor, low = T.Tensor(shape, "float16"), -T.infinity("float")

    @T.prim_func
    def attention(Q: tensor, K: tensor, V: tensor, Out: tensor):
        with T.Kernel(T.ceildiv(seq, block_M), heads, shape[0], threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), "float16")
            K_shared = T.alloc_shared((block_N, dim), "float16")
            V_shared = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float")
            probs = T.alloc_fragment((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, dim), "float")
            per_row = [T.alloc_fragment((block_M,), "float") for _ in range(5)]
            top, before, fade, part, total = per_row
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, low)
            for ko in T.Pipelined(T.ceildiv((bx + 1) * block_M, block_N), num_stages=2):
                T.copy(K[bz, ko * block_N : (ko + 1) * block_N, by, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    seen = bx * block_M + i >= ko * block_N + j
                    scores[i, j] = T.if_then_else(seen, 0, low)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                T.copy(top, before)
                T.fill(top, low)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    top[i] = T.max(top[i], before[i])
                for i in T.Parallel(block_M):
                    fade[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * fade[i] + part[i]
                T.copy(scores, probs)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= fade[i]
                T.copy(V[bz, ko * block_N : (ko + 1) * block_N, by, :], V_shared)
                T.gemm(probs, V_shared, acc)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= total[i]
            T.copy(acc, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return attention


def compiled(shape: Shape, configs: dict[str, Any] | None = None, **how: Any) -> Any:
    """The program compiled for Hopper; calls return Out."""
    program = flash_attention(shape, **how)
    return tilelab.compile(program, out_idx=[3], target="sm_90a", pass_configs=configs)


def operands(shape: Shape, seed: int = 0) -> list[np.ndarray]:
    """Q, K and V, normally distributed."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float16) for _ in range(3)]


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = True) -> np.ndarray:
    """The same in float32, with the whole score matrix at once."""
    q, k, v = (x.astype(np.float32).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * q.shape[-1] ** -0.5
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    out = weights / weights.sum(-1, keepdims=True) @ v
    return out.transpose(0, 2, 1, 3)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Norm of the difference over norm of what is wanted."""
    return float(np.linalg.norm(got.astype(np.float32) - want) / np.linalg.norm(want))
