"""Which accesses of an elementwise loop touch runs of memory: the analysis behind wide accesses.

A thread's points come in chunks of neighbours along the loop's last axis. An access whose place
moves through a chunk in a pattern known at compile time (`j`, `2 * j + 1`, `j // 2`) covers a run
of a row, which vector accesses of up to 16 bytes can move. Hides the patterns and their proofs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tilelab.ir import Expr, If, Let, Load, ParallelFor, Region, Scope, Store, Var, const_int, walk
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import linear
from tilelab.passes.atomic_sums import widest, with_sums
from tilelab.passes.guards import Whole, chosen_loads, let_values, same_in_chunks, whole_tile
from tilelab.tile.context import VECTOR_BYTES, LowerContext, has_fixed_rows, power_of_two
from tilelab.tile.structure import WHOLE_TILES, setting

MAX_POINT_BYTES = 2 * VECTOR_BYTES  # of one chunk in one tensor: further apart, sectors go to waste
MAX_SPREAD = 4  # a run may be this many times as long as the chunk


@dataclass(frozen=True)
class Run:
    """What `access` touches in one chunk: `span` elements from `indices` on, in vectors of `width`
    elements, of which those in `touched` are needed. Point number e is at `offset` in the run.
    `inside`: all elements lie in their row, whose length need not be a multiple of anything.
    `when`: what the chunk's points must hold to make the access (None: they all do)."""

    access: Load | Store
    indices: tuple[Expr, ...]
    offset: Expr
    offsets: tuple[int, ...]
    span: int
    width: int
    inside: bool = False
    when: Expr | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for accesses of one run."""
        place = tuple(i.key for i in self.indices)
        when = None if self.when is None else self.when.key
        return (id(self.access.buffer.storage), place, self.span, when)

    @property
    def touched(self) -> tuple[int, ...]:
        """Numbers of the vectors that hold an element of the pattern."""
        return tuple(sorted({o // self.width for o in self.offsets}))


@dataclass(frozen=True)
class MemoryAccess:
    """An access of memory, and what a point must hold to make it (None: every point does)."""

    access: Load | Store
    when: Expr | None = None


def memory_accesses(loop: ParallelFor) -> list[MemoryAccess]:
    """Accesses of memory that points of the loop make, each node once: what several conditions
    choose is left out."""
    found: dict[int, MemoryAccess] = {}
    torn: set[int] = set()
    for s in loop.body.body:
        for n, when in chosen_loads(s):
            before = found.setdefault(id(n), MemoryAccess(n, when))
            if before.when is not when:
                torn.add(id(n))
        if isinstance(s, Store):
            found[id(s)] = MemoryAccess(s)
    in_memory = (t for t in found.values() if t.access.buffer.scope.is_memory)
    return [t for t in in_memory if id(t.access) not in torn]


@dataclass(frozen=True)
class Form:
    """A loop that may have wide accesses: statements under `condition` (None: always), which must
    be the same for all points of a chunk. `whole`: what holds of the tile where this form runs."""

    loop: ParallelFor
    condition: Expr | None = None
    whole: Whole | None = None

    def runs(
        self,
        accesses: Sequence[MemoryAccess],
        point: Mapping[Var, Expr],
        e: Var,
        size: int,
        ctx: LowerContext,
    ) -> list[Run]:
        """The runs of some accesses in chunks of `size` points; none where the condition may
        change within a chunk. Arguments as `find_run` has them."""
        rows = frozenset[int]() if self.whole is None else self.whole.rows
        place = {
            **point,
            **{v: substitute(x, point) for v, x in let_values(self.loop.body).items()},
        }
        found = [r for a in accesses if (r := find_run(a, place, e, size, ctx, rows)) is not None]
        if self.condition is None or not found:
            return found
        # A dynamic row whose vectors are this long is checked by the launcher.
        checked = [r for r in found if r.width >= size and not r.inside and _own_rows(r)]
        multiples = {id(r.access.buffer.shape[-1]) for r in checked}
        same = same_in_chunks(self.condition, self.loop.vars[-1], size, multiples)
        return found if same else []


def asks_base(run: Run) -> bool:
    """Whether a run relies on its tensor's alignment, which no launcher has checked."""
    buffer = run.access.buffer
    return run.inside and buffer.scope is Scope.GLOBAL and has_fixed_rows(buffer)


def _own_rows(run: Run) -> bool:
    buffer = run.access.buffer
    return buffer.scope is Scope.GLOBAL and buffer.alias_of is None


def forms(node: ParallelFor, ctx: LowerContext) -> tuple[Form, Form | None]:
    """A loop as it is written, and on whole tiles (None where that is nothing else)."""
    node = with_sums(node)
    written = _form(node, None)
    if not node.vars or not setting(ctx, WHOLE_TILES):
        return written, None
    in_bounds = bool(ctx.option("tl.disable_safe_memory_legalize", False))
    whole = whole_tile(node, in_bounds=in_bounds)
    return written, None if whole is None else _form(whole.loop, whole)


