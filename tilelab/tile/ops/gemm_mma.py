"""Lowering of a gemm tile to mma.sync: fragments of both operands, then one block after another.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours, "ldmatrix".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelab.dtypes import DType
from tilelab.ir import (
    Buffer,
    Expr,
    Load,
    LoopKind,
    Region,
    Scope,
    Stmt,
    Store,
    Var,
    as_bool,
    as_expr,
    cast,
    const_int,
)
from tilelab.layout import Fragment
from tilelab.layout.atoms import ldmatrix_x4, mma_a, mma_b, mma_c
from tilelab.target import WARP, Feature
from tilelab.thread.intrinsics.mma import ldmatrix, mma_sync
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import guarded, loop
from tilelab.tile.ops.gemm_plan import MMA_N, GemmPlan
from tilelab.tile.ops.gemm_request import matrix_number

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm

ROW_BYTES = 16  # of a matrix that ldmatrix loads


def mma_tile(ctx: LowerContext, op: Gemm, plan: GemmPlan) -> list[Stmt]:
    """For every step of K: fetch this warp's A and B fragments, multiply all its blocks."""
    tile = WarpTile(ctx, op, plan)
    c = ctx.placed(op.c.buffer)
    steps = plan.k // plan.k_step
    kk = ctx.fresh("kk", steps)
    i, j = ctx.fresh("i", tile.rows), ctx.fresh("j", tile.cols)
    a_fetch, a_ref = tile.operand_a(i, kk)
    b_fetch, b_ref = tile.operand_b(j, kk)
    body = [*a_fetch, *b_fetch, *tile.multiply(i, j, a_ref, b_ref)]
    out = _clear(ctx, op, c, tile.first_sum(), tile.sums)
    return [*out, loop(kk, steps, LoopKind.UNROLL, body, op.loc)]


def _clear(ctx: LowerContext, op: Gemm, c: Buffer, first: Expr, count: int) -> list[Stmt]:
    """Start from 0 instead of C, always or under a condition."""
    if const_int(op.clear_accum) == 0:
        return []
    r = ctx.fresh("i", count)
    zero = Store(c, (first + r,), as_expr(0, c.dtype), loc=op.loc)
    cleared = loop(r, count, LoopKind.LANES, [zero], op.loc)
    always = const_int(op.clear_accum) is not None
    return [cleared if always else guarded(as_bool(op.clear_accum), [cleared], op.loc)]


@dataclass(frozen=True)
class Held:
    """Registers that fragments of a step of K are kept in, from register `first` on."""

    registers: Buffer
    first: int


