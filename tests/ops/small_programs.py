"""Programs with T.transpose, T.any_of, T.all_of, T.print, checks and limits of types, and what
they must do; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T

MAKE = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
PLACES = [(a, b) for a in MAKE for b in MAKE]


def check_transpose(target: Any, device: str, src: str, dst: str) -> None:
    """Whole buffers with a leading axis, and regions, with a conversion."""

    @T.prim_func
    def main(
        A: T.Tensor((3, 20, 36), "float16"), B: T.Tensor((3, 36, 20), "float32"),
        C: T.Tensor((40, 24), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = MAKE[src]((3, 20, 36), "float16")
            d = MAKE[dst]((3, 36, 20), "float32")
            e = MAKE[dst]((40, 24), "float16")
            T.copy(A, s)
            T.transpose(s, d)
            T.copy(d, B)
            T.clear(e)
            T.transpose(s[1, 2:20, 3:36], e[1:34, 5:23])
            T.copy(e, C)

    a = torch.randn(3, 20, 36, device=device).half()
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    want = torch.zeros(40, 24, device=device).half()
    want[1:34, 5:23] = a[1, 2:20, 3:36].T
    assert torch.equal(b, a.transpose(1, 2).float())
    assert torch.equal(c, want)


def check_any_all(target: Any, device: str) -> None:
    """As conditions and as values; on tensors, shared buffers, slices and single elements."""

    @T.prim_func
    def main(A: T.Tensor((4, 6), "float16"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as _:
            s = T.alloc_shared((4, 6), "float16")
            T.copy(A, s)
            B[0] = 1 if T.any_of(A[0, 0:4]) else 0
            B[1] = T.all_of(A[0, 0:4])
            B[2] = T.any_of(s[1, 1:3])
            B[3] = T.all_of(s[2:4, 0:3])
            if T.all_of(s):
                B[4] = 1
            else:
                B[4] = 0
            for i in T.Parallel(2):
                B[5 + i] = T.any_of(A[i, 1:3])
            B[7] = T.any_of(A[0, 2])

    a = torch.ones(4, 6, device=device).half()
    a[0, [0, 1, 3]], a[1, 1:3] = 0, 0
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert b.tolist() == [1, 0, 0, 1, 0, 1, 0, 1]


FLOATS = ("float16", "bfloat16", "float32", "float64")
OTHERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool", "float8_e4m3fn",
          "float8_e5m2")  # fmt: skip


def check_limits(target: Any, device: str, dtype: str) -> None:
    """The largest and the lowest value of a type, and its infinities."""
    has_infinity = dtype in FLOATS

    @T.prim_func
    def main(B: T.Tensor((4,), dtype)):
        with T.Kernel(1, threads=32) as _:
            B[0] = T.max_value(dtype)
            B[1] = T.min_value(dtype)
            if has_infinity:
                B[2] = T.infinity(dtype)
                B[3] = -T.infinity(dtype)

    b = torch.zeros(4, device=device).to(getattr(torch, dtype))
    tilelab.compile(main, target=target)(b)
    if dtype == "bool":
        assert b[:2].tolist() == [True, False]
        return
    kind = getattr(torch, dtype)
    limits = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
    assert b[:2].cpu().double().tolist() == [float(limits.max), float(limits.min)]
    if has_infinity:
        assert b[2:].cpu().double().tolist() == [float("inf"), -float("inf")]


def printing(target: Any) -> Any:
    """A kernel that prints a message, buffers of three scopes and values of several types."""

    @T.prim_func
    def main(A: T.Tensor((2, 3), "float16"), B: T.Tensor((2, 3), "float32")):
        with T.Kernel(2, threads=64) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((2, 3), "float16")
            f = T.alloc_fragment((2, 3), "float32")
            T.copy(A, s)
            T.copy(s, f)
            if bx == 1:
                if t == 40:
                    T.print("100% {here}")
                    T.print(bx * 7, "seven")
                    T.print(T.cast(-1, "uint32"))
                    T.print(T.cast(1 << 40, "int64"), msg="wide")
                    T.print(A[1, 2] / 4)
                T.print(s[1, :], msg="row", warp_id=1)
                T.print(f)
            T.copy(f, B)

    return tilelab.compile(main, out_idx=[1], target=target)


PRINTED = """\
100% {here} (block 1 0 0, thread 40 0 0)
seven: 7 (block 1 0 0, thread 40 0 0)
4294967295 (block 1 0 0, thread 40 0 0)
wide: 1099511627776 (block 1 0 0, thread 40 0 0)
1.25 (block 1 0 0, thread 40 0 0)
row: s[1, 0] = 3 (block 1 0 0, thread 32 0 0)
row: s[1, 1] = 4 (block 1 0 0, thread 32 0 0)
row: s[1, 2] = 5 (block 1 0 0, thread 32 0 0)
f[0, 0] = 0 (block 1 0 0, thread 0 0 0)
f[0, 1] = 1 (block 1 0 0, thread 0 0 0)
f[0, 2] = 2 (block 1 0 0, thread 0 0 0)
f[1, 0] = 3 (block 1 0 0, thread 0 0 0)
f[1, 1] = 4 (block 1 0 0, thread 0 0 0)
f[1, 2] = 5 (block 1 0 0, thread 0 0 0)
"""


def asserting(target: Any) -> Any:
    """A kernel that refuses negative numbers, in both spellings."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                v = A[bx * 32 + i]
                assert v >= 0, f"negative, not {2 + 3}"
                B[bx * 32 + i] = v
            T.device_assert(A[0] < 100, "too large", no_stack_info=True)

    return tilelab.compile(main, out_idx=[1], target=target)


def check_few_points(target: Any, device: str) -> None:
    """Loops of fewer points than threads that overwrite what they read, by way of a thread's own
    variable and array, with atomics: each point happens once."""

    @T.prim_func
    def main(
        A: T.Tensor((16,), "int32"), B: T.Tensor((2, 16), "int32"), C: T.Tensor((4,), "int32")
    ):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((16,), "int32")
            v = T.alloc_var("int32")
            own = T.alloc_local((2,), "int32")
            T.copy(A, s)
            for _ in T.serial(2):
                for i in T.Parallel(16):
                    v = s[i]
                    T.atomic_add(C[i % 4], v)
                    if v > 8:
                        s[i] = v - 1
                    else:
                        s[i] = v + 2
                for i in T.Parallel(16):
                    own[0] = B[0, i]
                    own[1] = own[0] * own[0]
                    B[0, i] = own[0] + own[1]
            T.copy(s, B[1, :])

    a = torch.arange(16, dtype=torch.int32, device=device)
    b, c = torch.stack([a, a]) % 5, torch.zeros(4, dtype=torch.int32, device=device)
    want = b[0]
    for _ in range(2):
        want = want + want * want
    once = torch.where(a > 8, a - 1, a + 2)
    tilelab.compile(main, target=target)(a, b, c)
    assert torch.equal(b[0], want)
    assert torch.equal(b[1], torch.where(once > 8, once - 1, once + 2))
    assert torch.equal(c, (a + once).view(4, 4).sum(0).int())


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_any_all,
    check_few_points,
    *((lambda target, device, p=p: check_transpose(target, device, *p)) for p in PLACES),
    *((lambda target, device, d=d: check_limits(target, device, d)) for d in (*FLOATS, *OTHERS)),
)
