"""Lowering of elementwise loops and single-element statements to what one thread does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilelab.errors import TileNotSupported
from tilelab.ir import (
    Alloc,
    Break,
    Continue,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    as_expr,
    binary,
    children,
    const_int,
    select,
    walk,
)
from tilelab.ir.rewrite import rewrite
from tilelab.layout import Fragment
from tilelab.passes.atomic_sums import AtomicSum
from tilelab.passes.copies_of_points import runs_alone
from tilelab.passes.guards import beside, lasting, unheld
from tilelab.passes.infer_layouts import SPREAD
from tilelab.passes.parted_loops import points_of
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.intrinsics.cp_async import PREDICATE
from tilelab.thread.nodes import Invoke, Operand, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, first_replica, guarded, in_tile, loop


def lower_parallel(node: ParallelFor, ctx: LowerContext) -> list[Stmt]:
    """`for i, j in T.Parallel(...)`: each thread runs the points of its registers."""
    spread: Fragment = next(v for k, v in node.attrs if k == SPREAD)  # type: ignore[assignment]
    register = ctx.fresh("i", spread.num_registers)
    point = [as_expr(p) for p in spread.element_of(ctx.tid, register)]
    lets, bound = bind(node.vars, point, node)
    inside = in_tile(bound, spread)
    access = Elements(
        ctx, spread, register, dict(zip(node.vars, zip(point, bound, strict=True), strict=True))
    )
    single = len(node.body.body) == 1 and isinstance(node.body.body[0], Store)
    access.alone = not single and runs_alone(node, spread)  # one store reads under its own guard
    body = [access.statement(s) for s in node.body.body]
    stores = (n for n in walk(node.body) if isinstance(n, Store))
    gathers = any(isinstance(s.buffer, ReducerBuffer) for s in stores)
    kind = LoopKind.UNROLL if gathers else LoopKind.LANES  # contributions come one after another
    body = [*lets, guarded(inside, body, node.loc)]
    start, count = points_of(node, spread.num_registers)
    done: list[Stmt] = [replace(loop(register, count, kind, body, node.loc), start=as_expr(start))]
    return [guarded(first_replica(ctx, spread), done, node.loc)] if access.alone else done


def bind(
    vars: Sequence[Var],
    point: Sequence[Expr],
    node: ParallelFor,
    placed: frozenset[int] = frozenset(),
) -> tuple[list[Stmt], list[Expr]]:
    """Name the point's coordinates that the body uses outside of fragment indices and of the
    accesses in `placed` (identities), whose places are known already."""
    lets: list[Stmt] = []
    values: list[Expr] = []
    for var, value in zip(vars, point, strict=True):
        if isinstance(value, Var) or const_int(value) is not None or not _used(var, node, placed):
            values.append(value)
            continue
        named = Var(var.name, var.dtype, *value.bounds)
        lets.append(Let(named, value, loc=node.loc))
        values.append(named)
    return lets, values


def _used(var: Var, node: ParallelFor, placed: frozenset[int]) -> bool:
    """Whether a loop variable appears in the body where `bind` asks for it."""

    def visit(n: Node) -> bool:
        if n is var:
            return True
        if isinstance(n, Load | Store) and (n.buffer.scope is Scope.FRAGMENT or id(n) in placed):
            return isinstance(n, Store) and visit(n.value)
        return any(visit(c) for c in children(n))

    return visit(node.body)


class Elements:
    """Rewrites single-element accesses: fragments to registers, tensors with guards. Accesses in
    `slots` (by identity) are of registers that hold what is moved by vectors, those in `inside` of
    elements that are known to exist."""

    def __init__(
        self,
        ctx: LowerContext,
        spread: Fragment | None,
        register: Expr,
        point: dict[Var, tuple[Expr, Expr]],
        slots: Mapping[int, Ref] | None = None,
        inside: Collection[int] = (),
    ) -> None:
        self.ctx, self.spread, self.register = ctx, spread, register
        self.exact = {id(v): p[0] for v, p in point.items()}  # layout formulas
        self.named = {id(v): p[1] for v, p in point.items()}  # for the reader
        self.vars = tuple(point)
        self.slots = slots or {}
        self.inside = inside
        self.held: dict[object, Expr] = {}  # conditions that hold here, by key
        self.alone = False  # the loop runs in the first of the threads that hold an element
        self.guards = not ctx.option("tl.disable_safe_memory_legalize", False)
        # T.Parallel leaves out what lies outside of a tensor; elsewhere nobody has asked for that.
        self.unasked = spread is None

    def value(self, e: Expr) -> Expr:
        """An expression with loop variables, fragment reads and tensor reads lowered."""
        return rewrite(e, self._replace)

    def _replace(self, n: Node) -> Node | None:
        if id(n) in self.named:
            return self.named[id(n)]
        rule = _VALUES.get(type(n))
        if rule is not None:
            return rule(self, n)
        return self.statement(n) if isinstance(n, Stmt) else None

    def load(self, n: Load) -> Expr:
        """A read: of a register, or guarded where the element may not exist."""
        slot = self.slots.get(id(n))
        if slot is not None:
            return Load(slot.buffer, slot.indices)
        if n.buffer.scope is Scope.FRAGMENT:
            return Load(self.ctx.placed(n.buffer), (self._register_of(n),))
        indices = tuple(self.value(i) for i in n.indices)
        read = Load(self.ctx.placed(n.buffer), indices)
        ok = self._exists(n, indices)
        if ok is None:
            return read
        return select(ok, read, self.ctx.outside(n.buffer, n.dtype), guard=_is_unasked(self, ok))

    def choice(self, n: Select) -> Expr:
        """A selection: what its condition says need not be asked again on the chosen side."""
        cond = self.value(n.cond)
        chosen = self.where(cond, lambda: self.value(n.a))
        return select(cond, chosen, self.value(n.b), guard=n.guard)

    def where(self, cond: Expr, make: Callable[[], Any]) -> Any:
        """What `make` gives where a condition holds."""
        outer, self.held = self.held, {**self.held, **lasting(cond)}
        made = make()
        self.held = outer
        return made

    def _exists(self, n: Load | Store, indices: tuple[Expr, ...]) -> Expr | None:
        """The condition that an element of a tensor exists, as far as it must be asked."""
        if n.buffer.scope is not Scope.GLOBAL or not self.guards or id(n) in self.inside:
            return None
        return unheld(self.ctx.indices_in_bounds(n.buffer, indices), self.held)

    def _register_of(self, access: Load | Store) -> Expr:
        """The register of a fragment element that this thread holds."""
        layout = self.ctx.fragment(access.buffer)
        anywhere = isinstance(access.buffer, ReducerBuffer) or not _has_thread_digits(layout)
        if self.spread is None and anywhere:
            return as_expr(layout.register_of(tuple(self.value(i) for i in access.indices)))
        if self.spread is None:
            raise TileNotSupported(
                f"an element of the fragment {access.buffer.name} is used outside of T.Parallel: "
                "only some threads hold it",
                code="TL1713",
                loc=getattr(access, "loc", None),
                hint="use T.Parallel, or copy the fragment to shared memory first",
            )
        identity = len(access.indices) == len(self.vars) and all(
            a is b for a, b in zip(access.indices, self.vars, strict=True)
        )
        if identity and layout.axes == self.spread.axes:
            return self.register
        exact = tuple(rewrite(i, lambda n: self.exact.get(id(n))) for i in access.indices)
        return as_expr(layout.register_of(exact))

    def statement(self, s: Stmt) -> Stmt:
        """A statement of the loop body."""
        rule = _RULES.get(type(s))
        if rule is None:
            raise _misplaced(s)
        return rule(self, s)

    def store(self, s: Store) -> Stmt:
        value = self.value(s.value)
        slot = self.slots.get(id(s))
        if slot is not None:
            return Store(slot.buffer, slot.indices, value, loc=s.loc)
        if s.buffer.scope is Scope.FRAGMENT:
            register = (self._register_of(s),)
            held = replace(s, buffer=self.ctx.placed(s.buffer), indices=register, value=value)
            return self._contribution(s, held)
        indices = tuple(self.value(i) for i in s.indices)
        done = replace(s, buffer=self.ctx.placed(s.buffer), indices=indices, value=value)
        ok = self._exists(s, indices)
        if s.buffer.scope.is_memory:
            ok = both(self._first_replica(), ok)
        return guarded(ok, [done], s.loc, unasked=_is_unasked(self, ok))

    def atomic_sum(self, s: AtomicSum) -> Stmt:
        """An addition that vectors stand for in part, or one element's."""
        return self.store(s) if id(s) in self.slots else self.invoke(s.alone())

    def _first_replica(self) -> Expr | None:
        """Elements that several threads hold are written to memory by one of them."""
        if self.spread is None or self.alone:
            return None
        return first_replica(self.ctx, self.spread)

    def _contribution(self, s: Store, held: Store) -> Stmt:
        """What several threads run contributes to a reducer in one of them that holds the element
        (reading one before it is finalized means nothing)."""
        if not isinstance(s.buffer, ReducerBuffer):
            return held
        once = self._first_replica()
        if self.spread is None:
            layout = self.ctx.fragment(s.buffer)
            holder = as_expr(layout.thread_of(tuple(self.value(i) for i in s.indices)))
            once = binary("==", self.ctx.tid, holder)
        return guarded(once, [held], s.loc)

    def invoke(self, s: Invoke) -> Stmt:
        """An instruction with operands lowered; one whose place lies outside of a tensor is
        skipped, unless its value is wanted, or has a predicate that says whether to read."""
        operands = tuple(self.operand(o) for o in s.operands)
        done = replace(s, intrinsic=_possible(s, self.ctx), operands=operands)
        refs = [o for o in done.operands if isinstance(o, Ref)]
        changes = {p.role for p in s.intrinsic.operands} & {"writes", "updates"}
        in_memory = any(r.buffer.scope.is_memory for r in refs)
        ok = self._first_replica() if in_memory and changes else None
        if s.result is not None:
            if ok is not None:
                raise TileNotSupported(
                    f"the value of {s.intrinsic.name} is used in a T.Parallel loop whose points "
                    "several threads hold", code="TL1751", loc=s.loc,
                    hint="use a loop over at least as many points as threads, or take what lanes "
                    "run together out into a loop of its own",
                )  # fmt: skip
            return done
        exists: Expr | None = None
        for r in refs if self.guards else ():
            if r.buffer.scope is Scope.GLOBAL:
                exists = both(exists, self.ctx.indices_in_bounds(r.buffer, r.indices))
        done, exists = _by_predicate(done, unheld(exists, self.held))
        return guarded(both(ok, exists), [done], s.loc, unasked=_is_unasked(self, exists))

    def operand(self, operand: Operand) -> Operand:
        """An instruction's operand: a value, or a place."""
        if isinstance(operand, Ref):
            buffer = operand.buffer
            if buffer.scope is Scope.FRAGMENT:
                register = self._register_of(Load(buffer, operand.indices))
                return Ref(self.ctx.placed(buffer), (register,), operand.count)
            indices = tuple(self.value(i) for i in operand.indices)
            return Ref(self.ctx.placed(buffer), indices, operand.count)
        return self.value(operand) if isinstance(operand, Expr) else operand

    def alloc(self, s: Alloc) -> Stmt:
        self.ctx.placed(s.buffer)
        return Seq((), loc=s.loc)

    def same(self, s: Stmt) -> Stmt:
        return s

    def while_loop(self, s: While) -> Stmt:
        return replace(s, cond=self.value(s.cond), body=self.seq(s.body))

    def seq(self, s: Seq) -> Seq:
        return replace(s, body=tuple(self.statement(x) for x in s.body))

    def branch(self, s: If) -> Stmt:
        orelse = None if s.orelse is None else self.seq(s.orelse)
        cond = self.value(s.cond)
        then = self.where(cond, lambda: self.seq(s.then))
        return replace(s, cond=cond, then=then, orelse=orelse)

    def let(self, s: Let) -> Stmt:
        return replace(s, value=self.value(s.value))

    def inner_loop(self, s: For) -> Stmt:
        start, extent = self.value(s.start), self.value(s.extent)
        step, body = self.value(s.step), self.seq(s.body)
        return replace(s, start=start, extent=extent, step=step, kind=order_of(s), body=body)


