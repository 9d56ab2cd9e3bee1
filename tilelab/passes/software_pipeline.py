"""software-pipeline: realise a cp.async plan in one instruction stream.

prologue: issue the first S-1 iterations, one commit group each
loop k:   wait until group k has arrived; barrier; issue iteration k + S-1; compute k

A loop that only multiplies by mma.sync is taken apart further: `fragments_ahead.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Let,
    LoopKind,
    Node,
    Seq,
    Stmt,
    Var,
    as_expr,
    binary,
    const_int,
    walk,
)
from tilelab.ir.rewrite import rewrite_statements
from tilelab.ir.stmt import leaves
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.fragments_ahead import ahead_of
from tilelab.passes.lowering_context import shared_state
from tilelab.passes.plan import PipelinePlan
from tilelab.passes.plan_pipeline import plan_of_loop
from tilelab.passes.versions import entries_named, in_slot, sequence, versioned
from tilelab.thread.intrinsics.barrier import SYNCTHREADS
from tilelab.thread.intrinsics.cp_async import CP_ASYNC_COMMIT, cp_async_wait
from tilelab.thread.nodes import Invoke, WarpRoles
from tilelab.tile.context import LowerContext
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.gather import Gather
from tilelab.tile.structure import FRAGMENTS_AHEAD, setting


@kernel_pass("software-pipeline", needs=("planned",))
def software_pipeline(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Turn cp.async plans into prologue and steady loop, and plain plans into serial loops."""
    rings: list[Buffer] = []
    top = kernel.body.body
    taken = {n.buffer.name for n in walk(kernel) if isinstance(n, Alloc)}
    lower = LowerContext(shared_state(kernel, ctx, taken), as_expr(0), kernel.num_threads)
    # In a role of the program other threads share the gemm than the kernel has.
    roles = any(isinstance(n, WarpRoles) for n in walk(kernel))
    stepwise = bool(setting(ctx, FRAGMENTS_AHEAD)) and not roles

    def realise(node: Node) -> Node | None:
        if not isinstance(node, For) or node.kind is not LoopKind.PIPELINED:
            return None
        plan = plan_of_loop(node)
        if plan is not None and plan.mechanism == "cp.async":
            again = not any(node is s for s in top)
            return _realise(node, plan, rings, lower, again=again, stepwise=stepwise)
        body = rewrite_statements(node.body, realise)
        attrs = tuple(a for a in node.attrs if a[0] != "plan")
        return replace(node, kind=LoopKind.SERIAL, num_stages=None, attrs=attrs, body=body)

    return _with_allocs(rewrite_statements(kernel, realise), rings)


def _with_allocs(kernel: Kernel, rings: list[Buffer]) -> Kernel:
    """Allocate the slots in place of the buffers they replace."""
    if not rings:
        return kernel
    replaced = {id(b.origin) for b in rings if b.origin is not None}
    kept = (s for s in kernel.body.body if not isinstance(s, Alloc) or id(s.buffer) not in replaced)
    body = (*(Alloc(b, loc=b.loc) for b in rings), *kept)
    return replace(kernel, body=replace(kernel.body, body=body))


def _realise(
    loop: For, plan: PipelinePlan, rings: list[Buffer], lower: LowerContext, *, again: bool,
    stepwise: bool,
) -> Seq:  # fmt: skip
    """Prologue and steady loop; `rings` gets the buffers that both need.

    `again`: the loop is entered more than once, so its first copies must wait until the last tiles
    of the time before have been read. `stepwise`: a gemm may be taken apart.
    """
    stages, ahead = plan.num_stages, plan.prefetch
    producers = [op.op for op in plan.producers]
    slots = {id(v.buffer): versioned(v.buffer, stages) for v in plan.buffers}
    rings.extend(slots.values())
    named, started = entries_named(p for p in producers if isinstance(p, Copy))
    gathers = (p for p in producers if isinstance(p, Gather))
    copies = [*named, *(replace(c, is_async=True) for c in started), *gathers]
    work = [s for s in loop.body.body if not any(s is p for p in producers)]
    prologue = _prologue(loop, copies, slots, ahead)
    trip = (loop.var - loop.start) // loop.step
    issue = _issue_ahead(loop, copies, slots, plan)
    arrival = _arrival(loop, ahead)
    started = [issue, Invoke(CP_ASYNC_COMMIT, (), loc=loop.loc)]
    parts = ahead_of(loop, work, slots, stages, lower) if stepwise else None
    if parts is None:
        body = [*arrival, *started, *in_slot(work, slots, trip % stages)]
        before = [prologue]
    else:
        lower.note(f"{parts.gemm.label()}: fragments come a step of K before their use", loop)
        rings.extend(parts.steps.held)
        body = parts.body(arrival, started)
        before = [prologue, *parts.before(arrival)]
    attrs = tuple(a for a in loop.attrs if a[0] != "plan")
    steady = replace(
        loop, kind=LoopKind.SERIAL, num_stages=None, attrs=attrs, body=sequence(body, loop)
    )
    if again:
        why = "the tiles of the loop's last run have been read"
        before.insert(0, Invoke(SYNCTHREADS, (), why, loc=loop.loc))
    after: list[Stmt] = []
    if leaves(loop.body, (Break,)):
        why = "copies that ran ahead of the iteration that left the loop have arrived"
        after.append(Invoke(cp_async_wait(0), (), why, loc=loop.loc))
    return Seq((*before, steady, *after), loc=loop.loc)


def _issue_ahead(
    loop: For, copies: Sequence[Stmt], slots: dict[int, Buffer], plan: PipelinePlan
) -> Stmt:
    """Start the copies of a later iteration, if there is one; its number has known bounds."""
    trip = (loop.var - loop.start) // loop.step + plan.prefetch
    count = const_int(loop.extent)
    later = Var(f"{loop.var.name}_next", lo=0, hi=None if count is None else count - 1)
    values = {loop.var: loop.start + later * loop.step}
    body = in_slot(copies, slots, later % plan.num_stages, values)
    return _when(binary("<", trip, loop.extent), (Let(later, trip, loc=loop.loc), *body), loop)


def _arrival(loop: For, ahead: int) -> list[Stmt]:
    """Wait for this iteration's tiles, and let every thread see them."""
    arrived = "this iteration's tiles have arrived"
    seen = "all threads' copies are visible; the oldest slot has been read"
    return [
        Invoke(cp_async_wait(ahead - 1), (), arrived, loc=loop.loc),
        Invoke(SYNCTHREADS, (), seen, loc=loop.loc),
    ]


def _prologue(loop: For, copies: Sequence[Stmt], slots: dict[int, Buffer], ahead: int) -> Stmt:
    """Issue iterations 0 to ahead-1, a commit group each (empty ones past the last iteration)."""
    stage = Var("stage", lo=0, hi=ahead - 1)
    values: dict[Var, Expr] = {loop.var: loop.start + stage * loop.step}
    issue = in_slot(copies, slots, stage, values)
    body = [
        _when(binary("<", stage, loop.extent), issue, loop),
        Invoke(CP_ASYNC_COMMIT, (), loc=loop.loc),
    ]
    zero, count, one = as_expr(0), as_expr(ahead), as_expr(1)
    return For(stage, zero, count, one, LoopKind.UNROLL, sequence(body, loop), loc=loop.loc)


def _when(condition: Expr, body: Sequence[Stmt], like: Stmt) -> Stmt:
    """`body` under a condition that may already be decided."""
    known = const_int(condition)
    if known is not None:
        return sequence(body if known else (), like)
    return If(condition, sequence(body, like), loc=like.loc)


__all__ = ["software_pipeline"]
