"""Resolving a layout conflict: one use of a fragment works on a copy with another layout.

An elementwise statement uses a copy in shared memory; a whole-tile op gets a fragment of its own,
to which and from which elements go through shared memory: a copy from one fragment to the other
would carry the layout along, and the conflict with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Node,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Seq,
    Stmt,
    Store,
    as_expr,
    cast,
    const_int,
    map_children,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import linear
from tilelab.layout import Fragment
from tilelab.passes.layout_solver import LayoutConflict
from tilelab.passes.touch import writes
from tilelab.tile.op import TileOp
from tilelab.tile.operands import is_whole, whole
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.fill import Fill


@dataclass(frozen=True)
class Relayout:
    """The changed kernel, and what was done, for the reader."""

    kernel: Kernel
    note: str
    bytes: int


def resolve(kernel: Kernel, conflict: LayoutConflict, threads: int) -> Relayout:
    """Give the conflicting statement, in a kernel of so many threads, a copy to work on."""
    statement, buffer = conflict.statement, conflict.buffer
    if isinstance(buffer, ReducerBuffer) and _stores(statement, buffer):
        return _everywhere(kernel, buffer, threads)
    shared = _copy_of(kernel, buffer, Scope.SHARED, "moved")
    stops = [buffer, shared]
    if not isinstance(statement, ParallelFor | Copy):
        stops.append(_copy_of(kernel, buffer, Scope.FRAGMENT, "held"))
    before, after = _needs(statement, buffer)
    filled = _copies(stops, statement) if before else []
    emptied = _copies(stops[::-1], statement) if after else []
    home = statement if after else _home(kernel, statement, buffer)

    def visit(n: Node) -> Node:
        if n is statement:
            worked = _on_copy(statement, buffer, stops[-1])
            done: Node = Seq((worked, *emptied), loc=statement.loc)
        else:
            done = map_children(n, visit)
        if n is not home:
            return done
        assert isinstance(done, Stmt)
        return Seq((*filled, done), loc=statement.loc)

    changed = visit(kernel.body)
    assert isinstance(changed, Seq)
    if before and not set_before(kernel, statement, buffer):
        changed = zeroed(changed, buffer)
    made = [Alloc(stop, loc=buffer.loc) for stop in stops[1:]]
    changed = replace(changed, body=(*made, *changed.body))
    size = buffer.dtype.bytes
    for extent in buffer.static_shape:
        size *= extent
    note = f"re-layout of {buffer.name} through shared memory ({size} bytes): {conflict.reason}"
    return Relayout(replace(kernel, body=changed), note, size)


def _home(kernel: Kernel, statement: Stmt, buffer: Buffer) -> Stmt:
    """Before what a copy may be filled: the outermost loop around a statement that changes nothing
    of the fragment, so that every iteration finds the same."""
    home = statement
    above = [n for n in walk(kernel.body) if any(x is statement for x in walk(n)) and n is not home]
    for n in reversed(above):
        if isinstance(n, Seq):
            continue
        if not isinstance(n, For) or writes(n, buffer):
            break
        home = n
    return home


def _copies(stops: Sequence[Buffer], statement: Stmt) -> list[Stmt]:
    """Whole tiles from stop to stop."""
    return [Copy(whole(a), whole(b), loc=statement.loc) for a, b in pairwise(stops)]


def set_before(kernel: Kernel, statement: Stmt, buffer: Buffer) -> bool:
    """Whether a statement above another one sets the whole fragment."""
    for s in walk(kernel.body):
        if s is statement:
            break
        op = isinstance(s, TileOp) and s.written_regions()
        if any(r.buffer is buffer and is_whole(r) for r in op or ()):
            return True
        if isinstance(s, ParallelFor) and _writes_all(s, buffer):
            return True
    return False


def zeroed(body: Seq, buffer: Buffer) -> Seq:
    """With zeros in a fragment from its beginning: whole tiles go from stop to stop, and a program
    may have set only a part by then (columns that it finds one by one)."""
    zeros = Fill(whole(buffer), cast(as_expr(0), buffer.dtype), loc=buffer.loc)

    def visit(n: Node) -> Node:
        if not isinstance(n, Seq):
            return map_children(n, visit)
        parts = [(visit(s), isinstance(s, Alloc) and s.buffer is buffer) for s in n.body]
        flat = [x for s, begins in parts for x in ((s, zeros) if begins else (s,))]
        return replace(n, body=tuple(flat))

    changed = visit(body)
    assert isinstance(changed, Seq)
    return changed


def _stores(statement: Stmt, buffer: Buffer) -> bool:
    return any(isinstance(n, Store) and n.buffer is buffer for n in walk(statement))


def _everywhere(kernel: Kernel, buffer: Buffer, threads: int) -> Relayout:
    """Loops of different layouts contribute to a reducer: every thread gets all of it."""
    layout = Fragment.blocked(buffer.static_shape, 1).replicate(threads)
    changed = substitute(kernel, buffers={buffer: replace(buffer, layout=layout)})
    note = (
        f"every thread holds all of the reducer {buffer.name}: its updates are spread differently"
    )
    return Relayout(changed, note, 0)


def _copy_of(kernel: Kernel, buffer: Buffer, scope: Scope, suffix: str) -> Buffer:
    """A new buffer of the same shape and type."""
    taken = {n.buffer.name for n in walk(kernel) if isinstance(n, Alloc)}
    number = 0
    while (name := f"{buffer.name}_{suffix}" + (f"_{number}" if number else "")) in taken:
        number += 1
    return Buffer(name, buffer.shape, buffer.dtype, scope, loc=buffer.loc, copy_of=buffer.said)


def _needs(statement: Stmt, buffer: Buffer) -> tuple[bool, bool]:
    """Whether the copy must be filled before, and taken back after."""
    if isinstance(statement, TileOp):
        written = [r for r in statement.written_regions() if r.buffer is buffer]
        regions = (
            statement.operands("reads") if statement.overwrites() else statement.read_regions()
        )
        read = any(r.buffer is buffer for r in regions)
        return read or not all(map(is_whole, written)), bool(written)
    stores = [n for n in walk(statement) if isinstance(n, Store) and n.buffer is buffer]
    # A loop may leave elements alone, so what it writes starts from the old values.
    return not _writes_all(statement, buffer), bool(stores)


def _writes_all(statement: Stmt, buffer: Buffer) -> bool:
    """Whether a loop sets every element of a fragment, and reads none before that."""
    if not isinstance(statement, ParallelFor):
        return False
    for s in statement.body.body:
        if any(isinstance(n, Load) and n.buffer is buffer for n in walk(s)):
            return False
        if isinstance(s, Store) and s.buffer is buffer and _covers(s, statement):
            return True
    return False


def _covers(store: Store, loop: ParallelFor) -> bool:
    """Whether the points of a loop store to every element once: as one row-major number, the place
    has the loop's variables as digits."""
    place: Expr = as_expr(0)
    for index, size in zip(store.indices, store.buffer.static_shape, strict=True):
        place = place * size + index
    terms, constant = linear(place)
    extents = {v.key: const_int(e) or 0 for v, e in zip(loop.vars, loop.extents, strict=True)}
    weight = 1
    for key, (_, factor) in sorted(terms.items(), key=lambda term: term[1][1]):
        if factor != weight or key not in extents:
            return False
        weight *= extents[key]
    return constant == 0 and weight == prod(store.buffer.static_shape)


def _on_copy(statement: Stmt, buffer: Buffer, copy: Buffer) -> Stmt:
    """The statement with one buffer exchanged for the other."""
    return map_children(statement, lambda child: substitute(child, buffers={buffer: copy}))
