"""Choosing how a gemm tile is shared: instruction, grid of warps, copies of idle warps."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tilelab.dtypes import DType
from tilelab.errors import Loc, TileValueError
from tilelab.layout import Fragment
from tilelab.layout.atoms import mma_accumulator, mma_operand_b, wgmma_block_accumulator

WARP, WARPGROUP = 32, 128
MMA_M, MMA_N, MMA_K = 16, 8, 16  # mma.m16n8k16 for 16-bit operands
PTX_TYPES = {"float16": "f16", "bfloat16": "bf16"}
WGMMA_M, WGMMA_MAX_N = 64, 256  # wgmma.m64nNk16


class GemmWarpPolicy(enum.IntEnum):
    """How the warps of a block share an M x N tile.

    Square balances rows and columns, FullRow gives every warp whole rows of the tile, FullCol
    whole columns. AUTO (the default) lets the compiler choose.
    """

    Square = 0
    FullRow = 1
    FullCol = 2
    AUTO = 3

    @classmethod
    def of(cls, value: Any) -> GemmWarpPolicy:
        """The policy that `value` spells (None: AUTO). Raises TileValueError (TL1514)."""
        if value is None:
            return cls.AUTO
        try:
            return cls(value)
        except ValueError as error:
            raise TileValueError(
                f"policy {value!r} is not known",
                code="TL1514",
                hint="use T.GemmWarpPolicy.Square, FullRow or FullCol",
            ) from error


@dataclass(frozen=True)
class GemmPlan:
    """`warps_m` x `warps_n` warps (mma) or warpgroups (wgmma) share the tile; `copies` sets of
    them compute the same (threads that a small tile cannot use). `k` counts one whole tile."""

    kind: Literal["wgmma", "mma"]
    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    copies: int
    dtype: DType
    why: str

    @property
    def ptx_type(self) -> str:
        """The operand type as PTX spells it."""
        return PTX_TYPES[self.dtype.name]

    @property
    def instruction(self) -> str:
        if self.kind == "wgmma":
            return f"wgmma.m64n{self.n // self.warps_n}k16"
        return "mma.m16n8k16"

    def operands_in_registers(
        self, transpose_a: bool, transpose_b: bool
    ) -> tuple[Fragment, Fragment]:
        """Layouts of A and B when they are fragments, as the program indexes them.

        A is laid out as an accumulator of M x K would be (so what one gemm made, the next one
        can take); warps that share rows hold copies of A, warps that share columns of B.
        """
        if self.kind == "wgmma":
            a = wgmma_block_accumulator(self.m, self.k, self.warps_m, 1)
        else:
            a = mma_accumulator(self.m, self.k, self.warps_m, 1)
        a = a.replicate(self.warps_n * self.copies) if self.warps_n * self.copies > 1 else a
        b = mma_operand_b(self.k, self.n, self.warps_m, self.warps_n)
        b = b.replicate(self.copies) if self.copies > 1 else b
        return a.transpose() if transpose_a else a, b.transpose() if transpose_b else b

    def accumulator(self) -> Fragment:
        """Layout of C over the block's threads."""
        build = wgmma_block_accumulator if self.kind == "wgmma" else mma_accumulator
        layout = build(self.m, self.n, self.warps_m, self.warps_n)
        return layout.replicate(self.copies) if self.copies > 1 else layout


@lru_cache(maxsize=512)
def plan_gemm(
    extents: tuple[int, int, int],
    threads: int,
    policy: GemmWarpPolicy,
    dtype: DType,
    use_wgmma: bool,
    loc: Loc | None,
    label: str,
) -> GemmPlan:
    """The plan for an M x N x K tile on `threads` threads.

    Raises TileValueError (TL1515) when the tile is smaller than an instruction or the block has
    no whole number of warps.
    """
    m, n, k = extents
    if use_wgmma and threads % WARPGROUP == 0 and m % WGMMA_M == 0 and k % 16 == 0:
        grid = _grid(m, n, threads // WARPGROUP, (WGMMA_M, MMA_N), policy, WGMMA_MAX_N)
        if grid is not None and grid[2] == 1:
            return GemmPlan("wgmma", m, n, k, *grid, dtype, _why(grid, "warpgroup", policy))
    if threads % WARP:
        raise TileValueError(
            f"{label}: {threads} threads are no whole number of warps",
            code="TL1515",
            loc=loc,
            hint="use a multiple of 32 threads",
        )
    if m % MMA_M or n % MMA_N or k % MMA_K:
        raise TileValueError(
            f"{label}: a {m}x{n}x{k} tile (M x N x K) is not made of 16x8x16 blocks, the shape of "
            "the tensor-core instruction",
            code="TL1515",
            loc=loc,
            hint="make M and K multiples of 16 and N a multiple of 8",
        )
    grid = _grid(m, n, threads // WARP, (MMA_M, MMA_N), policy, n)
    assert grid is not None  # one warp can always take the whole tile
    return GemmPlan("mma", m, n, k, *grid, dtype, _why(grid, "warp", policy))


def _why(grid: tuple[int, int, int], unit: str, policy: GemmWarpPolicy) -> str:
    rows, cols, copies = grid
    text = f"{rows} x {cols} {unit}s over rows x columns"
    if policy is not GemmWarpPolicy.AUTO:
        text += f", policy {policy.name}"
    return text + (f", {copies} copies of a small tile" if copies > 1 else "")


def _grid(
    m: int, n: int, units: int, atom: tuple[int, int], policy: GemmWarpPolicy, max_n: int
) -> tuple[int, int, int] | None:
    """(units over rows, over columns, copies): the fewest copies, then what the policy wants."""
    best: tuple[tuple[float, ...], tuple[int, int, int]] | None = None
    for used in _divisors(units):
        for rows in _divisors(used):
            cols = used // rows
            if m % (atom[0] * rows) or n % (atom[1] * cols) or n // cols > max_n:
                continue
            cost = (units // used, *_preference(m // rows, n // cols, rows, cols, policy))
            if best is None or cost < best[0]:
                best = (cost, (rows, cols, units // used))
    return None if best is None else best[1]


def _preference(
    m: int, n: int, rows: int, cols: int, policy: GemmWarpPolicy
) -> tuple[float, float]:
    """Smaller is better: what the policy asks, then the least operand traffic (m + n)."""
    if policy is GemmWarpPolicy.FullRow:
        return (cols, 0.0)
    if policy is GemmWarpPolicy.FullCol:
        return (rows, 0.0)
    return (m + n, cols)


def _divisors(value: int) -> list[int]:
    return [d for d in range(1, value + 1) if value % d == 0]
