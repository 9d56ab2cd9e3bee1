"""mma.sync and the matrix loads and stores that feed it (warp-wide, 16-bit operands)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param
from tilelab.thread.intrinsics.helpers import INLINE, SMEM_ADDR

CUDA_TYPES = {"f16": "half", "bf16": "__nv_bfloat16"}
"""PTX operand type -> CUDA type of the tile."""
CUDA_HEADERS = {"f16": "cuda_fp16.h", "bf16": "cuda_bf16.h"}


def _matrix_template(name: str) -> str:
    """Declaration that the specialisations of ldmatrix or stmatrix stand under."""
    args = "void* regs, const void* row" if name == "ldmatrix" else "void* row, const void* regs"
    return f"template <int NUM, bool TRANS> {INLINE} void {name}({args});"


def _regs(count: int, first: int = 0) -> str:
    return ", ".join(f"%{first + i}" for i in range(count))


@cache
def ldmatrix(num: int, trans: bool) -> Intrinsic:
    """Load `num` 8x8 matrices of 16-bit elements; lanes 8i to 8i+7 give the rows of matrix i.

    `dst` receives 2*num elements per lane; `src` is this lane's row address.
    """
    assert num in (1, 2, 4)
    outs = ", ".join(f'"=r"(r[{i}])' for i in range(num))
    text = f"""
{_matrix_template("ldmatrix")}
template <> {INLINE} void ldmatrix<{num}, {_flag(trans)}>(void* regs, const void* row) {{
  u32* r = (u32*)regs;
  asm volatile("ldmatrix.sync.aligned.m8n8.x{num}{".trans" if trans else ""}.shared.b16 "
               "{{{_regs(num)}}}, [%{num}];"
               : {outs} : "r"(smem_addr(row)) : "memory");
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        m.whole(32, "ldmatrix")
        rows = m.load_rows(src, np.arange(8 * num))  # (8*num, 8, ..., blocks, warps)
        m.store(dst, deal_matrices(rows, num, trans))

    return Intrinsic(
        f"ldmatrix_x{num}{'_trans' if trans else ''}",
        (Param("dst", "writes"), Param("src", "reads")),
        f"tl::ldmatrix<{num}, {_flag(trans)}>({{dst}}, {{src}})", text, meaning,
        group="warp", cost="shared", needs=Feature.LDMATRIX,
        source="PTX ISA, ldmatrix", requires=(SMEM_ADDR,),
    )  # fmt: skip


@cache
def stmatrix(num: int, trans: bool) -> Intrinsic:
    """Store `num` 8x8 matrices of 16-bit elements: ldmatrix the other way round."""
    assert num in (1, 2, 4)
    ins = ", ".join(f'"r"(r[{i}])' for i in range(num))
    text = f"""
{_matrix_template("stmatrix")}
template <> {INLINE} void stmatrix<{num}, {_flag(trans)}>(void* row, const void* regs) {{
  const u32* r = (const u32*)regs;
  asm volatile("stmatrix.sync.aligned.m8n8.x{num}{".trans" if trans else ""}.shared.b16 "
               "[%0], {{{_regs(num, 1)}}};"
               ::"r"(smem_addr(row)), {ins} : "memory");
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        m.whole(32, "stmatrix")
        rows = collect_matrices(m.load(src, 2 * num), num, trans)
        m.store_rows(dst, np.arange(8 * num), rows)

    return Intrinsic(
        f"stmatrix_x{num}{'_trans' if trans else ''}",
        (Param("dst", "writes"), Param("src", "reads")),
        f"tl::stmatrix<{num}, {_flag(trans)}>({{dst}}, {{src}})", text, meaning,
        group="warp", cost="shared", needs=Feature.STMATRIX,
        source="PTX ISA, stmatrix", requires=(SMEM_ADDR,),
    )  # fmt: skip


def _flag(value: bool) -> str:
    return "true" if value else "false"


def deal_matrices(rows: Array, num: int, trans: bool) -> Array:
    """Stored rows (8*num, 8, ..., warps) -> registers (2*num, ..., lanes)."""
    tiles = rows.reshape(num, 8, 8, *rows.shape[2:])  # matrix, row, column
    if trans:
        tiles = tiles.swapaxes(1, 2)
    # lane l of a warp has row l/4, columns 2(l%4) and the next, of every matrix
    split = tiles.reshape(num, 8, 4, 2, *rows.shape[2:])
    regs = np.moveaxis(split, (3, 1, 2), (1, -2, -1))  # matrix, pair, ..., warps, row, quarter
    return regs.reshape(2 * num, *rows.shape[2:-1], rows.shape[-1] * 32)


def collect_matrices(regs: Array, num: int, trans: bool) -> Array:
    """Registers (2*num, ..., lanes) -> rows to store (8*num, 8, ..., warps)."""
    *middle, lanes = regs.shape[1:]
    split = regs.reshape(num, 2, *middle, lanes // 32, 8, 4)
    tiles = np.moveaxis(split, (-2, -1, 1), (1, 2, 3)).reshape(num, 8, 8, *middle, lanes // 32)
    if trans:
        tiles = tiles.swapaxes(1, 2)
    return tiles.reshape(8 * num, 8, *middle, lanes // 32)


@cache
def mma_sync(dtype: str) -> Intrinsic:
    """D += A * B for one 16x8 tile and 16 steps of k; 16-bit operands, f32 accumulators."""
    cuda = CUDA_TYPES[dtype]
    outs = ", ".join(f'"+f"(d[{i}])' for i in range(4))
    text = f"""
template <typename T> {INLINE} void mma_sync(float* d, const T* a, const T* b);
template <> {INLINE} void mma_sync<{cuda}>(float* d, const {cuda}* a, const {cuda}* b) {{
  const u32 *x = (const u32*)a, *y = (const u32*)b;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32 "
               "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
               : {outs}
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}}"""

    def meaning(m: Machine, d: Any, a: Any, b: Any) -> None:
        m.whole(32, "mma.sync")
        m.store(d, mma_values(m.load(d, 4), m.load(a, 8), m.load(b, 4)))
        m.count("mma_flops", 2 * 16 * 8 * 16 // 32)

    return Intrinsic(
        f"mma_sync_{dtype}",
        (Param("d", "updates"), Param("a", "reads"), Param("b", "reads")),
        f"tl::mma_sync<{cuda}>({{d}}, {{a}}, {{b}})", text, meaning, group="warp", cost="mma",
        needs=Feature.BF16 if dtype == "bf16" else Feature.MMA_SYNC,
        source="PTX ISA, mma.m16n8k16", includes=(CUDA_HEADERS[dtype],),
    )  # fmt: skip


def mma_values(d: Array, a: Array, b: Array) -> Array:
    """The new accumulators of a warp-wide mma.m16n8k16, registers (slots, ..., lanes).

    The reshapes are `layout.atoms.mma_a`, `mma_b` and `mma_c` as digits of (slot, lane).
    """
    # a[4c + 2h + e] of lane 4g + t: row 8h + g, column 8c + 2t + e
    left = _digits(a, (2, 2, 2), (1, -2, 0, -1, 2)).reshape(*_warps(a), 16, 16)
    # b[2c + e] of lane 4g + t: k = 8c + 2t + e, column g
    right = _digits(b, (2, 2), (0, -1, 1, -2)).reshape(*_warps(b), 16, 8)
    product = left @ right
    # d[2h + e] of lane 4g + t: row 8h + g, column 2t + e
    split = product.reshape(*product.shape[:-2], 2, 8, 4, 2)
    dealt = np.moveaxis(split, (-4, -1), (0, 1))
    return d + dealt.reshape(4, *product.shape[:-3], product.shape[-3] * 32)


def _warps(regs: Array) -> tuple[int, ...]:
    """Shape of the axes that stay: lane loops, blocks, warps."""
    return (*regs.shape[1:-1], regs.shape[-1] // 32)


def _digits(regs: Array, slots: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """Registers (slots, ..., lanes) as float32 with the digits of slot and lane last, in `order`:
    axes of the split slot number from 0, -2 and -1 the lane's row of four and place in it."""
    wide = regs.astype(np.float32).reshape(*slots, *_warps(regs), 8, 4)
    return np.moveaxis(wide, order, range(-len(order), 0))
