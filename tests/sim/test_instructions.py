"""The meaning of every record, run by the simulator, against numpy written another way."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.sim.programs import Block, lanes, load, ref, tile, when
from tilelab.dtypes import DTYPES
from tilelab.ir import Var, as_expr
from tilelab.layout import SharedLayout, atoms
from tilelab.layout.swizzle import TMA_SWIZZLES
from tilelab.sim import simulate
from tilelab.thread import SharedDescriptor
from tilelab.thread import intrinsics as I

NUMPY = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
NAMES = {"f16": "float16", "bf16": "bfloat16"}


def values(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(b: Block, /, **arrays: np.ndarray) -> None:
    report = simulate(b.program(), arrays)
    assert report.ok, str(report)


def read_registers(b: Block, buffer, source, count: int):
    """Statements that fill registers from row `tx` of a tensor."""
    r = Var("r", lo=0, hi=count - 1)
    return lanes(r, count, b.store(buffer, r, load(source, b.tx, r)))


def write_registers(b: Block, target, buffer, count: int):
    r = Var("r", lo=0, hi=count - 1)
    return lanes(r, count, b.store(target, (b.tx, r), load(buffer, r)))


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_and_stmatrix(num, trans):
    """Load 8x8 matrices whose rows are scattered, and store them elsewhere."""
    b = Block(64)
    src, regs = b.tensor("src", (64, 8), "float16"), b.tensor("regs", (64, 2 * num), "float16")
    out = b.tensor("out", (64, 8), "float16")
    s = b.shared("S", (64, 8))
    s2, v, c = b.shared("S2", (64, 8)), b.local("v", 2 * num, "float16"), Var("c", lo=0, hi=7)
    row = b.tx // 32 * 32 + (b.tx * 5) % 32  # lane l supplies row 5l of its warp
    b.add(
        lanes(c, 8, b.store(s, (b.tx, c), load(src, b.tx, c))),
        lanes(c, 8, b.store(s2, (b.tx, c), 0.0)),
        b.call(I.SYNCTHREADS),
        b.call(I.ldmatrix(num, trans), ref(v, 0, count=2 * num), ref(s, row, 0)),
        write_registers(b, regs, v, 2 * num),
        b.call(I.stmatrix(num, trans), ref(s2, b.tx, 0), ref(v, 0, count=2 * num)),
        b.call(I.SYNCTHREADS),
        lanes(c, 8, b.store(out, (b.tx, c), load(s2, b.tx, c))),
    )
    data = values((64, 8), NUMPY["f16"])
    got, stored = np.zeros((64, 2 * num), np.float16), np.zeros((64, 8), np.float16)
    run(b, src=data, regs=got, out=stored)
    for warp in range(2):
        for m in range(num):
            rows = [warp * 32 + (8 * m + i) * 5 % 32 for i in range(8)]
            matrix = data[rows]
            for lane in range(32):
                for e in range(2):
                    i, j = lane // 4, 2 * (lane % 4) + e
                    want = matrix[j, i] if trans else matrix[i, j]
                    assert got[warp * 32 + lane, 2 * m + e] == want
            first = warp * 32 + 8 * m
            np.testing.assert_array_equal(stored[first : first + 8], matrix)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_mma_sync(dtype):
    b = Block(64)
    name = NAMES[dtype]
    a_in, b_in = b.tensor("a", (64, 8), name), b.tensor("b", (64, 4), name)
    d_in = b.tensor("d", (64, 4))
    a, bb, d = b.local("ra", 8, name), b.local("rb", 4, name), b.local("rd", 4)
    b.add(
        read_registers(b, a, a_in, 8),
        read_registers(b, bb, b_in, 4),
        read_registers(b, d, d_in, 4),
        b.call(I.mma_sync(dtype), ref(d, 0, count=4), ref(a, 0, count=8), ref(bb, 0, count=4)),
        write_registers(b, d_in, d, 4),
    )
    ra, rb = values((64, 8), NUMPY[dtype], 1), values((64, 4), NUMPY[dtype], 2)
    rd = values((64, 4), np.dtype(np.float32), 3)
    got = rd.copy()
    run(b, a=ra, b=rb, d=got)
    for warp in range(2):
        A, B, C = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
        for lane in range(32):
            g, t, w = lane // 4, lane % 4, warp * 32 + lane
            for i in range(8):
                A[g + 8 * (i // 2 % 2), 2 * t + i % 2 + 8 * (i // 4)] = ra[w, i]
            for i in range(4):
                B[2 * t + i % 2 + 8 * (i // 2), g] = rb[w, i]
                C[g + 8 * (i // 2), 2 * t + i % 2] = rd[w, i]
        D = A @ B + C
        for lane in range(32):
            for i in range(4):
                want = D[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]
                assert abs(got[warp * 32 + lane, i] - want) < 1e-4


SHUFFLES = [
    (I.SHFL_XOR, 5, lambda x: x ^ 5), (I.SHFL_UP, 3, lambda x: x - 3 if x >= 3 else x),
    (I.SHFL_DOWN, 7, lambda x: x + 7 if x + 7 < 32 else x), (I.SHFL_INDEX, 9, lambda x: 9),
]  # fmt: skip


@pytest.mark.parametrize(("record", "operand", "source"), SHUFFLES, ids=lambda x: str(x)[:24])
def test_shuffles(record, operand, source):
    b = Block(64)
    out, v = b.tensor("out", (64,)), b.local("v", 1)
    b.add(
        b.call(record, ref(v, 0), b.tx.astype("float32"), operand), b.store(out, b.tx, load(v, 0))
    )
    got = np.zeros(64, np.float32)
    run(b, out=got)
    assert got.tolist() == [w * 32 + source(lane) for w in range(2) for lane in range(32)]


def test_quad_transpose():
    b = Block(32)
    src, out = b.tensor("src", (32, 8), "float16"), b.tensor("out", (32, 8), "float16")
    v, w = b.local("v", 8, "float16"), b.local("w", 8, "float16")
    b.add(
        read_registers(b, v, src, 8),
        b.call(I.QUAD_TRANSPOSE, ref(w, 0, count=8), ref(v, 0, count=8)),
        write_registers(b, out, w, 8),
    )
    data, got = values((32, 8), NUMPY["f16"]), np.zeros((32, 8), np.float16)
    run(b, src=data, out=got)
    for lane in range(32):
        quad, q = lane // 4 * 4, lane % 4
        for j in range(4):
            np.testing.assert_array_equal(
                got[lane, 2 * j : 2 * j + 2], data[quad + j, 2 * q : 2 * q + 2]
            )


OTHER_MMA = [
    ("f16", "float16", "f16", "float16"), ("tf32", "float32", "f32", "float32"),
    ("e4m3", "float8_e4m3fn", "f32", "float32"), ("e5m2", "float8_e5m2", "f32", "float32"),
    ("s8", "int8", "s32", "int32"), ("u8", "uint8", "s32", "int32"),
    ("f64", "float64", "f64", "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("ptx", "name", "acc", "sums"), OTHER_MMA, ids=lambda v: v)
def test_mma_sync_of_other_types(ptx, name, acc, sums):
    """Whole numbers, so that every order of adding gives the same bits; tf32 loses its tail."""
    kind, total = DTYPES[name], DTYPES[sums]
    layouts = (atoms.mma_a(kind.bits), atoms.mma_b(kind.bits), atoms.mma_c(kind.bits))
    b = Block(32)
    names = (name, name, sums)
    tensors = [
        b.tensor(t, (32, f.num_registers), n) for t, f, n in zip("abd", layouts, names, strict=True)
    ]
    held = [
        b.local(f"r{t}", f.num_registers, n) for t, f, n in zip("abd", layouts, names, strict=True)
    ]
    counts = [f.num_registers for f in layouts]
    places = [ref(r, 0, count=n) for r, n in zip(held, counts, strict=True)]
    b.add(
        *(read_registers(b, r, t, n) for r, t, n in zip(held, tensors, counts, strict=True)),
        b.call(I.mma_sync(ptx, acc=acc), places[2], places[0], places[1]),
        write_registers(b, tensors[2], held[2], counts[2]),
    )
    rng = np.random.default_rng(5)
    low = 0 if kind.kind == "uint" else -4
    a, x, d = (
        rng.integers(low, 5, (32, n)).astype(t.numpy)
        for n, t in zip(counts, (kind, kind, total), strict=True)
    )
    got = d.copy()
    run(b, a=a + np.float32(2.0**-12) if ptx == "tf32" else a, b=x, d=got)
    if ptx == "tf32":  # toward zero: -1 + 2**-12 is -(1 - 2**-10) in 10 fraction bits
        a = ((a + np.float32(2.0**-12)).view(np.uint32) & 0xFFFFE000).view(np.float32)

    def matrix(regs, layout):
        full = np.zeros(layout.shape)
        for lane, r in np.ndindex(*regs.shape):
            full[layout.element_of(lane, r)] = regs[lane, r]
        return full

    product = matrix(a, layouts[0]) @ matrix(x, layouts[1]) + matrix(d, layouts[2])
    np.testing.assert_array_equal(matrix(got, layouts[2]), product.astype(total.numpy))


@pytest.mark.parametrize("nbytes", [4, 8, 16])
def test_cp_async_and_zero_fill(nbytes):
    b = Block(32)
    n = nbytes // 4
    src, out = b.tensor("src", (20 * n,)), b.tensor("out", (2, 32 * n))
    s, r = b.shared("S", (2, 32 * n), "float32"), Var("r", lo=0, hi=n - 1)
    b.add(
        when(b.tx < 20, b.call(I.cp_async(nbytes), ref(s, 0, b.tx * n), ref(src, b.tx * n)),
             orelse=(lanes(r, n, b.store(s, (0, b.tx * n + r), -1.0)),)),
        b.call(I.cp_async_zfill(nbytes), ref(s, 1, b.tx * n), ref(src, b.tx * n), b.tx < 20),
        b.call(I.CP_ASYNC_COMMIT),
        b.call(I.cp_async_wait(0)),
        lanes(r, n, b.store(out, (0, b.tx * n + r), load(s, 0, b.tx * n + r)),
              b.store(out, (1, b.tx * n + r), load(s, 1, b.tx * n + r))),
    )  # fmt: skip
    data, got = values((20 * n,), np.dtype(np.float32)), np.zeros((2, 32 * n), np.float32)
    run(b, src=data, out=got)
    np.testing.assert_array_equal(got[0], np.concatenate([data, np.full(12 * n, -1)]))
    np.testing.assert_array_equal(got[1], np.concatenate([data, np.zeros(12 * n)]))


@pytest.mark.parametrize("corner", [(0, 0), (24, 3), (-8, -2), (56, 60)])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_tma_load_and_store(swizzle, corner):
    """Boxes partly outside read zeros and are written where they are inside only."""
    cols = (swizzle or 64) // 2
    b = Block(32)
    src, out = b.tensor("src", (64, 72), "float16"), b.tensor("out", (64, 72), "float16")
    seen = b.tensor("seen", (16, cols), "float16")
    layout = None
    if swizzle:
        layout = SharedLayout((16, cols), 16, TMA_SWIZZLES[swizzle], panel=cols)
    s, full = b.shared("S", (16, cols), layout=layout), b.barriers("full", 1)
    load_map = b.tensor_map(src, (cols, 16), swizzle)
    store_map = b.tensor_map(out, (cols, 16), swizzle)
    x, y = corner
    to_x, to_y = max(x, 0), max(y, 0)  # the chip stores from no negative coordinate
    i = Var("i", lo=0, hi=16 * cols // 32 - 1)
    row, col = (i * 32 + b.tx) // cols, (i * 32 + b.tx) % cols
    b.add(
        when(b.tx == 0, b.call(I.MBARRIER_INIT, ref(full, 0), 1), b.call(I.MBARRIER_INIT_FENCE)),
        b.call(I.SYNCTHREADS),
        when(b.tx == 0, b.call(I.MBARRIER_EXPECT_TX, ref(full, 0), 32 * cols),
             b.call(I.tma_load(2), load_map, ref(full, 0), ref(s, 0, 0), x, y)),
        b.call(I.MBARRIER_WAIT, ref(full, 0), 0),
        lanes(i, 16 * cols // 32, b.store(seen, (row, col), load(s, row, col))),
        when(b.tx == 0, b.call(I.tma_store(2), store_map, ref(s, 0, 0), to_x, to_y),
             b.call(I.TMA_STORE_COMMIT), b.call(I.tma_store_wait(0))),
    )  # fmt: skip
    data, got = values((64, 72), NUMPY["f16"]), np.full((64, 72), 7, np.float16)
    box = np.zeros((16, cols), np.float16)
    run(b, src=data, out=got, seen=box)
    padded = np.zeros((64 + 64, 72 + 128), np.float16)
    padded[32:96, 64:136] = data
    np.testing.assert_array_equal(box, padded[32 + y : 48 + y, 64 + x : 64 + x + cols])
    expected = np.full((64 + 16, 72 + cols), 7, np.float16)
    expected[to_y : to_y + 16, to_x : to_x + cols] = box
    np.testing.assert_array_equal(got, expected[:64, :72])


def canonical_offset(mn: int, k: int, lbo: int, sbo: int, swizzle: int, trans: bool) -> int:
    """Byte offset of an element of a 16-bit wgmma operand, from the PTX ISA's figures: core
    matrices of 8 x 16 bytes, gathered element by element."""
    if not trans:
        if swizzle:
            byte = mn % 8 * swizzle + mn // 8 * sbo + 2 * k
        else:
            byte = mn % 8 * 16 + mn // 8 * sbo + k // 8 * lbo + k % 8 * 2
    elif swizzle:
        wide = swizzle // 2
        byte = mn % wide * 2 + mn // wide * lbo + k % 8 * swizzle + k // 8 * sbo
    else:
        byte = mn % 8 * 2 + mn // 8 * sbo + k % 8 * 16 + k // 8 * lbo
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    return byte ^ ((byte >> 7 & bits) << 4)


def strides(extent: int, swizzle: int, trans: bool) -> tuple[int, int]:
    """(leading, stride) offsets of a densely packed operand."""
    if trans and swizzle:
        return 16 * swizzle, 8 * swizzle  # the next columns after 16 rows of k; the next 8 rows
    if trans:
        return extent // 8 * 128, 128
    return (16, 8 * swizzle) if swizzle else (128, 256)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_wgmma_ss_reads_what_the_descriptor_says(swizzle, trans, dtype):
    n = 64
    b = Block(128)
    name = NAMES[dtype]
    raw = [b.tensor("a", (8192,), name), b.tensor("b", (8192,), name)]
    out = b.tensor("out", (128, n // 2))
    mem = [b.shared("A_shared", (8192,), name), b.shared("B_shared", (8192,), name)]
    acc, i = b.local("acc", n // 2), Var("i", lo=0, hi=63)
    fields = [strides(e, swizzle, t) for e, t in zip((64, n), trans, strict=True)]
    descriptors = [
        SharedDescriptor(ref(m, 0), *f, swizzle) for m, f in zip(mem, fields, strict=True)
    ]
    b.add(
        lanes(i, 64, *(b.store(m, i * 128 + b.tx, load(r, i * 128 + b.tx))
                       for m, r in zip(mem, raw, strict=True))),
        b.call(I.FENCE_PROXY_ASYNC),
        b.call(I.SYNCTHREADS),
        lanes(i, n // 2, b.store(acc, i, 1.0)),
        b.call(I.WARPGROUP_ARRIVE),
        b.call(I.wgmma_ss(n, dtype, *trans), *descriptors, ref(acc, 0, count=n // 2), True),
        b.call(I.WARPGROUP_COMMIT),
        b.call(I.warpgroup_wait(0)),
        write_registers(b, out, acc, n // 2),
    )  # fmt: skip
    data = [values((8192,), NUMPY[dtype], seed) for seed in (1, 2)]
    got = np.zeros((128, n // 2), np.float32)
    run(b, a=data[0], b=data[1], out=got)
    operands = [
        np.array([[float(d[canonical_offset(mn, k, *f, swizzle, t) // 2]) for k in range(16)]
                  for mn in range(64)])
        for d, f, t in zip(data, fields, trans, strict=True)
    ]  # fmt: skip
    expected = operands[0] @ operands[1].T + 1
    for t in range(128):
        for r in range(n // 2):
            row = 16 * (t // 32) + t % 32 // 4 + 8 * (r // 2 % 2)
            col = 8 * (r // 4) + 2 * (t % 4) + r % 2
            assert abs(got[t, r] - expected[row, col]) < 1e-3


def test_wgmma_rs_takes_a_from_registers():
    b = Block(128)
    a_in, b_in = b.tensor("a", (128, 8), "float16"), b.tensor("b", (16, 64), "float16")
    out = b.tensor("out", (128, 32))
    s = b.shared("B_shared", (1, 16, 64), layout=tile(16, 64, 1))
    a, acc, i = b.local("ra", 8, "float16"), b.local("acc", 32), Var("i", lo=0, hi=7)
    row, col = (i * 128 + b.tx) // 64, (i * 128 + b.tx) % 64
    descriptor = SharedDescriptor(ref(s, 0, 0, 0), 16, 1024, 128)
    b.add(
        read_registers(b, a, a_in, 8),
        lanes(i, 8, b.store(s, (as_expr(0), row, col), load(b_in, row, col))),
        b.call(I.FENCE_PROXY_ASYNC),
        b.call(I.SYNCTHREADS),
        b.call(I.WARPGROUP_ARRIVE),
        b.call(I.wgmma_rs(64, "f16", True), ref(a, 0, count=8), descriptor,
               ref(acc, 0, count=32), False),
        b.call(I.WARPGROUP_COMMIT),
        b.call(I.warpgroup_wait(0)),
        write_registers(b, out, acc, 32),
    )  # fmt: skip
    ra, rb = values((128, 8), NUMPY["f16"], 1), values((16, 64), NUMPY["f16"], 2)
    got = np.zeros((128, 32), np.float32)
    run(b, a=ra, b=rb, out=got)
    A = np.zeros((64, 16))
    for t in range(128):
        for r in range(8):
            A[
                16 * (t // 32) + t % 32 // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)
            ] = ra[t, r]
    expected = A @ rb.astype(np.float64)
    for t in range(128):
        for r in range(32):
            row = 16 * (t // 32) + t % 32 // 4 + 8 * (r // 2 % 2)
            assert abs(got[t, r] - expected[row, 8 * (r // 4) + 2 * (t % 4) + r % 2]) < 1e-3
