"""Hand-made decisions and kernels of the 128x128x64 GEMM, for tests of the views."""

from __future__ import annotations

from tilelab.dtypes import FLOAT16, FLOAT32, UINT64, DType
from tilelab.errors import Loc
from tilelab.ir import Buffer, Scope, Seq
from tilelab.layout import atoms
from tilelab.passes.base import CompileTrace, Note, Step
from tilelab.passes.plan import (
    BarrierPlan,
    LayoutDecision,
    PipelinePlan,
    PlannedOp,
    RolePlan,
    VersionedBuffer,
)
from tilelab.target import SM90A
from tilelab.thread.nodes import SharedSlot, ThreadKernel

STAGE = 16_384


def buffer(
    name: str, shape: tuple[int, ...], dtype: DType = FLOAT16, scope: Scope = Scope.SHARED,
    origin: Buffer | None = None,
) -> Buffer:  # fmt: skip
    return Buffer(name, shape, dtype, scope, origin=origin)


A, B = buffer("A_shared", (128, 64)), buffer("B_shared", (64, 128))
C = buffer("C_local", (128, 128), FLOAT32, Scope.FRAGMENT)
ENGINES = {"tma": "TMA", "cp.async": "cp.async", "sync": "SIMT"}


def slot(
    name: str, offset: int, size: int, *, dynamic: bool = True, root: Buffer | None = None
) -> SharedSlot:
    scope = Scope.SHARED if dynamic else Scope.BARRIER
    shape = (size // 2,) if dynamic else (size // 8,)
    made = buffer(name, shape, FLOAT16 if dynamic else UINT64, scope, origin=root)
    return SharedSlot(made, offset, size, dynamic)


def kernel(stages: int = 3, extra: tuple[SharedSlot, ...] = ()) -> ThreadKernel:
    """The lowered GEMM as far as the views read it."""
    slots = (
        slot("A_shared", 0, stages * STAGE, root=A),
        slot("B_shared", stages * STAGE, stages * STAGE, root=B),
        slot("full", 0, 8 * stages, dynamic=False),
        slot("empty", 8 * stages, 8 * stages, dynamic=False),
        *extra,
    )
    dynamic = max(s.offset + s.num_bytes for s in slots if s.dynamic)
    return ThreadKernel(
        name="matmul_kernel", maps=(), tensors=(), scalars=(), grid=(), threads=(256,),
        user_threads=(128,), block_vars=(), thread_vars=(), locals=(), shared=slots,
        dynamic_bytes=dynamic, static_bytes=16 * stages, body=Seq(()),
    )  # fmt: skip


def plan(
    mechanism: str = "tma", trips: int | None = 16, stages: int = 3, prefetch: int = 2
) -> PipelinePlan:
    """The GEMM's loop over K."""
    tma = mechanism == "tma"
    roles = (RolePlan("consumer", 0, 128, 240), RolePlan("producer", 128, 128, 24))
    barriers = (
        BarrierPlan("full", stages, 1, 2 * STAGE, "consumer", "producer (TMA)"),
        BarrierPlan("empty", stages, 4, 0, "producer", "consumer"),
    )
    engine = ENGINES[mechanism]
    return PipelinePlan(
        loop="ko", kernel="matmul_kernel", mechanism=mechanism,  # type: ignore[arg-type]
        num_stages=stages, prefetch=prefetch, trip_count=trips,
        producers=(
            PlannedOp("A -> A_shared", "copy", engine, STAGE, Loc("gemm.py", 12)),
            PlannedOp("B -> B_shared", "copy", engine, STAGE, Loc("gemm.py", 13)),
        ),
        consumers=(PlannedOp("gemm C_local", "gemm", "wgmma", 0, Loc("gemm.py", 14)),),
        buffers=(VersionedBuffer(A, stages, STAGE), VersionedBuffer(B, stages, STAGE)),
        roles=roles if tma else (RolePlan("all", 0, 128, None),),
        barriers=barriers if tma else (), loc=Loc("gemm.py", 11),
        reason="both copies are boxes of tensors with aligned rows",
    )  # fmt: skip


def trace() -> CompileTrace:
    """A trace with one layout, one pipeline and two passes."""
    before, after = Seq(()), Seq(())
    warning = Note("the tile is read twice", None, Loc("gemm.py", 12), "warning")
    fragment = atoms.wgmma_accumulator(128).repeat(2, 1)
    return CompileTrace(
        SM90A,
        steps=[
            Step("infer_layouts", "Choose a layout for every tile", before, after, 0.004,
                 (Note("wgmma fixes C_local", None, Loc("gemm.py", 14)),)),
            Step("split_loops", "Split loops at a mask", after, after, 0.001, (warning,)),
        ],
        layouts=[LayoutDecision(C, fragment, "wgmma fixes its accumulator")],
        pipelines=[plan()],
    )  # fmt: skip
