"""Choosing how a gemm tile is shared: instruction, grid of warps, copies of idle warps.

INSTRUCTIONS is the whole knowledge of which chip multiplies what; the first row that a tile fits
is taken, and what fits none is multiplied by ordinary instructions.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tilelab.dtypes import DTYPES, DType
from tilelab.errors import TileValueError, shown
from tilelab.layout import Fragment
from tilelab.layout.atoms import (
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    wgmma_block_a,
    wgmma_block_accumulator,
)
from tilelab.layout.compose import divisors
from tilelab.target import WARP, WARPGROUP, Feature
from tilelab.thread.intrinsics.tensor_core import OPERANDS, accumulator_type, operand_type
from tilelab.thread.intrinsics.wgmma import MAX_COLS, wgmma_width

MMA_N = 8  # columns of every mma instruction
Kind = Literal["wgmma", "mma", "simt"]


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
        return cls.AUTO if value is None else cls(value)

    @classmethod
    def _missing_(cls, value: object) -> GemmWarpPolicy:
        raise TileValueError(
            f"policy {shown(value)} is not known", code="TL1514",
            hint="use T.GemmWarpPolicy.Square, FullRow or FullCol",
        )  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """A row of INSTRUCTIONS: what the program's operands may be, and what multiplies them.

    A and B have any two of the types `operands`, C one of `sums`; `rows` are those of one
    instruction. `reads_as`: operands of another type are converted to this one, exactly, in
    registers. How deep one instruction reaches along K follows from the operand's bits.
    """

    kind: Kind
    operands: tuple[str, ...]
    sums: tuple[str, ...]
    rows: int
    needs: Feature
    reads_as: str = ""

    def multiplies(self, a: DType, b: DType, c: DType) -> bool:
        """Whether the row is about these element types."""
        return a.name in self.operands and b.name in self.operands and c.name in self.sums

    def operand(self, dtype: DType) -> DType:
        """The type that a program's operand has in the instruction."""
        return DTYPES[self.reads_as] if self.reads_as else dtype

    def k(self, dtype: DType) -> int:
        """Steps along K of one instruction."""
        return OPERANDS[operand_type(self.operand(dtype))].k


_FP8 = ("float8_e4m3fn", "float8_e5m2")
_INT8 = ("int8", "uint8")
INSTRUCTIONS = (
    Instruction("wgmma", ("float16",), ("float32", "float16"), 64, Feature.WGMMA),
    Instruction("wgmma", ("bfloat16",), ("float32",), 64, Feature.WGMMA),
    Instruction("wgmma", ("float32",), ("float32",), 64, Feature.WGMMA),  # as tf32
    Instruction("wgmma", _FP8, ("float32", "float16"), 64, Feature.WGMMA),
    Instruction("wgmma", _INT8, ("int32",), 64, Feature.WGMMA),
    Instruction("mma", ("float16",), ("float32", "float16"), 16, Feature.MMA_SYNC),
    Instruction("mma", ("bfloat16",), ("float32",), 16, Feature.BF16),
    Instruction("mma", ("float32",), ("float32",), 16, Feature.TF32_MMA),  # as tf32
    Instruction("mma", _FP8, ("float32",), 16, Feature.FP8_MMA),
    Instruction("mma", _INT8, ("int32",), 16, Feature.INT8_MMA),
    Instruction("mma", ("float64",), ("float64",), 8, Feature.F64_MMA),
    # Every 8-bit float is a float16 too.
    Instruction("mma", ("float16", *_FP8), ("float32", "float16"), 16, Feature.MMA_SYNC, "float16"),
)
"""What tensor cores multiply, the preferred first."""


@dataclass(frozen=True)
class Side:
    """An operand: `k_major` says that K is the contiguous axis of it; `no_descriptor` why no wgmma
    descriptor can name it (empty: one can); `panel` is the width of its swizzle panels."""

    dtype: DType
    in_registers: bool
    k_major: bool
    no_descriptor: str = ""
    panel: int = 1


@dataclass(frozen=True)
class Request:
    """What a gemm asks for. `scattered` says why a fragment is no whole matrix (empty: all are):
    instructions that fix a fragment's layout cannot serve a part of one."""

    m: int
    n: int
    k: int
    threads: int
    policy: GemmWarpPolicy
    a: Side
    b: Side
    c: DType
    scattered: str = ""


