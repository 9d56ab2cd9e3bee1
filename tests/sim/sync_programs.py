"""Representative kernels in the language, small, whose synchronisation tests take apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelab
import tilelab.language as T
from tests.kernels import gemm
from tests.ops.looked_up_programs import experts
from tilelab.ir import TensorParam

TARGETS = ("sm_80", "sm_90a")


def attention(stages: int) -> Any:
    """Causal attention of one head: two gemms and a running softmax."""
    length, dim, tile = 256, 64, 64

    @T.prim_func
    def main(
        Q: T.Tensor((length, dim), "float16"), K: T.Tensor((length, dim), "float16"),
        V: T.Tensor((length, dim), "float16"), Out: T.Tensor((length, dim), "float16"),
    ):  # fmt: skip
        with T.Kernel(length // tile, threads=128) as bx:
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            s = T.alloc_fragment((tile, tile), "float32")
            p = T.alloc_fragment((tile, tile), "float16")
            o = T.alloc_fragment((tile, dim), "float32")
            top = T.alloc_fragment((tile,), "float32")
            old = T.alloc_fragment((tile,), "float32")
            part = T.alloc_fragment((tile,), "float32")
            total = T.alloc_fragment((tile,), "float32")
            T.copy(Q[bx * tile, 0], q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -1e30)
            for n in T.Pipelined(bx + 1, num_stages=stages):
                T.copy(K[n * tile, 0], k)
                T.copy(V[n * tile, 0], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(tile, tile):
                    s[i, j] = T.if_then_else(bx * tile + i >= n * tile + j, s[i, j], -1e30)
                T.copy(top, old)
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(tile, tile):
                    p[i, j] = T.exp(s[i, j] - top[i])
                T.reduce_sum(p, part, dim=1)
                for i in T.Parallel(tile):
                    total[i] = total[i] * T.exp(old[i] - top[i]) + part[i]
                for i, j in T.Parallel(tile, dim):
                    o[i, j] = o[i, j] * T.exp(old[i] - top[i])
                T.gemm(p, v, o)
            for i, j in T.Parallel(tile, dim):
                o[i, j] = o[i, j] / total[i]
            T.copy(o, Out[bx * tile, 0])

    return main


def nested_pipeline(stages: int) -> Any:
    """A pipeline that is entered again for every tile of a block."""

    @T.prim_func
    def main(
        A: T.Tensor((2, 64, 96), "float16"), B: T.Tensor((96, 64), "float16"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for r in T.serial(2):
                T.clear(c)
                for k in T.Pipelined(3, num_stages=stages):
                    T.copy(A[r, 0, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
                T.copy(c, C[r, 0, 0])

    return main


def reductions() -> Any:
    """Sums of rows and columns that several warps share."""

    @T.prim_func
    def main(A: T.Tensor((32, 256), "float32"), B: T.Tensor((32,), "float32"),
             C: T.Tensor((256,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((32, 256), "float32")
            rows = T.alloc_fragment((32,), "float32")
            columns = T.alloc_fragment((256,), "float32")
            T.copy(A, f)
            T.reduce_sum(f, rows, dim=1)
            T.reduce_max(f, columns, dim=0)
            T.copy(rows, B)
            T.copy(columns, C)

    return main


def scans() -> Any:
    """A running sum in shared memory, then in a fragment."""

    @T.prim_func
    def main(A: T.Tensor((8, 256), "float32"), B: T.Tensor((8, 256), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((8, 256), "float32")
            T.copy(A, s)
            T.cumsum(s, dim=1)
            T.cumsum(s, dim=0)
            T.copy(s, B)

    return main


def histogram() -> Any:
    """Atomic updates of shared memory between two barriers."""

    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "int32")
            T.clear(s)
            for i in T.Parallel(256):
                T.atomic_add(s[A[i] % 128], 1)
            for i in T.Parallel(128):
                B[i] = s[127 - i]

    return main


def transposed_through_shared() -> Any:
    """Elementwise work on a tile that threads hand to each other, in a loop."""

    @T.prim_func
    def main(A: T.Tensor((4, 32, 64), "float32"), B: T.Tensor((4, 64, 32), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32, 65), "float32")
            for k in T.serial(4):
                for i, j in T.Parallel(32, 64):
                    s[i, j] = A[k, i, j] * 2.0
                for i, j in T.Parallel(64, 32):
                    B[k, i, j] = s[j, i] + 1.0

    return main


def stored_by_tma() -> Any:
    """Tiles that are computed, staged and written as boxes."""

    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float16")
            for k in T.serial(4):
                T.copy(A[k, 0, 0], f)
                for i, j in T.Parallel(64, 64):
                    f[i, j] = f[i, j] + 1.0
                T.copy(f, s)
                T.copy(s, B[k, 0, 0])

    return main


def by_hand() -> Any:
    """A producer role and a consumer role with barriers of their own, and a tile in between."""

    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.copy(A[k, 0, 0], s[k % 2, :, :])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(c)
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    T.gemm(s[k % 2, :, :], s[k % 2, :, :], c)
                    T.barrier_arrive(empty[k % 2])
                T.copy(c, C)

    return main


def dequantised(stages: int) -> Any:
    """A product whose right operand is unpacked from 4-bit codes, with a scale per column."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 128), "uint8"),
        S: T.Tensor((64,), "float16"), C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            packed = T.alloc_shared((64, 32), "uint8")
            b = T.alloc_shared((64, 64), "float16")
            scale = T.alloc_shared((64,), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(S, scale)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 32], packed)
                for i, j in T.Parallel(64, 64):
                    code = (packed[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15)
                    b[i, j] = T.cast(code, "float16") * scale[i]
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return main


def decode() -> Any:
    """Attention of one query over keys in two parts, whose results a second kernel joins."""
    parts, length, dim = 2, 64, 64

    @T.prim_func
    def main(
        Q: T.Tensor((16, dim), "float16"), K: T.Tensor((parts * length, dim), "float16"),
        V: T.Tensor((parts * length, dim), "float16"), Out: T.Tensor((16, dim), "float32"),
    ):  # fmt: skip
        some = T.alloc_global((parts, 16, dim), "float32")
        sums = T.alloc_global((parts, 16), "float32")
        with T.Kernel(parts, threads=128) as part:
            q = T.alloc_shared((16, dim), "float16")
            k = T.alloc_shared((length, dim), "float16")
            v = T.alloc_shared((length, dim), "float16")
            p = T.alloc_shared((16, length), "float16")
            s = T.alloc_fragment((16, length), "float32")
            o = T.alloc_fragment((16, dim), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.copy(Q, q)
            T.copy(K[part * length, 0], k)
            T.copy(V[part * length, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(16, length):
                s[i, j] = T.exp(s[i, j] * 1e-5)
            T.reduce_sum(s, total, dim=1)
            T.copy(s, p)
            T.clear(o)
            T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullCol)
            T.copy(o, some[part, 0, 0])
            T.copy(total, sums[part, 0])
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(16, dim):
                Out[i, j] = (some[0, i, j] + some[1, i, j]) / (sums[0, i] + sums[1, i])

    return main


def _gemm(stages: int) -> Callable[[], Any]:
    return lambda: gemm(128, 64, 192, bm=64, bn=64, bk=32, stages=stages, relu=True)


PROGRAMS: dict[str, Callable[[], Any]] = {
    **{f"gemm-{n}": _gemm(n) for n in range(4)},
    **{f"attention-{n}": (lambda n=n: attention(n)) for n in (0, 2)},
    **{f"nested-{n}": (lambda n=n: nested_pipeline(n)) for n in (1, 2)},
    "reductions": reductions, "scans": scans, "histogram": histogram,
    "transpose": transposed_through_shared, "tma-store": stored_by_tma, "by-hand": by_hand,
    "dequant-0": lambda: dequantised(0), "dequant-2": lambda: dequantised(2), "decode": decode,
    "rows": lambda: experts("cpu")[0],
    "persistent": lambda: gemm(256, 128, 128, bm=64, bn=64, bk=64, stages=2, relu=True),
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {"persistent": {"tl.persistent": True}}
OPTIONS: dict[str, dict[str, Any]] = {"persistent": {"resident_blocks": 3}}
"""How some are compiled, and simulated."""


def compiled(name: str, target: str) -> Any:
    return tilelab.compile(PROGRAMS[name](), target=target, pass_configs=CONFIGS.get(name))


def arrays(kernel: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Random inputs by name, the same every time."""
    random = np.random.default_rng(0)
    made: dict[str, np.ndarray[Any, Any]] = {}
    for param in kernel.prim_func.params:
        assert isinstance(param, TensorParam)
        values = random.normal(size=param.buffer.static_shape) * 100
        made[param.name] = np.abs(values).astype(param.buffer.dtype.numpy)
    return made
