"""Elementwise loops whose memory accesses are vectors: load a batch, compute, store the batch.

Every thread takes its points in chunks of neighbours. The runs that `wide_access` finds are moved
by vector copies between memory and registers; all loads of a batch of chunks stand before the
first use, so that many are in flight. What is no run stays as it is. Hides when that order of
loads and stores means the same as the loop did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilelab.ir import (
    Buffer,
    Expr,
    Let,
    Load,
    LoopKind,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.layout import Fragment
from tilelab.passes import lower_loops
from tilelab.passes.infer_layouts import SPREAD
from tilelab.passes.lower_loops import Elements, bind
from tilelab.passes.wide_access import (
    Run,
    conditioned,
    find_run,
    let_values,
    memory_accesses,
    wanted_chunk,
)
from tilelab.thread.nodes import Ref, VectorCopy
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, first_replica, guarded, loop, own_loop

BATCH_BYTES = 128
"""Bytes a thread loads before it uses them: enough to cover the latency of memory with the blocks
that fit a multiprocessor (32 registers a thread)."""


def lower_parallel(node: ParallelFor, ctx: LowerContext) -> list[Stmt]:
    """`for i, j in T.Parallel(...)`: each thread runs the points of its registers, with vector
    accesses where the loop's accesses allow them."""
    spread: Fragment = next(v for k, v in node.attrs if k == SPREAD)  # type: ignore[assignment]
    inner, condition = conditioned(node)
    wide = _plan(inner, spread, ctx)
    if wide is None:
        return lower_loops.lower_parallel(node, ctx)
    return _Emit(inner, ctx, wide, condition).loops()


