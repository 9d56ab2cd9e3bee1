"""Which accesses of an elementwise loop touch runs of memory: the analysis behind wide accesses.

A thread's points come in chunks of neighbours along the loop's last axis. An access whose place
moves through a chunk in a pattern known at compile time (`j`, `2 * j + 1`, `j // 2`) covers a run
of a row, which vector accesses of up to 16 bytes can move. Hides the patterns and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilelab.ir import (
    Binary,
    Expr,
    If,
    Let,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Select,
    Store,
    Var,
    children,
    const_int,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import linear
from tilelab.tile.context import VECTOR_BYTES, LowerContext, power_of_two

MEMORY = (Scope.GLOBAL, Scope.SHARED)
MAX_POINT_BYTES = 2 * VECTOR_BYTES  # of one chunk in one tensor: further apart, sectors go to waste
MAX_SPREAD = 4  # a run may be this many times as long as the chunk


@dataclass(frozen=True)
class Run:
    """What `access` touches in one chunk: `span` elements from `indices` on, in vectors of `width`
    elements, of which those in `touched` are needed. Point number e is at `offset` in the run."""

    access: Load | Store
    indices: tuple[Expr, ...]
    offset: Expr
    offsets: tuple[int, ...]
    span: int
    width: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for accesses of one run."""
        place = tuple(i.key for i in self.indices)
        return (id(self.access.buffer.storage), place, self.span)

    @property
    def touched(self) -> tuple[int, ...]:
        """Numbers of the vectors that hold an element of the pattern."""
        return tuple(sorted({o // self.width for o in self.offsets}))


def eager_loads(node: Node) -> Iterator[Load]:
    """Loads under `node` that happen whenever it is evaluated: none of a side not chosen."""
    if isinstance(node, Load):
        yield node
    lazy = isinstance(node, Select) or (isinstance(node, Binary) and node.op in ("and", "or"))
    for number, child in enumerate(children(node)):
        if not lazy or number == 0:
            yield from eager_loads(child)


def memory_accesses(loop: ParallelFor) -> list[Load | Store]:
    """Accesses of memory that every point of the loop makes."""
    found: list[Load | Store] = []
    for s in loop.body.body:
        found += [n for n in eager_loads(s) if n.buffer.scope in MEMORY]
        if isinstance(s, Store) and s.buffer.scope in MEMORY:
            found.append(s)
    return found


def conditioned(loop: ParallelFor) -> tuple[ParallelFor, Expr | None]:
    """A loop whose body is one branch that is the same for all points of a chunk, as the loop over
    what is in the branch and its condition; other loops as they are."""
    only = loop.body.body[0] if len(loop.body.body) == 1 else None
    if not isinstance(only, If) or only.orelse is not None or not loop.vars:
        return loop, None
    stored = {id(n.buffer.storage) for n in walk(only.then) if isinstance(n, Store)}
    for n in walk(only.cond):
        if n is loop.vars[-1] or (isinstance(n, Load) and id(n.buffer.storage) in stored):
            return loop, None
    return replace(loop, body=only.then), only.cond


def let_values(loop: ParallelFor) -> dict[Var, Expr]:
    """Names bound in the body, by the expressions over loop variables that they stand for."""
    values: dict[Var, Expr] = {}
    for s in loop.body.body:
        if isinstance(s, Let):
            values[s.var] = substitute(s.value, values)
    return values


def find_run(
    access: Load | Store, point: Mapping[Var, Expr], e: Var, chunk: int, ctx: LowerContext
) -> Run | None:
    """The run of an access where `point` gives the loop variables at point `e` of a chunk; None
    when it has none, or its alignment is not known."""
    if access.buffer.dtype.bits < 8:
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
    width = ctx.vector_width(region, span, span)
    if width < 2 or shift >= width:
        return None
    inside = tuple(o - low + shift for o in offsets)
    return Run(access, start, offset - low + shift, inside, span, width)


def _offsets(offset: Expr, e: Var, chunk: int) -> tuple[int, ...] | None:
    """Values of `offset` at e = 0, 1, ...; None when it depends on anything else."""
    if any(isinstance(n, Load) or (isinstance(n, Var) and n is not e) for n in walk(offset)):
        return None
    values = [const_int(substitute(offset, {e: k})) for k in range(chunk)]
    known = tuple(v for v in values if v is not None)
    return known if len(known) == chunk else None


def wanted_chunk(accesses: Sequence[Load | Store]) -> int:
    """Points of a chunk that make the narrowest element type fill 16 bytes, kept small enough for
    the widest one."""
    sizes = [max(a.buffer.dtype.bits // 8, 1) for a in accesses]
    if not sizes:
        return 1
    return min(VECTOR_BYTES // min(sizes), max(MAX_POINT_BYTES // max(sizes), 1))


def wanted_vector(loop: ParallelFor, extents: Sequence[int], ctx: LowerContext) -> int:
    """How many neighbours of the last axis a thread should hold, so that accesses are wide."""
    loop = conditioned(loop)[0]
    accesses = [a for a in memory_accesses(loop) if loop.vars[-1:] and _moves(a, loop.vars[-1])]
    chunk = power_of_two(wanted_chunk(accesses), extents[-1]) if extents else 1
    lets = let_values(loop)
    while chunk > 1:
        q, e = Var("q", lo=0, hi=extents[-1] // chunk - 1), Var("e", lo=0, hi=chunk - 1)
        point: dict[Var, Expr] = {loop.vars[-1]: q * chunk + e}
        point |= {v: substitute(x, point) for v, x in lets.items()}
        if any(find_run(a, point, e, chunk, ctx) for a in accesses):
            return chunk
        chunk //= 2
    return 1


def _moves(access: Load | Store, var: Var) -> bool:
    return any(n is var for i in access.indices for n in walk(i))
