"""Programs on elements that share bytes (int4, uint4, int2, uint2, float4_e2m1fn), and what they
must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T

BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}
TYPES = tuple(BITS)
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def numbers(codes: Any, dtype: str) -> Any:
    """What codes stand for, as float64."""
    bits = BITS[dtype]
    if dtype.startswith("float"):
        sizes = FP4.to(codes.device).double()[codes & 7]
        return torch.where(codes & 8 > 0, -sizes, sizes)
    half = 1 << (bits - 1)
    return (codes if dtype.startswith("u") else (codes ^ half) - half).double()


def pack(codes: Any, dtype: str) -> Any:
    """Codes (int64) as bytes, the first one of a byte in its lowest bits."""
    bits = BITS[dtype]
    count = 8 // bits
    parts = [codes[..., n::count] << (n * bits) for n in range(count)]
    total = parts[0]
    for part in parts[1:]:
        total = total | part
    return total.to(torch.uint8)


def unpack(data: Any, dtype: str) -> Any:
    """The codes in bytes."""
    bits = BITS[dtype]
    raw = data.view(torch.uint8).to(torch.int64)
    parts = [(raw >> (n * bits)) & ((1 << bits) - 1) for n in range(8 // bits)]
    return torch.stack(parts, -1).flatten(-2)


def codes(shape: tuple[int, ...], dtype: str, device: str, seed: int = 0) -> Any:
    """Random codes."""
    made = torch.Generator().manual_seed(seed)
    return torch.randint(0, 1 << BITS[dtype], shape, generator=made).to(device)


def nearest_code(values: Any, dtype: str) -> Any:
    """The code that a number is stored as: low bits of the whole part, or the nearest fp4 number,
    of two equally near ones the even code; too large ones become 6, and so does NaN."""
    if not dtype.startswith("float"):
        whole = values.double().nan_to_num(0.0).clamp(-(2.0**31), 2.0**31 - 1).trunc()
        return whole.long() & ((1 << BITS[dtype]) - 1)
    wide = values.double()
    away = (wide.abs()[..., None] - FP4.to(wide.device).double()).abs()
    best = away.amin(-1, keepdim=True)
    tied = (away == best).long()
    order = torch.tensor([0, 9, 1, 8, 2, 7, 3, 6], device=wide.device)  # even codes come first
    found = (tied * (10 - order)).argmax(-1)
    found = torch.where(wide.abs() > 6, 7, found)
    coded = found + 8 * torch.signbit(wide).long()
    return torch.where(wide.isnan(), 7, coded)


def check_decode(target: Any, device: str, dtype: str, to: str) -> None:
    """Every code of a type as numbers of another: by a copy through shared memory, by one from the
    tensor, and in a loop."""
    n = 256
    a = torch.arange(n, device=device) % (1 << BITS[dtype])

    @T.prim_func
    def main(A: T.Tensor((4, n), dtype), B: T.Tensor((4, n), to), C: T.Tensor((4, n), to),
             D: T.Tensor((4, n), to)):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((4, n), dtype)
            f = T.alloc_fragment((4, n), to)
            g = T.alloc_fragment((4, n), dtype)
            T.copy(A, s)
            T.copy(s, f)
            T.copy(f, B)
            T.copy(A, g)
            T.copy(g, C)
            for i, j in T.Parallel(4, n):
                D[i, j] = T.cast(s[i, n - 1 - j], to)

    every = torch.stack([a, a.flip(0), a.roll(1), a.roll(3)])
    want = numbers(every, dtype)
    if to.startswith("u"):
        want = want.long() & 255
    b, c, d = tilelab.compile(main, out_idx=[1, 2, 3], target=target)(pack(every, dtype))
    assert torch.equal(b.double(), want.double())
    assert torch.equal(c.double(), want.double())
    assert torch.equal(d.double(), want.flip(1).double())


def special(source: str, device: str) -> Any:
    """Numbers of a type around everything that fp4 and small integers round to."""
    kind = getattr(torch, source)
    if not kind.is_floating_point:
        low = 0 if source.startswith("u") else -100
        return torch.arange(low, low + 256, device=device).to(kind)
    steps = torch.arange(-128, 128, device=device) / 16
    extra = torch.tensor(
        [float("inf"), -float("inf"), float("nan"), 1e4, -1e4, -0.0], device=device
    )
    return torch.cat([steps[:-6], extra]).to(kind)


def check_encode(target: Any, device: str, source: str, dtype: str) -> None:
    """Numbers stored as a packed type: by a copy from registers, from shared memory, and in a
    loop."""
    n = 256

    @T.prim_func
    def main(A: T.Tensor((2, n), source), B: T.Tensor((2, n), dtype), C: T.Tensor((2, n), dtype),
             D: T.Tensor((2, n), dtype)):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            f = T.alloc_fragment((2, n), source)
            s = T.alloc_shared((2, n), source)
            p = T.alloc_shared((2, n), dtype)
            T.copy(A, f)
            T.copy(f, B)
            T.copy(A, s)
            T.copy(s, p)
            T.copy(p, C)
            for i, j in T.Parallel(2, n):
                D[i, j] = A[1 - i, j]

    a = special(source, device)
    a = torch.stack([a, a.flip(0)])
    want = nearest_code(a, dtype)
    b, c, d = tilelab.compile(main, out_idx=[1, 2, 3], target=target)(a)
    for got in (b, c, d):
        assert torch.equal(unpack(got, dtype), want if got is not d else want.flip(0)), (
            source,
            dtype,
        )


def check_tiles(target: Any, device: str, dtype: str) -> None:
    """Tiles in a pipeline with tails, through packed shared memory, into a packed tensor and into
    numbers; a third tensor gets them transposed."""
    m, n, bm, bn = 50, 200, 32, 64

    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype), C: T.Tensor((n, m), "float16")
    ):
        with T.Kernel(T.ceildiv(m, bm), threads=128) as by:
            s = T.alloc_shared((bm, bn), dtype)
            t = T.alloc_fragment((bn, bm), "float16")
            for k in T.Pipelined(T.ceildiv(n, bn), num_stages=3):
                T.copy(A[by * bm, k * bn], s)
                T.copy(s, B[by * bm, k * bn])
                T.transpose(s, t)
                T.copy(t, C[k * bn, by * bm])

    a = codes((m, n), dtype, device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(pack(a, dtype))
    assert torch.equal(unpack(b, dtype), a)
    assert torch.equal(c.double(), numbers(a, dtype).T)


def check_fill_and_reduce(target: Any, device: str, dtype: str) -> None:
    """Fills of tensors, shared memory and registers; sums and maxima of packed tiles."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), dtype), B: T.Tensor((3, 16, 64), dtype),
             C: T.Tensor((16,), "int32"), D: T.Tensor((16,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((16, 64), dtype)
            f = T.alloc_fragment((16, 64), dtype)
            total = T.alloc_fragment((16,), "int32")
            most = T.alloc_fragment((16,), "float32")
            T.fill(s, 1)
            T.clear(s[3:5, 8:24])
            T.copy(s, B[0, :, :])
            T.fill(f, 1)
            T.copy(f, B[1, :, :])
            T.fill(B[2, :, :], 1)
            T.copy(A, s)
            T.reduce_sum(s, total, dim=1)
            T.reduce_max(s, most, dim=1)
            T.copy(total, C)
            T.copy(most, D)

    a = codes((16, 64), dtype, device)
    if dtype.startswith("float"):
        a = nearest_code(numbers(a, dtype).trunc(), dtype)
    kernel = tilelab.compile(main, out_idx=[1, 2, 3], target=target)
    b, c, d = kernel(pack(a, dtype))
    one = int(nearest_code(torch.ones(1), dtype))
    want = torch.full((3, 16, 64), one, device=device)
    want[0, 3:5, 8:24] = 0
    assert torch.equal(unpack(b, dtype), want)
    assert torch.equal(c.double(), numbers(a, dtype).sum(1))
    assert torch.equal(d.double(), numbers(a, dtype).amax(1))


def check_gemm(target: Any, device: str, a_type: str, b_type: str, out: str) -> None:
    """A product of packed operands, or of a packed one and one of another type, in a pipeline."""
    m, n, k, bk = 96, 72, 160, 64

    @T.prim_func
    def main(A: T.Tensor((m, k), a_type), B: T.Tensor((n, k), b_type), C: T.Tensor((m, n), out)):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, bk), a_type)
            b = T.alloc_shared((64, bk), b_type)
            c = T.alloc_fragment((64, 64), out)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[by * 64, ko * bk], a)
                T.copy(B[bx * 64, ko * bk], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * 64, bx * 64])

    def operand(dtype: str, rows: int, seed: int) -> tuple[Any, Any]:
        if dtype in BITS:
            made = codes((rows, k), dtype, device, seed)
            return pack(made, dtype), numbers(made, dtype)
        made = torch.randint(-3, 4, (rows, k), device=device).to(getattr(torch, dtype))
        return made, made.double()

    (a, left), (b, right) = operand(a_type, m, 1), operand(b_type, n, 2)
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    assert torch.equal(got.double(), left @ right.T)


