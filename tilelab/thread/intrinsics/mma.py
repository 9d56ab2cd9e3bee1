"""mma.sync and the matrix loads and stores that feed it (warp-wide)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, SMEM_ADDR
from tilelab.thread.intrinsics.tensor_core import ACCUMULATORS, OPERANDS, accumulated, multiplicand


def _matrix_template(name: str) -> str:
    """Declaration that the specialisations of ldmatrix or stmatrix stand under."""
    args = "void* regs, const void* row" if name == "ldmatrix" else "void* row, const void* regs"
    return f"template <int NUM, bool TRANS> {INLINE} void {name}({args});"


def _regs(count: int, first: int = 0) -> str:
    return ", ".join(f"%{first + i}" for i in range(count))


@recorded
def ldmatrix(num: int, trans: bool) -> Intrinsic:
    """Load `num` matrices of 8 rows of 16 bytes; lanes 8i to 8i+7 give the rows of matrix i.

    `dst` receives 4*num bytes per lane (2*num elements of 16 bits); `src` is this lane's row
    address. Only 16-bit elements can be transposed: the instruction moves pairs of bytes.
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
        rows = m.load_rows(src, np.arange(8 * num))  # (8*num, row, ..., blocks, warps)
        m.store(dst, deal_matrices(rows, num, trans))

    return Intrinsic(
        f"ldmatrix_x{num}{'_trans' if trans else ''}",
        (Param("dst", "writes"), Param("src", "reads")),
        f"tl::ldmatrix<{num}, {_flag(trans)}>({{dst}}, {{src}})", text, meaning,
        group="warp", cost="shared", needs=Feature.LDMATRIX,
        source="PTX ISA, ldmatrix", requires=(SMEM_ADDR,),
    )  # fmt: skip


@recorded
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
    """Stored rows (8*num, elements of 16 bytes, ..., warps) -> registers (slots, ..., lanes)."""
    length = rows.shape[1]
    tiles = rows.reshape(num, 8, length, *rows.shape[2:])  # matrix, row, column
    if trans:
        tiles = tiles.swapaxes(1, 2)
    each = length // 4
    # lane l of a warp has row l/4 of every matrix, and of it the 4 bytes number l%4
    split = tiles.reshape(num, 8, 4, each, *rows.shape[2:])
    regs = np.moveaxis(split, (3, 1, 2), (1, -2, -1))  # matrix, element, ..., warps, row, quarter
    return regs.reshape(each * num, *rows.shape[2:-1], rows.shape[-1] * 32)


