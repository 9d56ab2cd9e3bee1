"""Hardware layouts against the PTX ISA manual's formulas, written out here independently."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.errors import TileValueError
from tilelab.layout import Fragment, atoms

WARP = range(32)


def slots(fragment: Fragment) -> dict[tuple[int, int], tuple[int, ...]]:
    """(thread, slot) -> element, for all slots."""
    pairs = np.ndindex(fragment.num_threads, fragment.num_registers)
    return {(t, r): fragment.element_of(t, r) for t, r in pairs}


def test_mma_m16n8k16() -> None:
    # Manual, "Matrix Fragments for mma.m16n8k16 with floating point type", .f16/.bf16.
    a, b, c = {}, {}, {}
    for lane in WARP:
        group, tid = lane >> 2, lane % 4
        for i in range(8):
            row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
            a[lane, i] = (row, tid * 2 + (i & 1) + (0 if i < 4 else 8))
        for i in range(4):
            b[lane, i] = (tid * 2 + (i & 1) + (0 if i < 2 else 8), group)
            c[lane, i] = (group if i < 2 else group + 8, tid * 2 + (i & 1))
    assert slots(atoms.mma_m16n8k16_a()) == a
    assert slots(atoms.mma_m16n8k16_b()) == b
    assert slots(atoms.mma_m16n8k16_c()) == c


def test_mma_m16n8k32_and_k8() -> None:
    a8, b8, a32, b32 = {}, {}, {}, {}
    for lane in WARP:
        group, tid = lane >> 2, lane % 4
        for i in range(16):
            row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
            a8[lane, i] = (row, tid * 4 + (i & 3) + (0 if i < 8 else 16))
        for i in range(8):
            b8[lane, i] = (tid * 4 + (i & 3) + (0 if i < 4 else 16), group)
        for i in range(4):
            a32[lane, i] = (group if i in (0, 2) else group + 8, tid if i < 2 else tid + 4)
        for i in range(2):
            b32[lane, i] = (tid + 4 * i, group)
    assert slots(atoms.mma_a(8)) == a8 and slots(atoms.mma_b(8)) == b8
    assert slots(atoms.mma_a(32)) == a32 and slots(atoms.mma_b(32)) == b32
    with pytest.raises(TileValueError):
        atoms.mma_a(128)


def test_mma_m8n8k4_of_float64() -> None:
    # Manual, "Matrix Fragments for mma.m8n8k4 with .f64".
    a, b, c = {}, {}, {}
    for lane in WARP:
        group, tid = lane >> 2, lane % 4
        a[lane, 0], b[lane, 0] = (group, tid), (tid, group)
        for i in range(2):
            c[lane, i] = (group, tid * 2 + i)
    assert slots(atoms.mma_a(64)) == a and slots(atoms.mma_b(64)) == b
    assert slots(atoms.mma_c(64)) == c
    assert atoms.mma_accumulator(24, 16, 3, 1, operand_bits=64).num_registers == 4


@pytest.mark.parametrize("n", [8, 64, 176, 256])
def test_wgmma_accumulator(n: int) -> None:
    expected = {}
    for t in range(128):
        lane = t % 32
        for j in range(n // 8):
            for half in range(2):
                for i in range(2):
                    row = 16 * (t // 32) + lane // 4 + 8 * half
                    expected[t, 4 * j + 2 * half + i] = (row, 8 * j + 2 * (lane % 4) + i)
    fragment = atoms.wgmma_accumulator(n)
    assert slots(fragment) == expected and fragment.shape == (64, n)
    assert fragment.contiguous() == 2


def test_wgmma_a_registers() -> None:
    expected = {}
    for t in range(128):
        lane = t % 32
        for i in range(8):
            row = 16 * (t // 32) + lane // 4 + 8 * (i // 2 % 2)
            expected[t, i] = (row, 2 * (lane % 4) + i % 2 + 8 * (i // 4))
    assert slots(atoms.wgmma_a_registers()) == expected
    assert atoms.wgmma_a_registers(8).shape == (64, 32)


def deliver(stored: np.ndarray, operand: str, trans: bool) -> np.ndarray:
    """ldmatrix.x4 as the manual has it: addresses by lane, then 4 matrices to (lane, 8) slots."""
    rows = []
    for lane in WARP:
        row, chunk = atoms.ldmatrix_x4(lane, operand, trans)  # type: ignore[arg-type]
        rows.append(stored[row, chunk * 8 : chunk * 8 + 8])
    result = np.zeros((32, 8), int)
    for matrix in range(4):
        block = np.array(rows[8 * matrix : 8 * matrix + 8])
        for lane in WARP:
            for i in range(2):
                r, c = lane // 4, 2 * (lane % 4) + i
                result[lane, 2 * matrix + i] = block[c, r] if trans else block[r, c]
    return result


def test_ldmatrix_feeds_mma() -> None:
    tile = np.arange(256).reshape(16, 16)  # (m, k) for A, (k, n) for B
    for stored, trans in ((tile, False), (tile.T, True)):
        got = deliver(stored, "a", trans)
        for (lane, i), element in slots(atoms.mma_m16n8k16_a()).items():
            assert got[lane, i] == tile[element]
    for stored, trans in ((tile.T, False), (tile, True)):
        got = deliver(stored, "b", trans)
        for (lane, i), (k, n) in slots(atoms.mma_m16n8k16_b()).items():
            assert got[lane, i] == tile[k, n] and got[lane, 4 + i] == tile[k, n + 8]
    lanes = np.arange(32)
    row, chunk = atoms.ldmatrix_x4(lanes, "b", False)
    assert [(int(r), int(c)) for r, c in zip(row, chunk, strict=True)] == [
        atoms.ldmatrix_x4(lane, "b", False) for lane in WARP
    ]


def test_ldmatrix_fragment() -> None:
    plain, trans = atoms.ldmatrix_fragment(), atoms.ldmatrix_fragment(trans=True)
    for lane in WARP:
        for i in range(2):
            assert plain.element_of(lane, i) == (lane // 4, 2 * (lane % 4) + i)
            assert trans.element_of(lane, i) == (2 * (lane % 4) + i, lane // 4)


@pytest.mark.parametrize("m_fastest", [True, False])
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (4, 1), (1, 4)])
def test_mma_blocks(grid: tuple[int, int], m_fastest: bool) -> None:
    wm, wn = grid
    acc = atoms.mma_accumulator(128, 96, wm, wn, m_fastest)
    a = atoms.mma_operand_a(128, 32, wm, wn, m_fastest)
    b = atoms.mma_operand_b(32, 96, wm, wn, m_fastest)
    assert acc.num_threads == a.num_threads == b.num_threads == 32 * wm * wn
    rows, cols = 128 // wm, 96 // wn
    for warp in range(wm * wn):
        im, jn = (warp % wm, warp // wm) if m_fastest else (warp // wn, warp % wn)
        for lane in (0, 5, 31):
            t = 32 * warp + lane
            for r in range(acc.num_registers):
                tile, i = divmod(r, 4)
                m16, n8 = divmod(tile, cols // 8)
                low = atoms.mma_c().element_of(lane, i)
                want = (im * rows + 16 * m16 + low[0], jn * cols + 8 * n8 + low[1])
                assert acc.element_of(t, r) == want
            for r in range(a.num_registers):
                (m16, k), i = divmod(r // 8, 2), r % 8
                low = atoms.mma_a().element_of(lane, i)
                assert a.element_of(t, r) == (im * rows + 16 * m16 + low[0], 16 * k + low[1])
            for r in range(b.num_registers):
                (k, n8), i = divmod(r // 4, cols // 8), r % 4
                low = atoms.mma_b().element_of(lane, i)
                assert b.element_of(t, r) == (16 * k + low[0], jn * cols + 8 * n8 + low[1])


@pytest.mark.parametrize(("gm", "gn"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_wgmma_blocks(gm: int, gn: int) -> None:
    acc = atoms.wgmma_block_accumulator(256, 128, gm, gn)
    a = atoms.wgmma_block_a(256, 64, gm, gn)
    n, slabs = 128 // gn, 256 // 64 // gm
    assert acc.num_threads == a.num_threads == 128 * gm * gn
    for group in range(gm * gn):
        base_m, base_n = group % gm * (256 // gm), group // gm * n
        for t in (0, 37, 127):
            for slab in range(slabs):
                for r in range(n // 2):
                    row, col = atoms.wgmma_accumulator(n).element_of(t, r)
                    want = (base_m + 64 * slab + row, base_n + col)
                    assert acc.element_of(128 * group + t, slab * (n // 2) + r) == want
                for step in range(4):
                    row, col = atoms.wgmma_a_registers().element_of(t, 3)
                    want = (base_m + 64 * slab + row, 16 * step + col)
                    assert a.element_of(128 * group + t, (slab * 4 + step) * 8 + 3) == want


def test_accumulator_is_the_next_operand() -> None:
    # Two neighbouring n8 blocks of an accumulator are one A fragment of the next product.
    for lane in WARP:
        for i in range(8):
            block, j = divmod(i, 4)
            row, col = atoms.mma_c().element_of(lane, j)
            assert atoms.mma_a().element_of(lane, i) == (row, col + 8 * block)


def test_wrong_sizes() -> None:
    for wrong in (
        lambda: atoms.wgmma_accumulator(12),
        lambda: atoms.wgmma_accumulator(264),
        lambda: atoms.mma_accumulator(100, 64, 1, 1),
        lambda: atoms.mma_accumulator(128, 64, 1, 16),
        lambda: atoms.wgmma_block_accumulator(64, 128, 2, 1),
    ):
        with pytest.raises(TileValueError):
            wrong()