def check_bits(target: Any, device: str) -> None:
    """T.reinterpret between codes and bytes, T.view of packed shared memory, a stored product."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "uint8"),
             C: T.Tensor((64,), "uint8"), D: T.Tensor((64,), "float4_e2m1fn"),
             E: T.Tensor((32,), "uint8"),
             F: T.Tensor((64,), "float4_e2m1fn")):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float4_e2m1fn")
            for i in T.Parallel(64):
                B[i] = T.reinterpret(T.cast(A[i], "float4_e2m1fn"), "uint8")
                C[i] = T.reinterpret(T.cast(i, "int4"), "uint8")
            for i in T.Parallel(64):
                D[i] = T.reinterpret(T.cast(i, "uint8"), "float4_e2m1fn")
            T.copy(D, s)
            T.copy(T.view(s, (32,), "uint8"), E)
            for i in T.Parallel(64):
                F[i] = s[i] * s[i] + T.float16(0.5)

    a = torch.linspace(-8, 8, 64, device=device).half()
    b, c, d, e, f = tilelab.compile(main, out_idx=[1, 2, 3, 4, 5], target=target)(a)
    i = torch.arange(64, device=device)
    assert torch.equal(b.long(), nearest_code(a, "float4_e2m1fn"))
    assert torch.equal(c.long(), i & 15)
    assert torch.equal(unpack(d, "float4_e2m1fn"), i & 15)
    assert torch.equal(e, d.view(torch.uint8))
    values = numbers(i & 15, "float4_e2m1fn")
    assert torch.equal(
        unpack(f, "float4_e2m1fn"), nearest_code(values * values + 0.5, "float4_e2m1fn")
    )


def check_sizes(target: Any, device: str) -> None:
    """Sizes of packed tensors that the call decides: T.dynamic, and T.const of the eager style."""
    n, k = T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def main(A: T.Tensor((n, k), "int4"), B: T.Tensor((n, k), "int8")):
        with T.Kernel(T.ceildiv(k, 32), T.ceildiv(n, 16), threads=64) as (bx, by):
            s = T.alloc_shared((16, 32), "int4")
            T.copy(A[by * 16, bx * 32], s)
            T.copy(s, B[by * 16, bx * 32])

    @tilelab.jit(target=target)
    def eager(A):
        N, K = T.const("N, K")
        A: T.Tensor[[N, K], "int4"]
        B = T.empty((N, K), "int8")
        with T.Kernel(N, threads=32) as i:
            for j in T.Parallel(K):
                B[i, j] = A[i, j]
        return B

    kernel = tilelab.compile(main, target=target)
    for shape in ((20, 34), (16, 64), (1, 2)):
        a = codes(shape, "int4", device)
        want = numbers(a, "int4").to(torch.int8)
        b = torch.empty(shape, dtype=torch.int8, device=device)
        kernel(pack(a, "int4"), b)
        assert torch.equal(b, want)
        assert torch.equal(eager(pack(a, "int4").view(torch.int8)), want)


DECODED = [(s, d) for s in TYPES for d in ("float32", "float16", "bfloat16")] + [
    (s, d) for s in TYPES[:-1] for d in ("int8", "int32")
]
ENCODED = [(s, d) for d in TYPES for s in ("float32", "float16", "bfloat16", "float64")] + [
    (s, d) for s in ("int8", "int32", "uint8") for d in TYPES
]
PRODUCTS = [
    ("int4", "int4", "int32"), ("int8", "int4", "int32"), ("uint4", "uint4", "int32"),
    ("float16", "float4_e2m1fn", "float32"), ("float4_e2m1fn", "float4_e2m1fn", "float32"),
    ("bfloat16", "int4", "float32"), ("float4_e2m1fn", "float8_e4m3fn", "float32"),
]  # fmt: skip
OTHERS: list[Callable[[Any, str], None]] = [check_bits, check_sizes]