def _is_unasked(access: Elements, ok: Expr | None) -> bool:
    """Whether leaving out what `ok` does is no wish of the program: it is one in T.Parallel, unless
    the program asks for a limit of its own that lies elsewhere."""
    return access.unasked or beside(ok, access.held.values())


def _by_predicate(s: Invoke, exists: Expr | None) -> tuple[Invoke, Expr | None]:
    """An instruction, and what must hold for it to run. One that makes zeros of what its predicate
    keeps it from reading runs always: skipping it would leave the place as it is."""
    *others, last = s.operands or (None,)
    if s.intrinsic.operands[-1:] != (PREDICATE,) or not isinstance(last, Expr):
        return s, exists
    cond = both(last, unheld(exists, lasting(last)))
    assert cond is not None
    return replace(s, operands=(*others, cond)), None


def _possible(s: Invoke, ctx: LowerContext) -> Intrinsic:
    """The instruction, or what stands for it on this target. TileNotSupported (TL1756)."""
    record: Intrinsic | None = s.intrinsic
    features = ctx.target.features
    while record is not None and record.needs is not None and record.needs not in features:
        record = record.otherwise
    if record is None:
        raise TileNotSupported(
            f"{s.intrinsic.name} needs {s.intrinsic.needs}, and {ctx.target} has none",
            code="TL1756", loc=s.loc, hint="compile for a target that has it",
        )  # fmt: skip
    return record