class WarpTile:
    """The part of a tile that one warp multiplies, and how its operands come to registers.

    `operand_a` and `operand_b` give the statements that fetch all fragments of one step of K, and
    the place of block i (or j)'s: in registers of their own, or in those of `held`.
    """

    def __init__(self, ctx: LowerContext, op: Gemm, plan: GemmPlan) -> None:
        self.ctx, self.op, self.plan = ctx, op, plan
        self.rows = plan.m // plan.warps_m // plan.rows
        self.cols = plan.n // plan.warps_n // MMA_N
        self.lane, warp = ctx.tid % WARP, ctx.tid // WARP
        self.row0 = warp % plan.warps_m * (self.rows * plan.rows)
        self.col0 = warp // plan.warps_m % plan.warps_n * (self.cols * MMA_N)

    @property
    def fragments(self) -> tuple[int, int]:
        """Registers (elements) of A's and of B's fragments of one step of K."""
        a, b = (self.plan.multiplied[n].bits for n in (0, 1))
        return self.rows * mma_a(a).num_registers, self.cols * mma_b(b).num_registers

    @property
    def sums(self) -> int:
        """Registers of C that a thread holds."""
        return self.rows * self.cols * mma_c(self.plan.multiplied[0].bits).num_registers

    def first_sum(self) -> Expr:
        """Where C's registers begin."""
        return self.first_register(self.op.c, self.sums)

    def multiply(self, i: Var, j: Var, a_ref: Ref, b_ref: Ref) -> list[Stmt]:
        """All blocks of one step of K, whose fragments lie at `a_ref` (of i) and `b_ref` (of j)."""
        slots = mma_c(self.plan.multiplied[0].bits).num_registers
        at = self.first_sum() + (i * self.cols + j) * slots
        block = Ref(self.ctx.placed(self.op.c.buffer), (at,), slots)
        a, b, acc = self.plan.types
        loc = self.op.loc
        one = Invoke(mma_sync(a, b, acc), (block, a_ref, b_ref), loc=loc)
        inner = loop(j, self.cols, LoopKind.UNROLL, [one], loc)
        return [loop(i, self.rows, LoopKind.UNROLL, [inner], loc)]

    def block_a(self, i: Var, held: Held) -> Ref:
        """The fragment of block i."""
        slots = mma_a(self.plan.multiplied[0].bits).num_registers
        return Ref(held.registers, (held.first + i * slots,), slots)

    def block_b(self, j: Var, held: Held) -> Ref:
        """The fragment of block j."""
        slots = mma_b(self.plan.multiplied[1].bits).num_registers
        return Ref(held.registers, (held.first + j * slots,), slots)

    def _own(self, region: Region, count: int, dtype: DType, held: Held | None) -> Held:
        name = f"{region.buffer.name}_frag"
        return held or Held(self.ctx.temp(name, count, dtype), 0)

    def first_register(self, region: Region, count: int) -> Expr:
        """Where the registers of a fragment's matrix begin: each matrix takes `count`."""
        return matrix_number(region) * count

    def operand_a(self, i: Var, kk: Expr, held: Held | None = None) -> tuple[list[Stmt], Ref]:
        """A: `rows` blocks."""
        op, dtype = self.op, self.plan.multiplied[0]
        atom = mma_a(dtype.bits)
        slots, steps = atom.num_registers, self.plan.k // self.plan.k_step
        if op.a.buffer.scope is Scope.FRAGMENT:
            place = self.first_register(op.a, self.rows * steps * slots) + (i * steps + kk) * slots
            return self._from_registers(op.a, place, i, self.rows, slots, dtype)
        own = self._own(op.a, self.rows * slots, dtype, held)
        row, k = self.row0 + i * self.plan.rows, kk * self.plan.k_step
        if self._by_rows(op.a, dtype, op.transpose_a):
            r, chunk = ldmatrix_x4(self.lane, "a", trans=op.transpose_a)
            at = chunk * (ROW_BYTES // dtype.bytes)
            index = (k + r, row + at) if op.transpose_a else (row + r, k + at)
            operands = (self.block_a(i, own), self._address(op.a, index))
            fetch: Stmt = Invoke(ldmatrix(4, op.transpose_a), operands, loc=op.loc)
        else:
            first = own.first + i * slots
            fetch = self._by_elements(op.a, own.registers, first, atom, (row, k), op.transpose_a)
        done = loop(i, self.rows, LoopKind.UNROLL, [fetch], op.loc)
        return [done], self.block_a(i, own)

    def operand_b(self, j: Var, kk: Expr, held: Held | None = None) -> tuple[list[Stmt], Ref]:
        """B: `cols` blocks."""
        op, dtype = self.op, self.plan.multiplied[1]
        atom = mma_b(dtype.bits)
        slots, steps = atom.num_registers, self.plan.k // self.plan.k_step
        if op.b.buffer.scope is Scope.FRAGMENT:
            place = self.first_register(op.b, self.cols * steps * slots)
            place = place + (j + kk * self.cols) * slots
            return self._from_registers(op.b, place, j, self.cols, slots, dtype)
        own = self._own(op.b, self.cols * slots, dtype, held)
        k = kk * self.plan.k_step
        if self._by_rows(op.b, dtype, not op.transpose_b):
            fetches: list[Stmt] = self._matrices_of_b(own, slots, k)
        else:
            col = self.ctx.fresh("j", self.cols)
            origin = (k, self.col0 + col * MMA_N)
            first = own.first + col * slots
            fetch = self._by_elements(op.b, own.registers, first, atom, origin, op.transpose_b)
            fetches = [loop(col, self.cols, LoopKind.UNROLL, [fetch], op.loc)]
        return fetches, self.block_b(j, own)

    def _matrices_of_b(self, own: Held, slots: int, k: Expr) -> list[Stmt]:
        """All of this warp's columns: two n8 blocks per ldmatrix.x4, a last odd one by .x2."""
        op, cols = self.op, self.cols
        trans = not op.transpose_b
        r, chunk = ldmatrix_x4(self.lane, "b", trans=trans)
        out: list[Stmt] = []
        if cols // 2:
            j = self.ctx.fresh("j", cols // 2)
            source = self._address(op.b, self._b_index(r, chunk, self.col0 + j * (2 * MMA_N), k))
            target = Ref(own.registers, (own.first + j * (2 * slots),), 2 * slots)
            fetch = Invoke(ldmatrix(4, trans), (target, source), loc=op.loc)
            out.append(loop(j, cols // 2, LoopKind.UNROLL, [fetch], op.loc))
        if cols % 2:
            # Only lanes 0-15 give addresses; the upper half repeats them, so all stay inside.
            r, chunk = ldmatrix_x4(self.lane % 16, "b", trans=trans)
            last = cols - 1
            source = self._address(op.b, self._b_index(r, chunk, self.col0 + last * MMA_N, k))
            target = Ref(own.registers, (as_expr(own.first + last * slots),), slots)
            out.append(Invoke(ldmatrix(2, trans), (target, source), loc=op.loc))
        return out

    def _b_index(self, r: Expr, chunk: Expr, col: Expr, k: Expr) -> tuple[Expr, Expr]:
        at = chunk * (ROW_BYTES // self.plan.multiplied[1].bytes)
        return (col + r, k + at) if self.op.transpose_b else (k + r, col + at)

    def _address(self, region: Region, index: tuple[Expr, Expr]) -> Ref:
        return Ref(self.ctx.placed(region.buffer), region.index(index))

    def _by_rows(self, region: Region, dtype: DType, trans: bool) -> bool:
        """Whether ldmatrix can fetch it: whole rows of 16 bytes, with K along them unless the
        elements have 16 bits, and nothing to convert."""
        size = dtype.bytes
        if region.dtype != dtype or not self.ctx.target.has(Feature.LDMATRIX):
            return False
        if dtype.bits == 64 or (trans and dtype.bits != 16):
            return False
        extent = const_int(region.tile_shape[-1]) or 1
        return self.ctx.vector_width(region, extent, ROW_BYTES // size) * size == ROW_BYTES

    def _by_elements(
        self, region: Region, temp: Buffer, first: Expr, atom: Fragment,
        origin: tuple[Expr, Expr], transposed: bool,
    ) -> Stmt:  # fmt: skip
        """One block at `origin` (as the instruction indexes it), element by element."""
        s = self.ctx.fresh("s", atom.num_registers)
        x, y = (o + e for o, e in zip(origin, atom.element_of(self.lane, s), strict=True))
        index = region.index((y, x) if transposed else (x, y))
        source = Load(self.ctx.placed(region.buffer), index)
        put = Store(temp, (first + s,), cast(source, temp.dtype), loc=self.op.loc)
        return loop(s, atom.num_registers, LoopKind.LANES, [put], self.op.loc)

    def _from_registers(
        self, region: Region, first: Expr, block: Var, blocks: int, slots: int, dtype: DType
    ) -> tuple[list[Stmt], Ref]:
        """Fragments that threads hold already, converted where the instruction wants it."""
        held = self.ctx.placed(region.buffer)
        if region.dtype == dtype:
            return [], Ref(held, (first,), slots)
        temp = self.ctx.temp(f"{region.buffer.name}_{dtype.name}", blocks * slots, dtype)
        s = self.ctx.fresh("s", slots)
        value = cast(Load(held, (first + s,)), dtype)
        loc = self.op.loc
        put = Store(temp, (block * slots + s,), value, loc=loc)
        convert = loop(s, slots, LoopKind.LANES, [put], loc)
        done = loop(block, blocks, LoopKind.UNROLL, [convert], loc)
        return [done], Ref(temp, (block * slots,), slots)