@dataclass(frozen=True)
class WideLoop:
    """What is moved by vectors: a thread's points in `count` chunks of `size` neighbours. `number`
    counts chunks and `e` points of a chunk; `point` is what the loop variables are there."""

    spread: Fragment
    size: int
    count: int
    number: Var
    e: Var
    point: tuple[Expr, ...]
    loads: tuple[Run, ...]
    stores: tuple[Run, ...]

    @property
    def batch(self) -> int:
        """Chunks that are loaded at once: a divisor of `count`."""
        used = {r.key: r.span * r.access.buffer.dtype.bytes for r in self.loads}
        limit = max(BATCH_BYTES // max(sum(used.values()), 1), 1)
        return max(n for n in range(1, self.count + 1) if self.count % n == 0 and n <= limit)


def _plan(node: ParallelFor, spread: Fragment, ctx: LowerContext) -> WideLoop | None:
    """The widest chunks that some access gains from; None when there are none."""
    if not all(isinstance(s, Store | Let) for s in node.body.body) or not node.vars:
        return None
    accesses = _in_order(node)
    size = min(wanted_chunk(accesses), spread.contiguous(-1))
    while size > 1:
        runs = _runs(node, spread, accesses, size, ctx)
        if runs is not None:
            return runs
        size //= 2
    return None


def _in_order(node: ParallelFor) -> list[Load | Store]:
    """Accesses of tensors that no later statement reads after an earlier one wrote them: loads
    of the others must stay where they are."""
    written: dict[int, int] = {}
    torn: set[int] = set()
    for number, s in enumerate(node.body.body):
        for n in walk(s):
            if isinstance(n, Load) and written.get(id(n.buffer.storage), number) < number:
                torn.add(id(n.buffer.storage))
        if isinstance(s, Store):
            written.setdefault(id(s.buffer.storage), number)
    found: list[Load | Store] = []
    for access in memory_accesses(node):
        indices = (n for i in access.indices for n in walk(i) if isinstance(n, Load))
        if id(access.buffer.storage) not in torn and not any(
            id(n.buffer.storage) in written for n in indices
        ):
            found.append(access)
    return found


def _runs(
    node: ParallelFor,
    spread: Fragment,
    accesses: Sequence[Load | Store],
    size: int,
    ctx: LowerContext,
) -> WideLoop | None:
    """The loop in chunks of `size` points; None when no access is a run then."""
    count = spread.num_registers // size
    number, e = ctx.fresh("i", count), ctx.fresh("e", size)
    start = tuple(as_expr(p) for p in spread.element_of(ctx.tid, number * size))
    values = (*start[:-1], start[-1] + e)
    point = dict(zip(node.vars, values, strict=True))
    point |= {v: substitute(x, point) for v, x in let_values(node).items()}
    found = [r for a in accesses if (r := find_run(a, point, e, size, ctx)) is not None]
    loads = tuple(r for r in found if isinstance(r.access, Load))
    stores = tuple(_filled([r for r in found if isinstance(r.access, Store)]))
    if not loads and not stores:
        return None
    return WideLoop(spread, size, count, number, e, values, loads, stores)


def _filled(stores: Sequence[Run]) -> Iterator[Run]:
    """Stores that together write every element of their run once."""
    for run in stores:
        written = [o for r in stores if r.key == run.key for o in r.offsets]
        if sorted(written) == list(range(run.span)):
            yield run


class _Emit:
    """Writes the loops of one plan; `condition` holds for all points of a chunk or for none."""

    def __init__(
        self, node: ParallelFor, ctx: LowerContext, wide: WideLoop, condition: Expr | None
    ) -> None:
        self.node, self.ctx, self.wide, self.loc = node, ctx, wide, node.loc
        self.locs = {id(n): s.loc for s in node.body.body for n in walk(s)}
        self.batch = wide.batch
        self.batches = wide.count // self.batch
        self.in_batch = ctx.fresh("i", self.batch)
        self.batch_var = ctx.fresh("batch", self.batches)
        self.number: Expr = self.in_batch
        if self.batches > 1:
            self.number = self.batch_var * self.batch + self.in_batch
        self.point = tuple(self._here(p) for p in wide.point)
        self.branch = condition
        self.condition = None if condition is None else self._at_start(condition)
        self.registers: dict[tuple[object, ...], Buffer] = {}

    def loops(self) -> list[Stmt]:
        """Loads, computation and stores of every batch."""
        wide = self.wide
        loads = self._moves(wide.loads, self._load)
        stores = self._moves(wide.stores, self._store)
        loops = [self._over(body) for body in (loads, self._compute(), stores) if body]
        if self.batches == 1:
            return loops
        if self._numbers_registers():
            return [loop(self.batch_var, self.batches, LoopKind.UNROLL, loops, self.loc)]
        return [own_loop(self.batch_var, self.batches, loops, self.loc)]

    def _here(self, e: Expr) -> Expr:
        return substitute(e, {self.wide.number: self.number})

    def _at_start(self, value: Expr) -> Expr:
        """An expression of the loop's variables at the first point of a chunk."""
        first = (substitute(p, {self.wide.e: 0}) for p in self.point)
        placed = substitute(value, dict(zip(self.node.vars, first, strict=True)))
        return self._scalar().value(placed)

    def _scalar(self) -> Elements:
        return Elements(self.ctx, self.wide.spread, self.number * self.wide.size, {})

    def _numbers_registers(self) -> bool:
        """Whether the chunk's number says which registers of a fragment are meant."""
        parts = [self.node.body] if self.branch is None else [self.node.body, self.branch]
        accesses = (n for p in parts for n in walk(p) if isinstance(n, Load | Store))
        return any(n.buffer.scope is Scope.FRAGMENT for n in accesses)

    def _over(self, body: list[Stmt]) -> Stmt:
        """One loop over the chunks of a batch; only for points that exist."""
        inside: Expr | None = None
        spread = self.wide.spread
        for p, extent, cover in zip(self.point, spread.shape, spread.covers, strict=True):
            if cover != extent:
                first = substitute(p, {self.wide.e: 0})
                inside = both(inside, binary("<", first, extent))
        done = guarded(both(inside, self.condition), body, self.loc)
        return loop(self.in_batch, self.batch, self._kind(), [done], self.loc)

    def _kind(self) -> LoopKind:
        """Contributions to a reducer come one after another."""
        stores = (n for n in walk(self.node.body) if isinstance(n, Store))
        gathers = any(isinstance(s.buffer, ReducerBuffer) for s in stores)
        return LoopKind.UNROLL if gathers else LoopKind.LANES

    def _temp(self, run: Run) -> Buffer:
        """The registers of a run: one for all accesses of it in one direction."""
        key = (type(run.access), *run.key)
        if key not in self.registers:
            buffer = run.access.buffer
            name = f"{buffer.name}_run"
            self.registers[key] = self.ctx.temp(name, self.batch * run.span, buffer.dtype)
        return self.registers[key]

    def _moves(self, runs: Iterable[Run], move: Callable[[Run, int], Stmt]) -> list[Stmt]:
        """Vector copies of each run, those of a shared one once."""
        vectors: dict[tuple[object, ...], tuple[Run, int]] = {}
        for run in runs:
            vectors |= {(*run.key, v): (run, v) for v in run.touched}
        return [move(run, v) for run, v in vectors.values()]

    def _place(self, run: Run, vector: int) -> tuple[Ref, Ref, Expr | None]:
        """Registers and memory of a vector, and when the memory exists."""
        scalar = self._scalar()
        indices = [scalar.value(self._here(i)) for i in run.indices]
        indices[-1] = indices[-1] + vector * run.width
        buffer = self.ctx.placed(run.access.buffer)
        slot = self.in_batch * run.span + vector * run.width
        exists: Expr | None = None
        if buffer.scope is Scope.GLOBAL and scalar.guards:
            exists = self.ctx.indices_in_bounds(buffer, tuple(indices))
        return Ref(self._temp(run), (slot,)), Ref(buffer, tuple(indices), run.width), exists

    def _load(self, run: Run, vector: int) -> Stmt:
        registers, memory, exists = self._place(run, vector)
        copy = VectorCopy(registers, memory, run.width, loc=self.locs[id(run.access)])
        z = self.ctx.fresh("z", run.width)
        slot = (registers.indices[0] + z,)
        outside = self.ctx.outside(run.access.buffer, registers.buffer.dtype)
        fill = Store(registers.buffer, slot, outside, loc=self.loc)
        filled = loop(z, run.width, LoopKind.LANES, [fill], self.loc)
        return guarded(exists, [copy], self.loc, [filled] if exists is not None else None)

    def _store(self, run: Run, vector: int) -> Stmt:
        registers, memory, exists = self._place(run, vector)
        once = first_replica(self.ctx, self.wide.spread)
        copy = VectorCopy(memory, registers, run.width, loc=self.locs[id(run.access)])
        return guarded(both(once, exists), [copy], self.loc)

    def _compute(self) -> list[Stmt]:
        """The loop's statements for the points of one chunk, wide accesses by their registers."""
        wide = self.wide
        slots = {
            id(r.access): Ref(self._temp(r), (self.in_batch * r.span + r.offset,))
            for r in (*wide.loads, *wide.stores)
        }
        lets, bound = bind(self.node.vars, self.point, self.node, frozenset(slots))
        pairs = zip(self.point, bound, strict=True)
        point = dict(zip(self.node.vars, pairs, strict=True))
        register = self.number * wide.size + wide.e
        access = Elements(self.ctx, wide.spread, register, point, slots)
        body = [access.statement(s) for s in self.node.body.body]
        return [loop(wide.e, wide.size, self._kind(), [*lets, *body], self.loc)]
