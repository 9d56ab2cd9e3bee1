"""Elementwise and row-wise programs of many kinds with their references, for CPU and GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab.language as T

Case = tuple[Any, tuple[Any, ...], Any]
"""A program whose last parameter is its output, the inputs, the result."""


def rmsnorm(device: str, M: int = 6, N: int = 1024, dtype: str = "float16") -> Case:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as b:
            x = T.alloc_fragment((1, N), "float32")
            square = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[b, 0], x)
            for i, j in T.Parallel(1, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, total, dim=1)
            for i, j in T.Parallel(1, N):
                Y[b + i, j] = x[i, j] * T.rsqrt(total[i] / N + 1e-6) * W[j]

    x, w = (torch.randn(*s, device=device).to(getattr(torch, dtype)) for s in ((M, N), (N,)))
    want = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()
    return main, (x, w), want


def softmax(device: str, M: int = 5, N: int = 2048) -> Case:
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(M, threads=128) as b:
            x = T.alloc_fragment((N,), "float32")
            top, total = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(X[b, :], x)
            T.reduce_max(x, top, dim=0)
            for j in T.Parallel(N):
                x[j] = T.exp(x[j] - top[0])
            T.reduce_sum(x, total, dim=0)
            for j in T.Parallel(N):
                Y[b, j] = x[j] / total[0]

    x = torch.randn(M, N, device=device).half()
    return main, (x,), x.float().softmax(-1)


def bias_gelu(device: str, M: int = 40, N: int = 520) -> Case:
    """Tiles that reach over both edges of the tensor; rows of 16-byte multiples."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float16"), B: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "float16")
    ):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 32), threads=128) as (c, r):
            for i, j in T.Parallel(32, 128):
                v = X[r * 32 + i, c * 128 + j] + B[c * 128 + j]
                Y[r * 32 + i, c * 128 + j] = 0.5 * v * (1.0 + T.erf(v * 0.70710678))

    x, b = torch.randn(M, N, device=device).half(), torch.randn(N, device=device)
    return main, (x, b), torch.nn.functional.gelu(x.float() + b)