@dataclass(frozen=True)
class GemmPlan:
    """`warps_m` x `warps_n` warps (mma) or warpgroups (wgmma) share the tile; `copies` sets of
    them compute the same (threads that a small tile cannot use). `k` counts one whole tile.
    `row` is None for ordinary instructions. `passed_over`: why better rows were not taken."""

    kind: Kind
    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    copies: int
    a: DType
    b: DType
    c: DType
    row: Instruction | None
    why: str
    passed_over: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of one instruction."""
        assert self.row is not None
        return self.row.rows

    @property
    def k_step(self) -> int:
        """Steps along K of one instruction."""
        assert self.row is not None
        return self.row.k(self.a)

    @property
    def multiplied(self) -> tuple[DType, DType]:
        """The types of A and B in the instruction."""
        assert self.row is not None
        return self.row.operand(self.a), self.row.operand(self.b)

    @property
    def types(self) -> tuple[str, str, str]:
        """The types of A, B and C as PTX spells them."""
        a, b = self.multiplied
        return operand_type(a), operand_type(b), accumulator_type(self.c)

    @property
    def instruction(self) -> str:
        """What multiplies, for pictures and notes."""
        if self.kind == "simt":
            return "SIMT"
        if self.kind == "wgmma":
            return f"wgmma.m64n{self.n // self.warps_n}k{self.k_step}"
        return f"mma.m{self.rows}n{MMA_N}k{self.k_step}"

    @property
    def remark(self) -> str:
        """What a reader may not expect of this choice; empty when it is the plain one."""
        parts = list(self.passed_over)
        if self.row is not None and self.multiplied != (self.a, self.b):
            parts.append(f"operands are converted to {self.row.reads_as} in registers")
        if not parts:
            return ""
        return f"{self.instruction}: " + "; ".join(parts)

    def operands_in_registers(
        self, transpose_a: bool, transpose_b: bool
    ) -> tuple[Fragment, Fragment]:
        """Layouts of A and B when they are fragments, as the program indexes them.

        16-bit A is laid out as an accumulator of M x K would be (so what one gemm made, the next
        one can take); warps that share rows hold copies of A, warps that share columns of B.
        """
        bits = self.multiplied[0].bits
        build = wgmma_block_a if self.kind == "wgmma" else mma_operand_a
        a = build(self.m, self.k, self.warps_m, 1, element_bits=bits).normalized()
        a = a.replicate(self.warps_n * self.copies) if self.warps_n * self.copies > 1 else a
        b = a
        if self.kind == "mma":
            b = mma_operand_b(self.k, self.n, self.warps_m, self.warps_n, element_bits=bits)
            b = b.replicate(self.copies) if self.copies > 1 else b
        return a.transpose() if transpose_a else a, b.transpose() if transpose_b else b

    def accumulator(self) -> Fragment:
        """Layout of C over the block's threads."""
        if self.kind == "wgmma":
            layout = wgmma_block_accumulator(self.m, self.n, self.warps_m, self.warps_n)
        else:
            bits = self.multiplied[0].bits
            layout = mma_accumulator(self.m, self.n, self.warps_m, self.warps_n, operand_bits=bits)
        return layout.replicate(self.copies) if self.copies > 1 else layout