def _form(loop: ParallelFor, whole: Whole | None) -> Form:
    """A loop by what its only branch holds, if it has one."""
    *lets, last = loop.body.body or (None,)
    plain = Form(loop, None, whole)
    if not isinstance(last, If) or last.orelse is not None or not loop.vars:
        return plain
    if not all(isinstance(s, Let) for s in lets):
        return plain
    stored = {id(n.buffer.storage) for n in walk(last.then) if isinstance(n, Store)}
    values = let_values(loop.body)
    cond = substitute(last.cond, values)
    asked = {n.key for n in walk(cond) if isinstance(n, Load)}
    named = (n for x in values.values() for n in walk(x) if isinstance(n, Load))
    if any(n.key not in asked for n in named):
        return plain  # what is read before the branch stays there
    if any(isinstance(n, Load) and id(n.buffer.storage) in stored for n in walk(cond)):
        return plain
    body = replace(loop.body, body=(*lets, *last.then.body))
    return Form(replace(loop, body=body), cond, whole)


def find_run(
    touch: MemoryAccess,
    point: Mapping[Var, Expr],
    e: Var,
    chunk: int,
    ctx: LowerContext,
    rows: Collection[int] = (),
) -> Run | None:
    """The run of an access where `point` gives the loop variables at point `e` of a chunk; None
    when it has none, or its alignment is not known. All points of accesses in `rows` (ids) lie in
    their row."""
    access = touch.access
    if access.buffer.dtype.bits < 8:
        return None
    when = None if touch.when is None else substitute(touch.when, point)
    if when is not None and any(n is e for n in walk(when)):
        return None
    here = [substitute(i, point) for i in access.indices]
    if any(n is e for i in here[:-1] for n in walk(i)):
        return None
    first = substitute(here[-1], {e: 0})
    offset = here[-1] - first
    offsets = _offsets(offset, e, chunk)
    if offsets is None or len(set(offsets)) == 1:
        return None
    low = min(offsets)
    span = 1 << (max(offsets) - low).bit_length()
    if span > chunk * MAX_SPREAD:
        return None
    shift = (linear(first)[1] + low) % span  # the run starts at the row's multiple of `span`
    if max(offsets) - low + shift >= span:
        return None
    start = (*here[:-1], first + low - shift)
    extents = (*(1 for _ in here[:-1]), span)
    region = Region(access.buffer, start, extents, (len(here) - 1,))
    inside = id(access) in rows and len(set(offsets)) == span
    width = widest(access, ctx, ctx.vector_width(region, span, span, inside=inside))
    if width < 2 or shift >= width:
        return None
    places = tuple(o - low + shift for o in offsets)
    return Run(access, start, offset - low + shift, places, span, width, inside, when)


def _offsets(offset: Expr, e: Var, chunk: int) -> tuple[int, ...] | None:
    """Values of `offset` at e = 0, 1, ...; None when it depends on anything else."""
    if any(isinstance(n, Load) or (isinstance(n, Var) and n is not e) for n in walk(offset)):
        return None
    values = [const_int(substitute(offset, {e: k})) for k in range(chunk)]
    known = tuple(v for v in values if v is not None)
    return known if len(known) == chunk else None


def wanted_chunk(accesses: Sequence[MemoryAccess]) -> int:
    """Points of a chunk that make the narrowest element type fill 16 bytes, kept small enough for
    the widest one."""
    sizes = [max(t.access.buffer.dtype.bits // 8, 1) for t in accesses]
    if not sizes:
        return 1
    return min(VECTOR_BYTES // min(sizes), max(MAX_POINT_BYTES // max(sizes), 1))


def wanted_vector(loop: ParallelFor, extents: Sequence[int], ctx: LowerContext) -> int:
    """How many neighbours of the last axis a thread should hold, so that accesses are wide."""
    found = (form for form in forms(loop, ctx) if form is not None and is_straight(form.loop))
    return max((_wanted(form, extents, ctx) for form in found), default=1)


def is_straight(loop: ParallelFor) -> bool:
    """Whether a loop's statements are what vector accesses can stand around."""
    return bool(loop.vars) and all(isinstance(s, Store | Let) for s in loop.body.body)


def _wanted(form: Form, extents: Sequence[int], ctx: LowerContext) -> int:
    last = form.loop.vars[-1]
    accesses = [t for t in memory_accesses(form.loop) if _moves(t.access, last)]
    chunk = power_of_two(wanted_chunk(accesses), extents[-1])
    while chunk > 1:
        q, e = Var("q", lo=0, hi=extents[-1] // chunk - 1), Var("e", lo=0, hi=chunk - 1)
        if form.runs(accesses, {last: q * chunk + e}, e, chunk, ctx):
            return chunk
        chunk //= 2
    return 1


def _moves(access: Load | Store, var: Var) -> bool:
    return any(n is var for i in access.indices for n in walk(i))