def rotary(device: str, S: int = 20, H: int = 3, D: int = 128, *, pairs: bool) -> Case:
    """Rotary embedding, halves (j, j + D/2) or neighbouring pairs (2j, 2j + 1)."""

    @T.prim_func
    def main(
        X: T.Tensor((S, H, D), "float16"),
        C: T.Tensor((S, D // 2), "float32"),
        Z: T.Tensor((S, D // 2), "float32"),
        Y: T.Tensor((S, H, D), "float16"),
    ):
        with T.Kernel(T.ceildiv(S, 16), H, threads=128) as (b, h):
            for i, j in T.Parallel(16, D // 2):
                s = b * 16 + i
                p = 2 * j if pairs else j
                q = 2 * j + 1 if pairs else j + D // 2
                Y[s, h, p] = X[s, h, p] * C[s, j] - X[s, h, q] * Z[s, j]
                Y[s, h, q] = X[s, h, q] * C[s, j] + X[s, h, p] * Z[s, j]

    x = torch.randn(S, H, D, device=device).half()
    c, z = (torch.randn(S, D // 2, device=device) for _ in range(2))
    first = slice(0, None, 2) if pairs else slice(0, D // 2)
    second = slice(1, None, 2) if pairs else slice(D // 2, None)
    want = torch.empty_like(x, dtype=torch.float32)
    a, d = x[:, :, first].float(), x[:, :, second].float()
    cc, zz = c[:, None, :], z[:, None, :]
    want[:, :, first], want[:, :, second] = a * cc - d * zz, d * cc + a * zz
    return main, (x, c, z), want


def gather(device: str, V: int = 50, N: int = 512, S: int = 24) -> Case:
    """Rows of a table by number; a row that does not exist is zeros."""

    @T.prim_func
    def main(
        K: T.Tensor((S,), "int32"), W: T.Tensor((V, N), "float16"), Y: T.Tensor((S, N), "float16")
    ):
        with T.Kernel(S // 8, threads=128) as b:
            for i, j in T.Parallel(8, N):
                Y[b * 8 + i, j] = W[K[b * 8 + i], j]

    k = torch.randint(0, V, (S,), device=device, dtype=torch.int32)
    k[3] = V + 2
    w = torch.randn(V, N, device=device).half()
    want = torch.where((k < V)[:, None], w[k.clamp(max=V - 1).long()].float(), 0.0)
    return main, (k, w), want


def masked_gather(device: str, N: int = 48, D: int = 128, K: int = 40) -> Case:
    """Rows that a table names, zeros where it names none or one that may not be seen."""

    @T.prim_func
    def main(
        X: T.Tensor((N, D), "bfloat16"), Rows: T.Tensor((K,), "int32"),
        Y: T.Tensor((K, D), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(K, 16), threads=128) as b:
            rows = T.alloc_shared((16,), "int32")
            tile = T.alloc_shared((16, D), "bfloat16")
            T.copy(Rows[b * 16], rows)
            for i, j in T.Parallel(16, D):
                row = rows[i]
                tile[i, j] = T.if_then_else((row >= 0) & (row <= 40), X[row, j], 0)
            T.copy(tile, Y[b * 16, 0])

    x = torch.randn(N, D, device=device).bfloat16()
    rows = torch.randint(-3, N, (K,), dtype=torch.int32, device=device)
    seen = ((rows >= 0) & (rows <= 40))[:, None]
    return main, (x, rows), torch.where(seen, x[rows.clamp(min=0).long()].float(), 0.0)


def quantise(device: str, M: int = 4, N: int = 1024) -> Case:
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Q: T.Tensor((M, N), "int8")):
        with T.Kernel(M, threads=64) as b:
            x, top = T.alloc_fragment((1, N), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(X[b, 0], x)
            T.reduce_absmax(x, top, dim=1)
            for i, j in T.Parallel(1, N):
                Q[b, j] = T.cast(T.round(x[i, j] * 64.0 / top[i]), "int8")

    x = (torch.randint(-64, 65, (M, N), device=device) / 8).half()
    x[:, 0] = 8
    return main, (x,), (x.float() * 8).round()


def dequantise(device: str, M: int = 6, N: int = 1024) -> Case:
    """4-bit weights, two in a byte, a scale for every 128."""

    @T.prim_func
    def main(
        Q: T.Tensor((M, N // 2), "uint8"),
        S: T.Tensor((M, N // 128), "float16"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(M, threads=64) as b:
            for j in T.Parallel(N):
                nibble = (Q[b, j // 2] >> T.cast(j % 2 * 4, "uint8")) & 0xF
                Y[b, j] = T.cast(nibble, "float16") * S[b, j // 128]

    q = torch.randint(0, 256, (M, N // 2), device=device, dtype=torch.uint8)
    s = (torch.randint(1, 9, (M, N // 128), device=device) / 8).half()
    halves = torch.stack((q & 15, q >> 4), -1).reshape(M, N).float()
    return main, (q, s), halves * s.float().repeat_interleave(128, 1)


def small_integers(device: str, to: str) -> Case:
    """Every value of the 8-bit types, and 4-bit codes around zero, as floats."""

    @T.prim_func
    def main(X: T.Tensor((256,), "uint8"), Z: T.Tensor((256,), "int8"), Y: T.Tensor((3, 256), to)):
        with T.Kernel(1, threads=32) as _:
            for j in T.Parallel(256):
                code = T.cast(X[j] & T.cast(15, "uint8"), "int32") - 8
                Y[0, j] = T.cast(X[j], to)
                Y[1, j] = T.cast(Z[j], to)
                Y[2, j] = T.cast(code, to) + T.cast(X[j] // T.cast(16, "uint8"), to)

    x = torch.arange(256, device=device).to(torch.uint8)
    z = (torch.arange(256, device=device) - 128).to(torch.int8)
    codes = (x & 15).float() - 8 + (x >> 4).float()
    return main, (x, z), torch.stack((x.float(), z.float(), codes)).to(getattr(torch, to)).float()


def in_place_rows(device: str, M: int = 16, N: int = 256) -> Case:
    """A shared tile scaled where it lies, then read by other threads (reversed rows)."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128) as _:
            s, f = T.alloc_shared((M, N), "float32"), T.alloc_fragment((M,), "float32")
            T.copy(X, s)
            for i in T.Parallel(M):
                f[i] = i + 1
            for i, j in T.Parallel(M, N):
                s[i, j] *= f[i]
            for i, j in T.Parallel(M, N):
                s[i, j] = s[i, j] + 1.0
                Y[i, j] = s[i, j] * 2.0
            for i, j in T.Parallel(M, N):
                Y[i, j] = Y[i, j] + s[M - 1 - i, N - 1 - j]

    x = torch.randn(M, N, device=device)
    scaled = x * torch.arange(1, M + 1, device=device)[:, None] + 1
    return main, (x,), 2 * scaled + scaled.flip(0, 1)


def shifted(device: str, M: int = 8, N: int = 256) -> Case:
    """Neighbours, reversed columns and a column broadcast: only some of it is a run."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i, j in T.Parallel(M, N):
                left = X[i, T.max(j - 1, 0)]
                odd = T.if_then_else(j % 2 == 1, X[i, j - 1], 0.0)
                Y[i, j] = X[i, j] + left + 3 * X[i, N - 1 - j] + X[i, 0] + odd

    x = torch.randn(M, N, device=device)
    left = torch.cat((x[:, :1], x[:, :-1]), 1)
    odd = left * (torch.arange(N, device=device) % 2)
    return main, (x,), x + left + 3 * x.flip(1) + x[:, :1] + odd


def some_rows(device: str, M: int = 16, N: int = 256) -> Case:
    """Rows chosen by a fragment and by a tensor: a branch that is the same along a row."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float16"), K: T.Tensor((M,), "int32"), Y: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(1, threads=64) as _:
            k = T.alloc_fragment((M,), "int32")
            T.copy(K, k)
            for i, j in T.Parallel(M, N):
                Y[i, j] = 7.0
            for i, j in T.Parallel(M, N):
                if k[i] > 0:
                    Y[i, j] = X[i, j] * 2.0
            for i, j in T.Parallel(M, N):
                if K[i] < 0 and i < M - 2:
                    Y[i, j] += X[M - 1 - i, j]

    x = torch.randn(M, N, device=device).half()
    k = torch.arange(M, device=device, dtype=torch.int32) % 3 - 1
    want = torch.where((k > 0)[:, None], x.float() * 2, 7.0)
    below = (k < 0) & (torch.arange(M, device=device) < M - 2)
    return main, (x, k), want + x.float().flip(0) * below[:, None]


def many_columns(device: str, M: int = 2, N: int = 4096) -> Case:
    """More elements a thread than one batch of loads."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Z: T.Tensor((M, N), "float32"),
             Y: T.Tensor((M, N), "float32")):  # fmt: skip
        with T.Kernel(M, threads=32) as b:
            f = T.alloc_fragment((N,), "float32")
            for j in T.Parallel(N):
                f[j] = X[b, j] * Z[b, j]
            for j in T.Parallel(N):
                Y[b, j] = f[j] + X[b, j]

    x, z = torch.randn(M, N, device=device), torch.randn(M, N, device=device)
    return main, (x, z), x * z + x


def odd_rows(device: str, M: int = 7, N: int = 333) -> Case:
    """Rows that start anywhere: no access can be wide."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=64) as c:
            for i, j in T.Parallel(M, 128):
                Y[i, c * 128 + j] = X[i, c * 128 + j] * 2.0

    x = torch.randn(M, N, device=device).half()
    return main, (x,), x.float() * 2


CASES: dict[str, Callable[[str], Case]] = {
    "rmsnorm": rmsnorm, "softmax": softmax, "bias_gelu": bias_gelu,
    "rotary_halves": lambda device: rotary(device, pairs=False),
    "rotary_pairs": lambda device: rotary(device, pairs=True),
    "gather": gather, "masked_gather": masked_gather,
    "quantise": quantise, "dequantise": dequantise,
    "in_place_rows": in_place_rows, "shifted": shifted, "some_rows": some_rows,
    "many_columns": many_columns,
    "odd_rows": odd_rows,
    "small_integers_half": lambda device: small_integers(device, "float16"),
    "small_integers_bfloat16": lambda device: small_integers(device, "bfloat16"),
    "small_integers_float": lambda device: small_integers(device, "float32"),
}  # fmt: skip

WIDE = {
    "rmsnorm": (1, 1), "softmax": (2, 2), "bias_gelu": (4, 2), "rotary_halves": (4, 2),
    "rotary_pairs": (2, 2), "gather": (4, 4), "masked_gather": (2, 1),
    "quantise": (1, 1), "dequantise": (0, 2),
    "in_place_rows": (1, 1), "shifted": (1, 1), "some_rows": (2, 3), "many_columns": (1, 1),
    "odd_rows": (0, 0),
    "small_integers_half": (0, 3), "small_integers_bfloat16": (0, 3),
    "small_integers_float": (0, 6),
}  # fmt: skip
"""At least so many 16-byte loads and stores of global memory in the machine code (none for 0)."""