@lru_cache(maxsize=512)
def plan_gemm(asked: Request, features: frozenset[Feature]) -> GemmPlan:
    """The plan for a tile: the first row of INSTRUCTIONS that it fits, else ordinary code."""
    types = (asked.a.dtype, asked.b.dtype, asked.c)
    passed_over: list[str] = []
    fitting = [r for r in INSTRUCTIONS if r.multiplies(*types)]
    for row in fitting:
        if row.needs not in features:
            continue
        problem = _problem(row, asked)
        units, size = ("warpgroup", WARPGROUP) if row.kind == "wgmma" else ("warp", WARP)
        grid = None if problem else _grid(asked, asked.threads // size, row)
        if grid is not None:
            why = _why(grid, units, asked.policy)
            sizes = (asked.m, asked.n, asked.k)
            return GemmPlan(row.kind, *sizes, *grid, *types, row, why, tuple(passed_over))
        problem = problem or f"no grid of {units}s divides {asked.m}x{asked.n}"
        passed_over.append(f"no {row.kind} because {problem}")
    if not fitting:
        passed_over.append("no tensor core multiplies {} by {} into {}".format(*types))
    why = "each thread sums the products of its own elements"
    return GemmPlan("simt", asked.m, asked.n, asked.k, 1, 1, 1, *types, None, why,
                    tuple(dict.fromkeys(passed_over)))  # fmt: skip


def _problem(row: Instruction, asked: Request) -> str:
    """Why an instruction cannot multiply the tile; empty when it can."""
    return next((p for p in _PROBLEMS[row.kind](row, asked) if p), "")


def _common_problems(row: Instruction, asked: Request) -> Iterator[str]:
    k = row.k(asked.a.dtype)
    size = WARPGROUP if row.kind == "wgmma" else WARP
    yield asked.scattered
    if asked.threads % size:
        yield f"{asked.threads} threads are no multiple of {size}"
    if asked.m % row.rows or asked.n % MMA_N or asked.k % k:
        yield (
            f"a {asked.m}x{asked.n}x{asked.k} tile (M x N x K) is not made of "
            f"{row.rows}x{MMA_N}x{k} blocks"
        )


def _wgmma_problems(row: Instruction, asked: Request) -> Iterator[str]:
    yield from _common_problems(row, asked)
    if asked.b.in_registers:
        yield "it takes B from shared memory only"
    if asked.a.in_registers and not asked.a.k_major:
        yield "it does not transpose A in registers"
    for side, name in ((asked.a, "A"), (asked.b, "B")):
        if side.in_registers:
            continue
        yield side.no_descriptor
        if not side.k_major and not OPERANDS[operand_type(side.dtype)].transposes:
            yield f"it transposes 16-bit operands only, and K is not the last axis of {name}"


_PROBLEMS: dict[str, Callable[[Instruction, Request], Iterator[str]]] = {
    "wgmma": _wgmma_problems, "mma": _common_problems,
}  # fmt: skip


def _why(grid: tuple[int, int, int], unit: str, policy: GemmWarpPolicy) -> str:
    rows, cols, copies = grid
    text = f"{rows} x {cols} {unit}s over rows x columns"
    if policy is not GemmWarpPolicy.AUTO:
        text += f", policy {policy.name}"
    return text + (f", {copies} copies of a small tile" if copies > 1 else "")


def _grid(asked: Request, units: int, row: Instruction) -> tuple[int, int, int] | None:
    """(units over rows, over columns, copies): the fewest copies, then what the policy wants."""
    m, n = asked.m, asked.n
    best: tuple[tuple[float, ...], tuple[int, int, int]] | None = None
    for used in divisors(units):
        for rows in divisors(used):
            cols = used // rows
            if m % (row.rows * rows) or n % (MMA_N * cols):
                continue
            if row.kind == "wgmma" and (used < units or not _wgmma_columns(asked, cols)):
                continue
            traffic = _traffic(m // rows, n // cols, row)
            wanted = _preference(traffic, rows, cols, asked.policy)
            cost = (units // used, *wanted)
            if best is None or cost < best[0]:
                best = (cost, (rows, cols, units // used))
    return None if best is None else best[1]


def _wgmma_columns(asked: Request, cols: int) -> bool:
    """Whether one wgmma has as many columns as a warpgroup gets, and these begin at a panel of B
    where N is its contiguous axis."""
    n = asked.n // cols
    whole = asked.b.k_major or cols == 1 or n % asked.b.panel == 0
    return n <= MAX_COLS and wgmma_width(n, accumulator_type(asked.c)) and whole


def _traffic(m: int, n: int, row: Instruction) -> int:
    """Rows of A and columns of B that a unit reads for its m x n part of the tile: a warp keeps
    them in registers, a warpgroup reads both anew for every wgmma, which has `row.rows` rows."""
    return m + n if row.kind == "mma" else m // row.rows * (row.rows + n)


def _preference(traffic: int, rows: int, cols: int, policy: GemmWarpPolicy) -> tuple[float, float]:
    """Smaller is better: what the policy asks, then the least operand traffic."""
    if policy is GemmWarpPolicy.FullRow:
        return (cols, 0.0)
    if policy is GemmWarpPolicy.FullCol:
        return (rows, 0.0)
    return (traffic, cols)