def collect_matrices(regs: Array, num: int, trans: bool) -> Array:
    """Registers (2*num, ..., lanes) -> rows to store (8*num, 8, ..., warps)."""
    *middle, lanes = regs.shape[1:]
    split = regs.reshape(num, 2, *middle, lanes // 32, 8, 4)
    tiles = np.moveaxis(split, (-2, -1, 1), (1, 2, 3)).reshape(num, 8, 8, *middle, lanes // 32)
    if trans:
        tiles = tiles.swapaxes(1, 2)
    return tiles.reshape(8 * num, 8, *middle, lanes // 32)


@recorded
def mma_sync(a: str, b: str = "", acc: str = "f32") -> Intrinsic:
    """D += A * B for one tile of 16 x 8 (float64: 8 x 8) and 32 bytes of k of each operand.

    `a`, `b` (default: as `a`) and `acc` are PTX types (`tensor_core.OPERANDS`, `ACCUMULATORS`).
    Operands are laid out as `layout.atoms.mma_a`, `mma_b` and `mma_c`.
    """
    b = b or a
    left, right, sums = OPERANDS[a], OPERANDS[b], ACCUMULATORS[acc]
    double = left.bits == 64
    rows, k = (8 if double else 16), left.k
    a_slots, b_slots, d_slots = _slots(left.bits)

    def meaning(m: Machine, d: Any, x: Any, y: Any) -> None:
        m.whole(32, "mma.sync")
        m.store(d, mma_values(m.load(d, d_slots), m.load(x, a_slots), m.load(y, b_slots)))
        m.count("mma_flops", 2 * rows * 8 * k // 32)

    types = a if (a, acc) == (b, "f32") else f"{a}_{b}_{acc}"
    headers = dict.fromkeys(h for h in (left.header, right.header, sums.header) if h)
    return Intrinsic(
        f"mma_sync_{types}",
        (Param("d", "updates"), Param("a", "reads"), Param("b", "reads")),
        "tl::mma_sync({d}, {a}, {b})", _mma_text(f"m{rows}n8k{k}", a, b, acc), meaning,
        group="warp", cost="mma", flops=2 * rows * 8 * k, needs=left.mma,
        source=f"PTX ISA, mma.m{rows}n8k{k}", includes=tuple(headers),
    )  # fmt: skip


def _slots(bits: int) -> tuple[int, int, int]:
    """Elements of A, B and D that a lane holds for one instruction."""
    return (1, 1, 2) if bits == 64 else (128 // bits, 64 // bits, 4)


def _mma_text(shape: str, a: str, b: str, acc: str) -> str:
    """The helper: overloads of tl::mma_sync differ in the types of their pointers."""
    left, right, sums = OPERANDS[a], OPERANDS[b], ACCUMULATORS[acc]
    outs = sums.outputs(_slots(left.bits)[2])
    if left.bits == 64:
        casts, counts, constraint = "const double *x = a, *y = b;", (1, 1), "d"
    else:
        casts, counts, constraint = "const u32 *x = (const u32*)a, *y = (const u32*)b;", (4, 2), "r"
    ins = [f'"{constraint}"({name}[{i}])' for name, n in zip("xy", counts, strict=True)
           for i in range(n)]  # fmt: skip
    d = _regs(len(outs))
    x, y = _regs(counts[0], len(outs)), _regs(counts[1], len(outs) + counts[0])
    return f"""
{INLINE} void mma_sync({sums.cuda}* d, const {left.cuda}* a, const {right.cuda}* b) {{
{sums.packing}  {casts}
  asm volatile("mma.sync.aligned.{shape}.row.col.{acc}.{a}.{b}.{acc} "
               "{{{d}}}, {{{x}}}, {{{y}}}, {{{d}}};"
               : {", ".join(outs)}
               : {", ".join(ins)});
}}"""


def mma_values(d: Array, a: Array, b: Array) -> Array:
    """The new accumulators of a warp-wide mma, registers (slots, ..., lanes).

    The reshapes are `layout.atoms.mma_a`, `mma_b` and `mma_c` as digits of (slot, lane).
    """
    two = 1 if len(a) == 1 else 2  # float64 has one row block and one k block
    each = len(b) // two
    rows, k = 8 * two, 4 * each * two
    # a[(2c + h)*each + e] of lane 4g + t: row 8h + g, column (4c + t)*each + e
    left = _digits(a, (two, two, each), (1, -2, 0, -1, 2)).reshape(*_warps(a), rows, k)
    # b[c*each + e] of lane 4g + t: k = (4c + t)*each + e, column g
    right = _digits(b, (two, each), (0, -1, 1, -2)).reshape(*_warps(b), k, 8)
    product = left @ right
    # d[2h + e] of lane 4g + t: row 8h + g, column 2t + e
    split = product.reshape(*product.shape[:-2], two, 8, 4, 2)
    dealt = np.moveaxis(split, (-4, -1), (0, 1))
    dealt = dealt.reshape(2 * two, *product.shape[:-3], product.shape[-3] * 32)
    return accumulated(d, dealt, d.dtype)


def _warps(regs: Array) -> tuple[int, ...]:
    """Shape of the axes that stay: lane loops, blocks, warps."""
    return (*regs.shape[1:-1], regs.shape[-1] // 32)


def _digits(regs: Array, slots: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """Registers (slots, ..., lanes) as multiplicands with the digits of slot and lane last, in
    `order`: axes of the split slot number from 0, -2 and -1 the lane's row of four and place."""
    wide = multiplicand(regs).reshape(*slots, *_warps(regs), 8, 4)
    return np.moveaxis(wide, order, range(-len(order), 0))