def order_of(loop: For) -> LoopKind:
    """How a loop's iterations run: lanes that write what others read or write come in order."""
    if loop.kind is not LoopKind.LANES:
        return LoopKind.SERIAL if loop.kind is LoopKind.PIPELINED else loop.kind
    nodes = list(walk(loop.body))
    written = [n for n in nodes if isinstance(n, Store)]
    for store in written:
        if not any(n is loop.var for i in store.indices for n in walk(i)):
            return LoopKind.UNROLL
        place = [i.key for i in store.indices]
        home = store.buffer.storage
        same = (n for n in nodes if isinstance(n, Load | Store) and n.buffer.storage is home)
        if any([i.key for i in n.indices] != place for n in same):
            return LoopKind.UNROLL
    return loop.kind


def _has_thread_digits(layout: Fragment) -> bool:
    """Whether threads hold different elements (without: every thread holds all of them)."""
    return any(d.owner == "thread" and d.extent > 1 for axis in layout.axes for d in axis)


_VALUES: dict[type[Node], Any] = {Load: Elements.load, Select: Elements.choice}


def _misplaced(s: Stmt) -> TileNotSupported:
    what, hint = type(s).__name__.lower(), "move it out of T.Parallel"
    if isinstance(s, ParallelFor):
        what, hint = "T.Parallel", "write one loop over both: for i, j in T.Parallel(n, m)"
    text = f"{what} cannot stand in an elementwise loop"
    return TileNotSupported(text, code="TL1714", loc=s.loc, hint=hint)


_RULES: dict[type[Stmt], Any] = {
    Store: Elements.store, Seq: Elements.seq, If: Elements.branch, Let: Elements.let,
    For: Elements.inner_loop, Invoke: Elements.invoke, Alloc: Elements.alloc,
    AtomicSum: Elements.atomic_sum, While: Elements.while_loop, Break: Elements.same,
    Continue: Elements.same,
}  # fmt: skip


def scalar_rewriter(ctx: LowerContext) -> Elements:
    """For statements outside of T.Parallel, which every thread runs."""
    return Elements(ctx, None, as_expr(0), {})
