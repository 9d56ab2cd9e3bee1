"""lower-tile-ops: tile IR -> thread IR. Each op's strategy writes what one thread does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilelab.errors import TileError, TileInternalError, TileValueError
from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    Continue,
    Expr,
    For,
    Function,
    If,
    Kernel,
    Let,
    LoopKind,
    Node,
    ParallelFor,
    Pool,
    Scope,
    Seq,
    Stmt,
    Store,
    TensorParam,
    Var,
    While,
    as_expr,
    children,
    walk,
)
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.block_order import block_order
from tilelab.passes.flat_locals import flat_locals
from tilelab.passes.gathers import at_once
from tilelab.passes.infer_layouts import worker_threads
from tilelab.passes.lower_lanes import lower_own
from tilelab.passes.lower_loops import order_of, scalar_rewriter
from tilelab.passes.lower_wide import lower_parallel
from tilelab.passes.lowering_context import shared_state
from tilelab.passes.persist import is_tile_loop
from tilelab.passes.relayout import set_before, zeroed
from tilelab.passes.shared_extent import DYNAMIC_ALIGNMENT, extent_of
from tilelab.passes.staging_room import staging_of
from tilelab.passes.touch import touches
from tilelab.passes.unpack_pairs import by_pairs
from tilelab.passes.warpgroups import behind_budget, warpgroup_in
from tilelab.thread.intrinsics.barrier import SYNCTHREADS
from tilelab.thread.nodes import (
    UNPLACED,
    Alignment,
    Invoke,
    Program,
    Role,
    SharedSlot,
    TensorMap,
    ThreadKernel,
    WarpRoles,
)
from tilelab.thread.occupancy import round_up
from tilelab.tile.context import LowerContext
from tilelab.tile.op import TileOp, pick_strategy
from tilelab.tile.staging import Staging

OF_PROGRAM = "of_program"
"""Marks loops that the program wrote, apart from those a lowering made."""


@tile_pass("lower-tile-ops", needs=("layouts",), makes=("lowered",))
def lower_tile_ops(function: Function, ctx: PassContext) -> Program:
    """Replace every tile op by the statements of one thread."""
    lowered = [_kernel(k, function, ctx, i) for i, k in enumerate(function.kernels)]
    aligned: dict[int, Alignment] = {}
    for need in (need for item in lowered for need in item.aligned):
        aligned[id(need.buffer)] = need.joined(aligned.get(id(need.buffer)))
    return Program(
        name=function.name,
        params=function.params,
        sizes=function.sizes,
        kernels=tuple(item.kernel for item in lowered),
        outputs=function.outputs,
        workspaces=function.workspaces,
        aligned=tuple(aligned.values()),
    )


@dataclass(frozen=True)
class Lowered:
    """A kernel and what it relies on."""

    kernel: ThreadKernel
    aligned: tuple[Alignment, ...]


def _kernel(kernel: Kernel, function: Function, ctx: PassContext, number: int) -> Lowered:
    """One kernel; without staging tiles where scratch that lowerings asked for took their room."""
    staging = staging_of(kernel, ctx)
    done = _lowered(kernel, function, ctx, number, staging)
    if staging is None or not staging.tiles:
        return done
    extents = (extent_of(slot.buffer) for slot in done.kernel.shared)
    total = sum(round_up(size, alignment) for size, alignment in extents) + DYNAMIC_ALIGNMENT
    if total <= ctx.target.limits.shared_per_block:
        return done
    ctx.note("accumulators leave without staging tiles: other scratch takes their room", kernel)
    return _lowered(kernel, function, ctx, number, None)


def _lowered(
    kernel: Kernel, function: Function, ctx: PassContext, number: int, staging: Staging | None
) -> Lowered:
    name = f"{function.name}_kernel" + (f"_{number}" if len(function.kernels) > 1 else "")
    threads = worker_threads(kernel)
    lets, tid = _linear_thread(kernel, threads)
    state = shared_state(kernel, ctx, _names(kernel, function) | {name})
    state.staging = staging
    lower = Lowering(LowerContext(state, tid, threads), kernel)
    lowered = lower.seq(kernel.body)
    if state.whole:
        began = replace(kernel, body=zeroed(kernel.body, state.whole[0]))
        return _lowered(began, function, ctx, number, staging_of(began, ctx) if staging else None)
    body, registers = flat_locals(lower.with_exit(lowered), state.locals)
    prologue, block_vars = block_order(kernel, state.names)
    used = {id(n) for n in _outside_maps(body)}
    views = tuple(b for b in lower.views if id(b) in used)
    viewed = {id(b.table if isinstance(b, Pool) else b.storage) for b in views}
    start = (*prologue, *(s for s in lets if id(s.var) in used))
    tensors = tuple(p.buffer for p in function.params if isinstance(p, TensorParam))
    tensors += function.workspaces
    scalars = tuple(p.var for p in function.params if not isinstance(p, TensorParam))
    done = ThreadKernel(
        name=name,
        maps=tuple(state.maps),
        tensors=tuple(b for b in tensors if id(b) in used or id(b) in viewed),
        views=views,
        scalars=(*scalars, *function.sizes),
        grid=kernel.grid,
        threads=kernel.threads,
        user_threads=_user_threads(kernel),
        block_vars=block_vars,
        launched=kernel.launched,
        thread_vars=kernel.thread_vars,
        locals=registers,
        shared=(
            *lower.slots,
            *(_slot(b, of_one_op=True) for b in state.scratch),
            *(_slot(b, yields=True) for b in state.staged()),
        ),
        dynamic_bytes=0,
        static_bytes=0,
        body=replace(body, body=(*start, *body.body)),
        sources=_attr(kernel, "source", ()),
        may_alias=_attr(kernel, "may_alias", ()),
        min_blocks=_min_blocks(kernel, ctx),
        loc=kernel.loc,
    )
    return Lowered(done, tuple(state.aligned.values()))


def _names(kernel: Kernel, function: Function) -> set[str]:
    """The names that the program gives."""
    taken = {x.name for x in (*function.params, *function.sizes, *function.workspaces)}
    taken |= {n.buffer.name for n in walk(kernel) if isinstance(n, Alloc)}
    return taken | {n.var.name for n in walk(kernel) if isinstance(n, For | Let)}


def _outside_maps(node: Node) -> Iterator[Node]:
    """Everything under `node` but what TMA descriptors refer to: those tensors need no pointer."""
    yield node
    if not isinstance(node, TensorMap):
        for child in children(node):
            yield from _outside_maps(child)


def _slot(buffer: Buffer, of_one_op: bool = False, yields: bool = False) -> SharedSlot:
    return SharedSlot(buffer, UNPLACED, 0, dynamic=True, of_one_op=of_one_op, yields=yields)


def _user_threads(kernel: Kernel) -> tuple[int, ...]:
    return tuple(_attr(kernel, "user_threads", kernel.threads))


def _attr(kernel: Kernel, name: str, default: Any) -> Any:
    return next((v for k, v in kernel.attrs if k == name), default)


def _min_blocks(kernel: Kernel, ctx: PassContext) -> int:
    """Blocks that a multiprocessor should hold, which its threads must allow."""
    blocks, most = int(_attr(kernel, "min_blocks", 1)), ctx.target.limits.threads_per_sm
    if blocks * kernel.num_threads > max(most, kernel.num_threads):
        raise TileValueError(
            f"{blocks} blocks of {kernel.num_threads} threads are asked of a multiprocessor, which "
            f"holds {most} threads", code="TL1437", loc=kernel.loc,
            hint=f"ask for at most {most // kernel.num_threads}",
        )  # fmt: skip
    return blocks


def _linear_thread(kernel: Kernel, threads: int) -> tuple[list[Let], Expr]:
    """The thread's number among the workers, from 0; a name for it where bounds must be known."""
    axes = [v for v, n in zip(kernel.thread_vars, kernel.threads, strict=False) if n > 1]
    if len(axes) <= 1 and kernel.num_threads == threads:
        return [], axes[0] if axes else as_expr(0)
    value: Expr = as_expr(0)
    stride = 1
    for var, extent in zip(kernel.thread_vars, kernel.threads, strict=False):
        value = value + var * stride
        stride *= extent
    tid = Var("tid", lo=0, hi=threads - 1)
    return [Let(tid, value, loc=kernel.loc)], tid


