"""Layouts that the hardware fixes, as fragments; and the block-level layouts built from them.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 / m16n8k32 / m16n8k8", "Warp-level matrix load
instruction: ldmatrix", "Asynchronous Warpgroup Level Matrix Instructions: Register Fragments".
A "register" here is one element slot; 32-bit registers hold 32/element_bits neighbouring slots.
Threads count within a warp (mma, ldmatrix) or a warpgroup (wgmma).
"""

from __future__ import annotations

from typing import Literal

from tilelab.target import WARP

from .digits import Axes, Digit, Index, malformed
from .fragment import Fragment

WGMMA_ROWS = 64
WGMMA_MAX_COLS = 256


def _parts(bits: int) -> tuple[int, int]:
    """Neighbours along k that a lane holds, and how many 8-row and k blocks an instruction has."""
    if bits not in (8, 16, 32, 64):
        raise malformed(f"no mma fragment of {bits}-bit elements here", hint="8, 16, 32 or 64")
    return (1, 1) if bits == 64 else (32 // bits, 2)


def mma_a(element_bits: int = 16) -> Fragment:
    """Operand A (16 x k) of mma.m16n8k{256/element_bits}: 8-, 16- or 32-bit (tf32) elements; of
    mma.m8n8k4 for 64-bit elements (8 x 4).

    For 16 bits, a0..a7: row l/4 (+8 for a2 a3 a6 a7), column 2(l%4) + i%2 (+8 from a4 on).
    """
    e, blocks = _parts(element_bits)
    rows = (Digit(8, "thread", 4), Digit(blocks, "register", e))
    cols = (Digit(e, "register", 1), Digit(4, "thread", 1), Digit(blocks, "register", 2 * e))
    return Fragment((8 * blocks, 4 * e * blocks), (rows, cols))


def mma_b(element_bits: int = 16) -> Fragment:
    """Operand B (k x 8) of mma.m16n8k{256/element_bits} or mma.m8n8k4, indexed (k, n).

    For 16 bits, b0..b3: k = 2(l%4) + i%2 (+8 from b2 on), n = l/4.
    """
    e, blocks = _parts(element_bits)
    rows = (Digit(e, "register", 1), Digit(4, "thread", 1), Digit(blocks, "register", e))
    return Fragment((4 * e * blocks, 8), (rows, (Digit(8, "thread", 4),)))


def mma_c(operand_bits: int = 16) -> Fragment:
    """Accumulator C/D (16 x 8) of every mma.m16n8k*, or of mma.m8n8k4 (8 x 8, 64-bit operands).

    c0..c3: row l/4 (+8 from c2 on), column 2(l%4) + i%2.
    """
    _, blocks = _parts(operand_bits)
    rows = (Digit(8, "thread", 4), Digit(blocks, "register", 2))
    cols = (Digit(2, "register", 1), Digit(4, "thread", 1))
    return Fragment((8 * blocks, 8), (rows, cols))


def mma_m16n8k16_a() -> Fragment:
    """A, 16 x 16 of 16-bit elements: 8 slots a lane."""
    return mma_a(16)


def mma_m16n8k16_b() -> Fragment:
    """B, 16 (k) x 8 (n) of 16-bit elements: 4 slots a lane."""
    return mma_b(16)


def mma_m16n8k16_c() -> Fragment:
    """C and D, 16 x 8 of f32: 4 slots a lane."""
    return mma_c()


def _warpgroup_rows(step: int) -> tuple[Digit, ...]:
    """64 rows: l/4, then +8 in another register, then 16 rows a warp."""
    return (Digit(8, "thread", 4), Digit(2, "register", step), Digit(4, "thread", WARP))


def wgmma_accumulator(n: int) -> Fragment:
    """Accumulator D (64 x n) of wgmma.m64n{n}k*: n/2 slots a thread.

    d[4j], d[4j+1]: row 16(t/32) + (t%32)/4, columns 8j + 2(t%4) and the next; d[4j+2], d[4j+3]:
    eight rows below. Raises TileValueError unless n is a multiple of 8 up to 256.
    """
    if n % 8 or not 8 <= n <= WGMMA_MAX_COLS:
        raise malformed(f"wgmma has no accumulator of {n} columns", hint="a multiple of 8 to 256")
    cols = (Digit(2, "register", 1), Digit(4, "thread", 1), Digit(n // 8, "register", 4))
    return Fragment((WGMMA_ROWS, n), (_warpgroup_rows(2), cols))


def wgmma_a_registers(element_bits: int = 16) -> Fragment:
    """Operand A (64 x k, k = 256/element_bits) of wgmma when it comes from registers.

    Each warp holds 16 rows, laid out as ``mma_a``.
    """
    e, _ = _parts(element_bits)
    atom = mma_a(element_bits)
    axes: Axes = (_warpgroup_rows(e), atom.axes[1])
    return Fragment((WGMMA_ROWS, atom.shape[1]), axes)


def ldmatrix_fragment(trans: bool = False) -> Fragment:
    """What ldmatrix delivers of one stored 8x8 matrix of 16-bit elements: 2 slots a lane.

    Plain: lane l gets row l/4, columns 2(l%4) and the next; with .trans: column l/4, rows
    2(l%4) and the next. stmatrix is the same map the other way round.
    """
    pairs = (Digit(2, "register", 1), Digit(4, "thread", 1))
    lines = (Digit(8, "thread", 4),)
    return Fragment((8, 8), (pairs, lines) if trans else (lines, pairs))


def ldmatrix_x4(
    lane: Index, operand: Literal["a", "b"] = "a", trans: bool = False
) -> tuple[Index, Index]:
    """The (row, 16-byte chunk) in the stored 16x16 tile whose address a lane supplies.

    Rows and chunks (8 elements of 16 bits) are those of the tile as it is stored. The four
    matrices then arrive in the register order that mma.m16n8k16 wants:
    a: stored (m, k); a with trans: stored (k, m); b: stored (n, k); b with trans: stored (k, n).
    For b they are the fragments of two n8 blocks, (b0..b3) of the first before the second.
    stmatrix.x4 of two neighbouring 16x8 accumulators uses ("a", False).
    """
    if (operand == "a") != trans:
        return lane % 16, lane // 16
    return lane % 8 + lane // 16 * 8, lane // 8 % 2


def _share(extent: int, unit: int, parts: int, what: str) -> int:
    """How many units of an extent each of ``parts`` gets; TileValueError if it is not whole."""
    if parts < 1 or extent < 1 or extent % (unit * parts):
        raise malformed(
            f"{what} = {extent} cannot be shared by {parts} in pieces of {unit}",
            hint=f"{what} must be a multiple of {unit * parts}",
        )
    return extent // (unit * parts)


def mma_accumulator(
    block_m: int,
    block_n: int,
    warps_m: int,
    warps_n: int,
    m_fastest: bool = True,
    operand_bits: int = 16,
) -> Fragment:
    """Accumulator of a block: warps in a grid, each owning a contiguous sub-block of mma_c tiles.

    Warp number = wm + warps_m*wn (or wn + warps_n*wm if not ``m_fastest``). In a warp the slots
    are 4*(n8 block + n8 blocks a warp * m16 block) + i (2*(...) + i for 64-bit operands).
    """
    atom = mma_c(operand_bits)
    times = (
        _share(block_m, atom.shape[0], warps_m, "block_m"),
        _share(block_n, 8, warps_n, "block_n"),
    )
    return atom.repeat(*times).spatial(warps_m, warps_n, order=0 if m_fastest else 1)


def mma_operand_a(
    block_m: int,
    block_k: int,
    warps_m: int,
    warps_n: int,
    m_fastest: bool = True,
    element_bits: int = 16,
) -> Fragment:
    """Operand A (block_m x block_k) in registers, matching ``mma_accumulator``.

    Warps of one wm hold copies. Slots: (k step + k steps * m16 block) * slots + i, so that for
    16-bit elements it is the accumulator of a block_m x block_k product.
    """
    atom = mma_a(element_bits)
    m_times = _share(block_m, atom.shape[0], warps_m, "block_m")
    inner = atom.repeat(m_times, _share(block_k, atom.shape[1], 1, "block_k"))
    if m_fastest:
        return inner.spatial(warps_m, 1).replicate(warps_n)
    return inner.replicate(warps_n).spatial(warps_m, 1)


def mma_operand_b(
    block_k: int,
    block_n: int,
    warps_m: int,
    warps_n: int,
    m_fastest: bool = True,
    element_bits: int = 16,
) -> Fragment:
    """Operand B (block_k x block_n, indexed (k, n)) in registers, matching ``mma_accumulator``.

    Warps of one wn hold copies. Slots: (n8 block + n8 blocks a warp * k step) * slots + i.
    """
    atom = mma_b(element_bits)
    n_times = _share(block_n, 8, warps_n, "block_n")
    inner = atom.repeat(_share(block_k, atom.shape[0], 1, "block_k"), n_times, order=1)
    if m_fastest:
        return inner.replicate(warps_m).spatial(1, warps_n)
    return inner.spatial(1, warps_n).replicate(warps_m)


def wgmma_block_accumulator(
    block_m: int, block_n: int, warpgroups_m: int, warpgroups_n: int = 1
) -> Fragment:
    """Accumulator of a block over 128*warpgroups_m*warpgroups_n threads.

    Warpgroup number = gm + warpgroups_m*gn; each owns contiguous rows and columns, one wgmma
    per 64-row slab. Register = slab * (n/2) + r with n = block_n/warpgroups_n and r the slot of
    ``wgmma_accumulator(n)``, so each instruction's registers are neighbours.
    """
    slabs = _share(block_m, WGMMA_ROWS, warpgroups_m, "block_m")
    n = 8 * _share(block_n, 8, warpgroups_n, "block_n")
    return wgmma_accumulator(n).repeat(slabs, 1).spatial(warpgroups_m, warpgroups_n, order=0)


def wgmma_block_a(
    block_m: int, block_k: int, warpgroups_m: int, warpgroups_n: int = 1, element_bits: int = 16
) -> Fragment:
    """Operand A (block_m x block_k) in registers, matching ``wgmma_block_accumulator``.

    Register = (slab * k steps + k step) * slots + i; warpgroups of one gm hold copies.
    """
    slabs = _share(block_m, WGMMA_ROWS, warpgroups_m, "block_m")
    atom = wgmma_a_registers(element_bits)
    atom = atom.repeat(slabs, _share(block_k, atom.shape[1], 1, "block_k"))
    return atom.spatial(warpgroups_m, 1).replicate(warpgroups_n)
