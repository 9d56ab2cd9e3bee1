"""gemm(A, B, C): C += A @ B, on tensor cores where they have the types and the tile fits them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.calls import did_you_mean
from tilelab.errors import TileNotSupported, TileValueError, warn
from tilelab.ir import Expr, Region, Scope, Seq, Stmt, as_bool, const_int
from tilelab.ir.builder import current
from tilelab.layout import best_swizzle, row_major, swizzled
from tilelab.target import Feature
from tilelab.thread.intrinsics.wgmma import warpgroup_wait as wait_record
from tilelab.thread.nodes import Invoke
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import guarded
from tilelab.tile.op import (
    Env,
    Fact,
    Fixed,
    LayoutContext,
    Prefer,
    TileOp,
    lowering,
    reads,
    updates,
)
from tilelab.tile.operands import as_region, here, shape_text
from tilelab.tile.ops.gemm_mma import mma_tile
from tilelab.tile.ops.gemm_plan import INSTRUCTIONS, GemmWarpPolicy
from tilelab.tile.ops.gemm_request import for_all_matrices, plan_of
from tilelab.tile.ops.gemm_simt import clear, simt_tile
from tilelab.tile.ops.gemm_wgmma import fence_accumulator, wgmma_tile


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | None = None,
    clear_accum: Any = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    mbar: Any = None,
    annotations: Any = None,
    **unknown: Any,
) -> Gemm:
    """`C += A @ B` on whole tiles.

    A: M x K (K x M with `transpose_A`), B: K x N (N x K with `transpose_B`), in shared memory or
    fragments; C: an M x N fragment, in whose type sums are formed. Slices of larger buffers are
    tiles too. float32 operands are multiplied as tf32, which the hardware truncates them to.
    `policy` says how warps share the tile (rows, columns or both); left open it is chosen.
    `clear_accum` (a bool or a condition) starts from 0 instead of C. `wg_wait=-1`: the program
    waits for the products itself (T.wait_wgmma), as after T.wgmma_gemm. `k_pack` and
    `annotations` say nothing to these chips.

    Types or extents that no tensor core takes are multiplied by ordinary instructions. Raises
    TileValueError (TL1511) for extents that do not fit, TileNotSupported (TL1513) for operands in
    other memory.
    """
    del annotations
    _reject({**unknown, "mbar": mbar, "wg_wait": wg_wait, "k_pack": k_pack})
    return _emit(A, B, C, transpose_A, transpose_B, policy, clear_accum, waits=wg_wait != -1)


def wgmma_gemm(
    A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False,
    policy: GemmWarpPolicy | None = None, clear_accum: Any = False, annotations: Any = None,
) -> Gemm:  # fmt: skip
    """T.gemm on warpgroup products, going on at once: wait with T.wait_wgmma before C is used or
    the operands are overwritten. Raises TileNotSupported (TL1515) where wgmma is impossible."""
    del annotations
    return _emit(
        A, B, C, transpose_A, transpose_B, policy, clear_accum, waits=False, only_wgmma=True
    )


def _emit(
    a: Any, b: Any, c: Any, transpose_a: Any, transpose_b: Any, policy: Any, clear_accum: Any,
    **how: bool,
) -> Gemm:  # fmt: skip
    regions = (as_region(a, "A"), as_region(b, "B"), as_region(c, "C"))
    op = Gemm(
        *regions,
        transpose_a=bool(transpose_a),
        transpose_b=bool(transpose_b),
        policy=GemmWarpPolicy.of(policy),
        clear_accum=_condition(clear_accum),
        **how,
        loc=here(),
    )
    op.check()
    _warn_of_types(op)
    current().emit(op)
    return op


_ARGUMENTS = (
    "A", "B", "C", "transpose_A", "transpose_B", "policy", "clear_accum", "wg_wait"
)  # fmt: skip


def _warn_of_types(op: Gemm) -> None:
    """Say that two operand types cost the tensor cores: the result is right, and slow."""
    a, b = op.a.dtype.name, op.b.dtype.name
    if a != b and not any({a, b} <= set(i.operands) for i in INSTRUCTIONS):
        names = op.a.buffer.name, op.b.buffer.name
        warn(
            f"gemm of A = {names[0]} ({a}) and B = {names[1]} ({b}): no instruction multiplies "
            "these types with each other, so threads multiply element by element; T.copy "
            f"{names[1]} into a tile of {a} first (it converts), or {names[0]} into one of {b}"
        )


def _reject(given: dict[str, Any]) -> None:
    """`mbar` is another chip's; wg_wait is 0 (wait here) or -1 (the program waits); k_pack is 1 or
    2, which mean the same here."""
    allowed = {"kPack": (1, 2), "k_pack": (1, 2), "wg_wait": (0, -1), "mbar": (None,)}
    for name, value in given.items():
        if name not in allowed:
            raise TileValueError(
                f"T.gemm has no argument {name!r}",
                code="TL1512",
                loc=here(),
                hint=f"{did_you_mean(name, _ARGUMENTS, '{}=...')} its arguments: ".lstrip()
                + ", ".join(_ARGUMENTS),
            )
        if value not in allowed[name]:
            raise TileNotSupported(
                f"T.gemm({name}={value!r}) is not supported",
                code="TL1513",
                loc=here(),
                hint=f"leave {name} out, or use one of {allowed[name]}",
            )


def _condition(value: Any) -> Expr | bool:
    """A bool, where it is known now."""
    condition = as_bool(value)
    known = const_int(condition)
    return condition if known is None else bool(known)


@dataclass(frozen=True, eq=False)
class Gemm(TileOp):
    """`c += op(a) @ op(b)`. `waits`: the products are done when the op is; `only_wgmma`: another
    instruction will not do. `adds_slots`: where warps have much else to issue beside wgmma, an
    operand's slot is added to a descriptor that stays in registers, and no address is formed."""

    op_name: ClassVar[str] = "gemm"

    a: Region = reads()
    b: Region = reads()
    c: Region = updates()
    transpose_a: bool = False
    transpose_b: bool = False
    policy: GemmWarpPolicy = GemmWarpPolicy.AUTO
    clear_accum: Expr | bool = False
    waits: bool = True
    only_wgmma: bool = False
    adds_slots: bool = False

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N, K of this tile."""
        a, c = _sizes(self.a), _sizes(self.c)
        return c[0], c[1], a[0] if self.transpose_a else a[1]

    def overwrites(self) -> bool:
        return bool(const_int(self.clear_accum))

    def check(self) -> None:
        for region, name in ((self.a, "A"), (self.b, "B"), (self.c, "C")):
            if len(region.tile_shape) != 2 or any(const_int(e) is None for e in region.tile_shape):
                raise TileValueError(
                    f"{name} = {region.buffer.name} is a {shape_text(region.tile_shape)} tile; "
                    "a gemm takes tiles of two constant extents",
                    code="TL1511",
                    loc=self.loc,
                    hint="slice or reshape it to two axes",
                )
        self._check_extents()
        self._check_memory()

    def _check_extents(self) -> None:
        (a0, a1), (b0, b1), (m, n) = _sizes(self.a), _sizes(self.b), _sizes(self.c)
        am, ak = (a1, a0) if self.transpose_a else (a0, a1)
        bk, bn = (b1, b0) if self.transpose_b else (b0, b1)
        if (am, bn, ak) != (m, n, bk):
            raise TileValueError(
                f"gemm of A = {self.a.buffer.name} ({am}x{ak}) and B = {self.b.buffer.name} "
                f"({bk}x{bn}) into C = {self.c.buffer.name} ({m}x{n}): the extents do not fit",
                code="TL1511",
                loc=self.loc,
                hint="A is M x K, B is K x N, C is M x N (after transpose_A and transpose_B)",
            )

    def _check_memory(self) -> None:
        on_chip = (Scope.SHARED, Scope.FRAGMENT)
        for region, allowed in ((self.a, on_chip), (self.b, on_chip), (self.c, on_chip[1:])):
            if region.buffer.scope not in allowed:
                names = " or ".join(f"T.alloc_{s.value}" for s in allowed)
                raise TileNotSupported(
                    f"gemm operand {region.buffer.name} lives in {region.buffer.scope.value} "
                    "memory",
                    code="TL1513",
                    loc=self.loc,
                    hint=f"allocate it with {names}",
                )

    def label(self) -> str:
        return f"gemm {self.c.buffer.name}"

    def reference(self, env: Env) -> None:
        wide = "float64" if self.c.dtype.bits == 64 or self.c.dtype.is_int else "float32"
        a, b = env.get(self.a).astype(wide), env.get(self.b).astype(wide)
        a, b = (a.T if self.transpose_a else a), (b.T if self.transpose_b else b)
        start = 0 if const_int(self.clear_accum) else env.get(self.c)
        env.put(self.c, start + a @ b)

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        plan = plan_of(self, ctx)
        if plan.kind == "simt":
            return  # every thread computes what it holds, wherever that is
        why = f"{plan.instruction} fixes it ({plan.why})"
        layout = for_all_matrices(plan.accumulator(), self.c.buffer)
        yield Fixed(self.c.buffer, layout, why, self)
        registers = plan.operands_in_registers(self.transpose_a, self.transpose_b)
        for region, held in zip((self.a, self.b), registers, strict=True):
            buffer = region.buffer
            if buffer.scope is Scope.FRAGMENT:
                why = f"{plan.instruction} takes it from registers"
                yield Fixed(buffer, for_all_matrices(held, buffer), why, self)
                continue
            shape, bits = buffer.static_shape, buffer.dtype.bits
            width = best_swizzle(shape[-1], bits)
            layout = swizzled(shape, bits, width) if width else row_major(shape, bits)
            what = f"{width}-byte swizzle" if width else "row-major"
            why = f"{what}: {plan.instruction} reads it without bank conflicts"
            if plan.kind == "wgmma":
                yield Fixed(buffer, layout, why, self)
            else:
                yield Prefer(buffer, layout, why)


def _sizes(region: Region) -> tuple[int, int]:
    first, second = (int(const_int(e) or 0) for e in region.tile_shape)
    return first, second


@lowering(Gemm, needs={Feature.WGMMA}, when=lambda op, ctx: plan_of(op, ctx).kind == "wgmma")
def _wgmma(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """wgmma: a warpgroup multiplies 64-row slabs, B (and A, unless it is held) in shared memory."""
    return wgmma_tile(ctx, op, plan_of(op, ctx))


@lowering(Gemm, when=lambda op, ctx: op.only_wgmma)
def _no_wgmma(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """T.wgmma_gemm without wgmma is an error that says why."""
    why = "; ".join(plan_of(op, ctx).passed_over) or f"{ctx.target} has none"
    raise TileNotSupported(
        f"{op.label()} cannot use wgmma: {why}", code="TL1515", loc=op.loc,
        hint="use T.gemm, which finds another instruction",
    )  # fmt: skip


@lowering(Gemm, needs={Feature.MMA_SYNC}, when=lambda op, ctx: plan_of(op, ctx).kind == "mma")
def _mma(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """mma.sync: each warp loads fragments and multiplies its blocks."""
    plan = plan_of(op, ctx)
    if plan.remark:
        ctx.note(plan.remark, op)
    return mma_tile(ctx, op, plan)


@lowering(Gemm)
def _simt(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """Ordinary instructions: each thread sums the products of the elements of C that it holds."""
    ctx.note(f"{op.label()}: {plan_of(op, ctx).remark}", op, level="warning")
    out = simt_tile(ctx, op)
    if const_int(op.clear_accum) == 0:
        return out
    zero = clear(ctx, op)
    always = const_int(op.clear_accum) is not None
    return [*(zero if always else [guarded(as_bool(op.clear_accum), zero, op.loc)]), *out]


def warpgroup_wait(num_mma: int) -> WaitWgmma:
    """T.wait_wgmma."""
    return wait_wgmma(num_mma)


def wait_wgmma(id: int) -> WaitWgmma:
    """Wait until at most `id` of the newest T.wgmma_gemm (or T.gemm with wg_wait=-1) still run."""
    count = const_int(id)
    if count is None or not 0 <= count < 8:
        raise TileValueError(
            f"T.wait_wgmma({id!r}) is no number of gemms", code="TL1512", loc=here(),
            hint="give a constant from 0 to 7: how many of the newest may still run",
        )  # fmt: skip
    op = WaitWgmma(count, loc=here())
    current().emit(op)
    return op


@dataclass(frozen=True, eq=False)
class WaitWgmma(TileOp):
    """Wait until at most `pending` gemms that do not wait themselves are under way. `done`: the
    accumulators that may be used from then on, where a pass knows them."""

    op_name: ClassVar[str] = "wait_wgmma"
    team: ClassVar[str] = "each"

    pending: int = 0
    why: str = "the program uses what the gemm computed"
    done: tuple[Region, ...] = ()


@dataclass(frozen=True, eq=False)
class PinAccumulator(TileOp):
    """What was written to the accumulator `c` so far stays before what follows."""

    op_name: ClassVar[str] = "pin_accumulator"
    team: ClassVar[str] = "each"

    c: Region


@lowering(PinAccumulator, needs={Feature.WGMMA})
def _pin(op: PinAccumulator, ctx: LowerContext) -> Iterable[Stmt]:
    yield fence_accumulator(ctx, op.c, op.loc)


@lowering(WaitWgmma, needs={Feature.WGMMA})
def _wait(op: WaitWgmma, ctx: LowerContext) -> Iterable[Stmt]:
    """The instruction of a warpgroup, and behind it the accumulators' registers."""
    fences = () if op.pending else tuple(ctx.shared.unwaited)
    if op.done:
        fences = tuple(fence_accumulator(ctx, region, op.loc) for region in op.done)
    wait = Invoke(wait_record(op.pending), (), op.why, loc=op.loc)
    yield Seq((wait, *fences), loc=op.loc)


@lowering(WaitWgmma)
def _nothing_runs(op: WaitWgmma, ctx: LowerContext) -> Iterable[Stmt]:
    """Other instructions are done when the gemm is."""
    return ()


__all__ = [
    "Gemm", "GemmWarpPolicy", "PinAccumulator", "WaitWgmma", "gemm", "plan_of", "wait_wgmma",
    "wgmma_gemm",
]  # fmt: skip