class Lowering:
    """Walks a kernel body; ops go to their strategies, the rest is rewritten in place."""

    def __init__(self, ctx: LowerContext, kernel: Kernel) -> None:
        self.ctx, self.kernel = ctx, kernel
        self.scalar = scalar_rewriter(ctx)
        self.slots: list[SharedSlot] = []
        self.views: list[Buffer] = []
        self.written: set[int] = set()  # tensors that whole-tile statements have written so far
        self.branches = 0

    def seq(self, s: Seq) -> Seq:
        out: list[Stmt] = []
        for stmt in s.body:
            try:
                out.extend(self.statement(stmt))
            except TileError as error:
                error.at(stmt.loc)
                raise
        return Seq(tuple(out), loc=s.loc)

    def statement(self, s: Stmt) -> list[Stmt]:
        """What replaces one statement."""
        if isinstance(s, TileOp):
            return [*self.after_writers(s), *self.tile_op(s)]
        rule = _RULES.get(type(s))
        if rule is None:
            raise TileInternalError(f"no lowering for {type(s).__name__}", loc=s.loc)
        return rule(self, s)

    def tile_op(self, op: TileOp) -> list[Stmt]:
        strategy = pick_strategy(op, self.ctx)
        self.ctx.note(f"{op.op_name} {op.label()}: {strategy.name}", op)
        whole = self.ctx.shared.whole
        known = len(whole)
        done = list(strategy.lower(op, self.ctx))
        whole[known:] = [b for b in whole[known:] if not set_before(self.kernel, op, b)]
        return done

    def parallel(self, s: ParallelFor) -> list[Stmt]:
        gathered = at_once(s, self.kernel, self.ctx)
        if gathered is not None:
            return [*self.after_writers(s), *gathered]
        done = lower_parallel(s, self.ctx)
        return [*self.after_writers(s), *by_pairs(done, self.ctx)]

    def after_writers(self, s: Stmt) -> list[Stmt]:
        """A barrier where a tile statement touches a tensor that an earlier one has written:
        other threads may have written the elements that this thread is about to touch.

        Not in a branch, which some threads may not take: there the program orders its accesses.
        """
        seen = [t for t in touches(s) if t.buffer.scope is Scope.GLOBAL]
        again = [t.buffer.name for t in seen if id(t.buffer.storage) in self.written]
        out: list[Stmt] = []
        if again and not self.branches:
            why = f"{again[0]} was written by other threads"
            out.append(Invoke(SYNCTHREADS, (), why, loc=s.loc))
            self.written.clear()
        self.written.update(id(t.buffer.storage) for t in seen if t.is_write)
        return out

    def alloc(self, s: Alloc) -> list[Stmt]:
        if s.buffer.scope in (Scope.LOCAL, Scope.FRAGMENT):
            self.ctx.placed(s.buffer)
        elif s.buffer.scope is Scope.GLOBAL:
            self.views.append(s.buffer)
        else:
            self.slots.append(_slot(s.buffer))
        return []

    def with_exit(self, body: Seq) -> Seq:
        """What these threads run, and what they must do before they end."""
        staging = self.ctx.shared.staging
        last = None if staging is None else staging.at_exit.pop(self.ctx.first_thread, None)
        return body if last is None else replace(body, body=(*body.body, last))

    def nested(self, s: Seq) -> list[Stmt]:
        return [self.seq(s)]

    def loop(self, s: For) -> list[Stmt]:
        may_alias = bool(_attr(self.kernel, "may_alias", ()))
        done = lower_own(s, self.ctx, may_alias, lambda: self.plain_loop(s))
        return by_pairs(done, self.ctx) if s.kind is LoopKind.LANES else done

    def plain_loop(self, s: For) -> list[Stmt]:
        """A loop statement by statement."""
        body = self._repeated(s.body, is_tile_loop(s))
        return [
            replace(
                s,
                start=self.scalar.value(s.start),
                extent=self.scalar.value(s.extent),
                step=self.scalar.value(s.step),
                kind=order_of(s),
                body=body,
                attrs=(*s.attrs, (OF_PROGRAM, True)),
            )
        ]

    def _repeated(self, s: Seq, over_tiles: bool = False) -> Seq:
        """The body of a loop: over the kernel's tiles, or one that the program wrote."""
        staging = self.ctx.shared.staging
        if staging is None:
            return self.seq(s)
        staging.loops += not over_tiles
        staging.tile_loops += over_tiles
        done = self.seq(s)
        staging.loops -= not over_tiles
        staging.tile_loops -= over_tiles
        return done

    def branch(self, s: If) -> list[Stmt]:
        cond = self.scalar.value(s.cond)
        if s.threads is not None:
            then = self._team(*s.threads, s.then, branches=1)
            return [replace(s, cond=cond, then=then, threads=None)]
        self.branches += 1
        orelse = None if s.orelse is None else self.seq(s.orelse)
        then = self.scalar.where(cond, lambda: self.seq(s.then))
        self.branches -= 1
        return [replace(s, cond=cond, then=then, orelse=orelse)]

    def while_loop(self, s: While) -> list[Stmt]:
        return [replace(s, cond=self.scalar.value(s.cond), body=self._repeated(s.body))]

    def let(self, s: Let) -> list[Stmt]:
        return [replace(s, value=self.scalar.value(s.value))]

    def store(self, s: Store) -> list[Stmt]:
        return [self.scalar.store(s)]

    def invoke(self, s: Invoke) -> list[Stmt]:
        return [self.scalar.invoke(s)]

    def same(self, s: Stmt) -> list[Stmt]:
        return [s]

    def _thread_in(self, first: int, count: int) -> tuple[list[Let], Expr]:
        """The thread's number within a team, with bounds that layout formulas rely on."""
        if first == self.ctx.first_thread and count == self.ctx.num_threads:
            return [], self.ctx.tid
        if count == 1:
            return [], as_expr(0)
        tid = Var("tid", lo=0, hi=count - 1)
        return [Let(tid, self.ctx.tid - (first - self.ctx.first_thread), loc=self.kernel.loc)], tid

    def _team(
        self, first: int, count: int, body: Seq, branches: int = 0, role: Role | None = None
    ) -> Seq:
        """Statements that only the threads from `first` on run, with tiles spread over them."""
        lets, tid = self._thread_in(first, count)
        inner = replace(
            self.ctx, tid=tid, num_threads=count, first_thread=first, uniform_warpgroup=None
        )
        names: list[Let] = []
        if role is not None:
            names, inner.uniform_warpgroup = warpgroup_in(role, tid)
        lower = Lowering(inner, self.kernel)
        lower.branches = branches
        done = lower.with_exit(lower.seq(body))
        self.slots.extend(lower.slots)
        self.views.extend(lower.views)
        used = {id(n) for n in _outside_maps(done)}
        start = [let for let in (*lets, *names) if id(let.var) in used]
        return replace(done, body=behind_budget(start, done.body))

    def roles(self, s: WarpRoles) -> list[Stmt]:
        roles = (replace(r, body=self._team(r.first, r.count, r.body, role=r)) for r in s.roles)
        return [replace(s, roles=tuple(roles))]


_RULES: dict[type[Stmt], Callable[[Lowering, Any], list[Stmt]]] = {
    Seq: Lowering.nested, For: Lowering.loop, If: Lowering.branch, While: Lowering.while_loop,
    Let: Lowering.let, Store: Lowering.store, ParallelFor: Lowering.parallel,
    Alloc: Lowering.alloc, Invoke: Lowering.invoke, Break: Lowering.same, Continue: Lowering.same,
    WarpRoles: Lowering.roles,
}  # fmt: skip
