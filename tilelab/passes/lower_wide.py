"""Elementwise loops whose memory accesses are vectors: load a batch, compute, store the batch.

Every thread takes its points in chunks of neighbours. The runs that `wide_access` finds are moved
by vector copies between memory and registers; all loads of a batch of chunks stand before the
first use, so that many are in flight. What is no run stays as it is. Hides when that order of
loads and stores means the same as the loop did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilelab.dtypes import BOOL
from tilelab.ir import (
    Buffer,
    Expr,
    If,
    Load,
    LoopKind,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    walk,
)
from tilelab.ir.build import conjuncts
from tilelab.ir.rewrite import substitute
from tilelab.layout import Fragment
from tilelab.passes import lower_loops
from tilelab.passes.atomic_sums import AtomicSum
from tilelab.passes.copies_of_points import runs_alone
from tilelab.passes.guards import Whole, beside, lasting, let_values, unheld
from tilelab.passes.infer_layouts import SPREAD
from tilelab.passes.lower_loops import Elements, bind, scalar_rewriter
from tilelab.passes.wide_access import (
    Form,
    MemoryAccess,
    Run,
    asks_base,
    forms,
    is_straight,
    memory_accesses,
    wanted_chunk,
)
from tilelab.thread.intrinsics.wide import is_aligned
from tilelab.thread.nodes import Invoke, Ref, VectorCopy
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, first_replica, guarded, in_tile, loop, own_loop
from tilelab.tile.ops.atomic import add_neighbours

BATCH_BYTES = 128
"""Bytes a thread loads before it uses them: enough to cover the latency of memory with the blocks
that fit a multiprocessor (32 registers a thread)."""


def lower_parallel(node: ParallelFor, ctx: LowerContext) -> list[Stmt]:
    """`for i, j in T.Parallel(...)`: each thread runs the points of its registers, with vector
    accesses where the loop's accesses allow them; where only whole tiles do, those have a version
    of their own, chosen by each block."""
    spread: Fragment = next(v for k, v in node.attrs if k == SPREAD)  # type: ignore[assignment]
    return either(node, spread, ctx, lambda: lower_loops.lower_parallel(node, ctx))


def either(
    node: ParallelFor,
    spread: Fragment,
    ctx: LowerContext,
    elements: Callable[[], list[Stmt]],
    own: LoopKind | None = None,
) -> list[Stmt]:
    """The version of a loop with the fewest accesses, beside what stands for it on other tiles.
    `elements` lowers it element by element; `own`: the loop is one thread's, and how it computes
    the points of a chunk."""
    form, whole_form = forms(node, ctx)
    plain = _plan(form, spread, ctx)
    whole = None if whole_form is None else _plan(whole_form, spread, ctx)
    if whole is None or (plain is not None and plain.accesses <= whole.accesses):
        return elements() if plain is None else _Emit(plain, ctx, own).loops()
    known = whole.form.whole
    assert known is not None
    made = _Emit(whole, ctx, own)
    fast = made.loops()
    bases, condition = made.when_whole(known)
    if condition is None:
        return fast
    slow = elements() if plain is None else _Emit(plain, ctx, own).loops()
    ctx.note(
        f"the loop over {', '.join(v.name for v in node.vars)} has a version of wide accesses "
        "for whole tiles; others ask for each element", node,
    )  # fmt: skip
    then, orelse = Seq(tuple(fast), loc=node.loc), Seq(tuple(slow), loc=node.loc)
    return [*bases, If(condition, then, orelse, loc=node.loc)]


@dataclass(frozen=True)
class WideLoop:
    """What of a form is moved by vectors: a thread's points in `count` chunks of `size` neighbours.
    `number` counts chunks and `e` points of a chunk; `point` is what the loop variables are there.
    `trial` is the context that knows what the plan needs of tensors."""

    form: Form
    trial: LowerContext
    spread: Fragment
    size: int
    count: int
    number: Var
    e: Var
    point: tuple[Expr, ...]
    loads: tuple[Run, ...]
    stores: tuple[Run, ...]

    @property
    def accesses(self) -> float:
        """Accesses of memory for each point of the loop."""
        nodes = (n for n in walk(self.form.loop.body) if isinstance(n, Load | Store))
        single = sum(n.buffer.scope.is_memory for n in nodes) - len((*self.loads, *self.stores))
        wide = {(*r.key, type(r.access)): r.touched for r in (*self.loads, *self.stores)}
        return single + sum(map(len, wide.values())) / self.size

    @property
    def batch(self) -> int:
        """Chunks that are loaded at once: a divisor of `count`."""
        used = {r.key: r.span * r.access.buffer.dtype.bytes for r in self.loads}
        limit = max(BATCH_BYTES // max(sum(used.values()), 1), 1)
        return max(n for n in range(1, self.count + 1) if self.count % n == 0 and n <= limit)


def _plan(form: Form, spread: Fragment, ctx: LowerContext) -> WideLoop | None:
    """The widest chunks that some access gains from; None when there are none."""
    if not is_straight(form.loop):
        return None
    accesses = _in_order(form.loop)
    size = min(wanted_chunk(accesses), spread.contiguous(-1))
    while size > 1:
        runs = _runs(form, spread, accesses, size, ctx.trial())
        if runs is not None:
            return runs
        size //= 2
    return None


def _in_order(node: ParallelFor) -> list[MemoryAccess]:
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
    found: list[MemoryAccess] = []
    lets = let_values(node.body)
    for touch in memory_accesses(node):
        asked = touch.access.indices if touch.when is None else (*touch.access.indices, touch.when)
        read = (n for i in asked for n in walk(substitute(i, lets)) if isinstance(n, Load))
        if id(touch.access.buffer.storage) not in torn and not any(
            id(n.buffer.storage) in written for n in read
        ):
            found.append(touch)
    return found


def _runs(
    form: Form, spread: Fragment, accesses: Sequence[MemoryAccess], size: int, ctx: LowerContext
) -> WideLoop | None:
    """The loop in chunks of `size` points; None when no access is a run then."""
    count = spread.num_registers // size
    number, e = ctx.fresh("i", count), ctx.fresh("e", size)
    start = tuple(as_expr(p) for p in spread.element_of(ctx.tid, number * size))
    values = (*start[:-1], start[-1] + e)
    found = form.runs(accesses, dict(zip(form.loop.vars, values, strict=True)), e, size, ctx)
    loads = tuple(r for r in found if isinstance(r.access, Load))
    stores = tuple(_filled([r for r in found if isinstance(r.access, Store)]))
    if not loads and not stores:
        return None
    return WideLoop(form, ctx, spread, size, count, number, e, values, loads, stores)


def _filled(stores: Sequence[Run]) -> Iterator[Run]:
    """Stores that together write every element of their run once."""
    for run in stores:
        written = [o for r in stores if r.key == run.key for o in r.offsets]
        if sorted(written) == list(range(run.span)):
            yield run


class _Emit:
    """Writes the loops of one plan; its condition holds for all points of a chunk or for none."""

    def __init__(self, wide: WideLoop, ctx: LowerContext, own: LoopKind | None) -> None:
        node = wide.form.loop
        self.node, self.ctx, self.wide, self.loc = node, ctx, wide, node.loc
        self.kind, self.unasked = own or LoopKind.LANES, own is not None  # as Elements has it
        ctx.adopt(wide.trial)
        self.locs = {id(n): s.loc for s in node.body.body for n in walk(s)}
        self.alone = runs_alone(node, wide.spread)
        self.batch = wide.batch
        self.batches = wide.count // self.batch
        self.in_batch = ctx.fresh("i", self.batch)
        self.batch_var = ctx.fresh("batch", self.batches)
        self.number: Expr = self.in_batch
        if self.batches > 1:
            self.number = self.batch_var * self.batch + self.in_batch
        self.point = tuple(self._here(p) for p in wide.point)
        self.branch = wide.form.condition
        self.condition = None if self.branch is None else self._at_start(self.branch)
        self.held = {} if self.condition is None else lasting(self.condition)
        known = wide.form.whole
        self.inside = frozenset[int]() if known is None else known.inside
        self.registers: dict[tuple[object, ...], Buffer] = {}

    def loops(self) -> list[Stmt]:
        """What a thread runs: all of it in one of several that hold the same points, where they
        must not all read."""
        made = self._batches()
        once = first_replica(self.ctx, self.wide.spread) if self.alone else None
        return made if once is None else [guarded(once, made, self.loc)]

    def _batches(self) -> list[Stmt]:
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

    def when_whole(self, known: Whole) -> tuple[list[Stmt], Expr | None]:
        """When this version may run: what asks for the alignment of tensors, and the condition."""
        outside = scalar_rewriter(self.ctx)
        condition = None if known.condition is None else outside.value(known.condition)
        runs = [r for r in (*self.wide.loads, *self.wide.stores) if r.inside]
        bases = {id(r.access.buffer): r.access.buffer for r in runs if asks_base(r)}
        if not bases:
            return [], condition
        widest = max(r.width * r.access.buffer.dtype.bytes for r in runs)
        aligned = Var("aligned", BOOL)
        start = tuple(Ref(b, (as_expr(0),) * b.rank) for b in bases.values())
        ask = Invoke(is_aligned(widest, len(start)), start, result=aligned, loc=self.loc)
        return [ask], both(condition, aligned)

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
        return any(n.buffer.scope in (Scope.FRAGMENT, Scope.LOCAL) for n in accesses)

    def _over(self, body: list[Stmt]) -> Stmt:
        """One loop over the chunks of a batch; only for points that exist."""
        first = [substitute(p, {self.wide.e: 0}) for p in self.point]
        inside = in_tile(first, self.wide.spread)
        done = guarded(both(inside, self.condition), body, self.loc)
        return loop(self.in_batch, self.batch, self._kind(), [done], self.loc)

    def _kind(self) -> LoopKind:
        """Contributions to a reducer come one after another."""
        stores = (n for n in walk(self.node.body) if isinstance(n, Store))
        gathers = any(isinstance(s.buffer, ReducerBuffer) for s in stores)
        return LoopKind.UNROLL if gathers else self.kind

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
        exists_anyway = run.inside and id(run.access) in self.inside
        if buffer.scope is Scope.GLOBAL and scalar.guards and not exists_anyway:
            exists = unheld(self.ctx.indices_in_bounds(buffer, tuple(indices)), self.held)
        return Ref(self._temp(run), (slot,)), Ref(buffer, tuple(indices), run.width), exists

    def _load(self, run: Run, vector: int) -> Stmt:
        registers, memory, exists = self._place(run, vector)
        copy = VectorCopy(registers, memory, run.width, loc=self.locs[id(run.access)])
        z = self.ctx.fresh("z", run.width)
        slot = (registers.indices[0] + z,)
        outside = self.ctx.outside(run.access.buffer, registers.buffer.dtype)
        fill = Store(registers.buffer, slot, outside, loc=self.loc)
        filled = loop(z, run.width, LoopKind.LANES, [fill], self.loc)
        if run.when is None:
            orelse = [filled] if exists is not None else None
            return guarded(exists, [copy], self.loc, orelse, unasked=self.unasked)
        when = self._scalar().value(self._here(run.when))
        if not beside(exists, tuple(conjuncts(when))):
            return guarded(both(when, exists), [copy], self.loc, [filled], unasked=self.unasked)
        # The program's limit lies elsewhere than the tensor's: the report says so.
        kept = guarded(exists, [copy], self.loc, [filled], unasked=True)
        return guarded(when, [kept], self.loc, [filled], unasked=self.unasked)

    def _store(self, run: Run, vector: int) -> Stmt:
        registers, memory, exists = self._place(run, vector)
        once = None if self.alone else first_replica(self.ctx, self.wide.spread)
        if isinstance(run.access, AtomicSum):
            values = replace(registers, count=run.width)
            step: Stmt = add_neighbours(memory, values, run.access.loc)
        else:
            step = VectorCopy(memory, registers, run.width, loc=self.locs[id(run.access)])
        return guarded(both(once, exists), [step], self.loc, unasked=self.unasked)

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
        access = Elements(self.ctx, wide.spread, register, point, slots, self.inside)
        access.held, access.unasked = self.held, self.unasked
        access.alone = self.alone
        body = [access.statement(s) for s in self.node.body.body]
        return [loop(wide.e, wide.size, self._kind(), [*lets, *body], self.loc)]
