"""gemm(A, B, C): C += A @ B on tensor cores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.dtypes import FLOAT32
from tilelab.errors import TileNotSupported, TileValueError
from tilelab.ir import Buffer, Region, Scope, Stmt, const_int
from tilelab.ir.builder import current
from tilelab.layout import best_swizzle, row_major, swizzled
from tilelab.target import Feature
from tilelab.tile.context import LowerContext
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
from tilelab.tile.ops.gemm_plan import GemmPlan, GemmWarpPolicy, plan_gemm
from tilelab.tile.ops.gemm_wgmma import wgmma_tile


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | None = None,
    clear_accum: bool = False,
    **ignored: Any,
) -> Gemm:
    """`C += A @ B` on whole tiles.

    A: M x K (K x M with `transpose_A`), B: K x N (N x K with `transpose_B`), both 16-bit floats in
    shared memory; C: M x N float32 fragment. `policy` says how warps share the tile (rows,
    columns or both); left open it is chosen. `clear_accum` starts from 0 instead of C.
    Raises TileValueError (TL1511) for extents that do not fit, TileNotSupported (TL1513) for
    operand types or scopes that have no instruction yet.
    """
    regions = (as_region(A, "A"), as_region(B, "B"), as_region(C, "C"))
    op = Gemm(
        *regions,
        transpose_a=bool(transpose_A),
        transpose_b=bool(transpose_B),
        policy=GemmWarpPolicy.of(policy),
        clear_accum=bool(clear_accum),
        loc=here(),
    )
    _reject(ignored)
    op.check()
    current().emit(op)
    return op


def _reject(ignored: dict[str, Any]) -> None:
    """k_pack and wg_wait are hints of other chips and of hand-placed waits: 1 and 0 mean none."""
    neutral = {"k_pack": (1,), "kPack": (1,), "wg_wait": (0,), "mbar": (None,)}
    for name, value in ignored.items():
        if name not in neutral:
            raise TileValueError(
                f"T.gemm has no argument {name!r}",
                code="TL1512",
                loc=here(),
                hint="arguments: A, B, C, transpose_A, transpose_B, policy, clear_accum",
            )
        if value not in neutral[name]:
            raise TileNotSupported(
                f"T.gemm({name}={value!r}) is not supported yet",
                code="TL1513",
                loc=here(),
                hint=f"leave {name} out",
            )


@dataclass(frozen=True, eq=False)
class Gemm(TileOp):
    """`c += op(a) @ op(b)`."""

    op_name: ClassVar[str] = "gemm"

    a: Region = reads()
    b: Region = reads()
    c: Region = updates()
    transpose_a: bool = False
    transpose_b: bool = False
    policy: GemmWarpPolicy = GemmWarpPolicy.AUTO
    clear_accum: bool = False

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N, K of this tile."""
        a, c = _sizes(self.a), _sizes(self.c)
        return c[0], c[1], a[0] if self.transpose_a else a[1]

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
        self._check_types()

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

    def _check_types(self) -> None:
        a, b, c = self.a.dtype, self.b.dtype, self.c.dtype
        ok = a == b and a.name in ("float16", "bfloat16") and c == FLOAT32
        if not ok:
            raise TileNotSupported(
                f"gemm of {a} and {b} into {c} has no instruction here yet",
                code="TL1513",
                loc=self.loc,
                hint="use float16 or bfloat16 operands and a float32 accumulator",
            )
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
        a, b = env.get(self.a).astype("float32"), env.get(self.b).astype("float32")
        a, b = (a.T if self.transpose_a else a), (b.T if self.transpose_b else b)
        start = 0 if self.clear_accum else env.get(self.c)
        env.put(self.c, start + a @ b)

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        plan = plan_of(self, ctx)
        why = f"{plan.instruction} fixes it ({plan.why})"
        yield Fixed(self.c.buffer, plan.accumulator(), why, self)
        registers = plan.operands_in_registers(self.transpose_a, self.transpose_b)
        for region, layout in zip((self.a, self.b), registers, strict=True):
            buffer = region.buffer
            if buffer.scope is Scope.FRAGMENT:
                yield Fixed(buffer, layout, f"{plan.instruction} takes it from registers", self)
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


def _takes_swizzle(buffer: Buffer) -> bool:
    """Whether a descriptor can name the buffer's tile: swizzled, or free to become so."""
    width = best_swizzle(buffer.static_shape[-1], buffer.dtype.bits)
    layout = buffer.layout
    if width is None or layout is None:
        return width is not None
    return layout.swizzle is not None and layout.swizzle.row == width


def plan_of(op: Gemm, ctx: LayoutContext) -> GemmPlan:
    """Which instruction and warp grid this gemm takes on the context's target and threads."""
    use_wgmma = ctx.target.has(Feature.WGMMA) and not ctx.option("tl.disable_wgmma", False)
    a_in_registers = op.a.buffer.scope is Scope.FRAGMENT
    if op.b.buffer.scope is Scope.FRAGMENT or (a_in_registers and op.transpose_a):
        use_wgmma = False  # B comes from shared memory, and A from registers is never transposed
    for region in (op.a, op.b):  # a descriptor without swizzle wants another arrangement
        if region.buffer.scope is Scope.SHARED:
            use_wgmma = use_wgmma and _takes_swizzle(region.buffer)
    policy = op.policy
    if policy is GemmWarpPolicy.AUTO and a_in_registers:
        policy = GemmWarpPolicy.FullRow  # each warp then holds the rows of A that it multiplies
    return plan_gemm(op.extents, ctx.num_threads, policy, op.a.dtype, use_wgmma, op.loc, op.label())


@lowering(Gemm, needs={Feature.WGMMA}, when=lambda op, ctx: plan_of(op, ctx).kind == "wgmma")
def _wgmma(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """wgmma: a warpgroup multiplies 64-row slabs, both operands in shared memory."""
    return wgmma_tile(ctx, op, plan_of(op, ctx))


@lowering(Gemm, needs={Feature.MMA_SYNC, Feature.LDMATRIX})
def _mma(op: Gemm, ctx: LowerContext) -> Iterable[Stmt]:
    """mma.sync: each warp loads fragments with ldmatrix and multiplies 16x8x16 blocks."""
    return mma_tile(ctx, op, plan_of(op, ctx))


__all__ = ["Gemm", "GemmWarpPolicy", "gemm", "plan_of"]
