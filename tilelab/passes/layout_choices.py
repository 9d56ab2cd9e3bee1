"""Layouts that the program chose itself, as facts of the solver: by T.annotate_layout, or by using
an element of a fragment where every thread needs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilelab.errors import TileNotSupported
from tilelab.ir import (
    Alloc,
    Buffer,
    Kernel,
    Load,
    Node,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Stmt,
    Store,
    children,
    walk,
)
from tilelab.layout import Fragment, MapLayout
from tilelab.passes.layout_solver import Solution
from tilelab.tile.op import Fact, Fixed, Prefer, TileOp

ROW_BITS = 128  # what ldmatrix and stmatrix take at once


def chosen_layouts(kernel: Kernel) -> Iterator[Fact]:
    """A demand for every buffer that has a layout before any was inferred."""
    for node in walk(kernel):
        if isinstance(node, Alloc) and node.buffer.layout is not None:
            why = "the program says so (T.annotate_layout)"
            yield Fixed(node.buffer, node.buffer.layout, why, node)


# Of a fragment that every thread is to hold whole. Past a few hundred registers it lies in the
# thread's local memory, which is slow and right.
MOST_COPIED_BITS = 1024 * 32


def held_by_all(kernel: Kernel, facts: Sequence[Fact], threads: int) -> Iterator[Fact]:
    """A demand for every small fragment of which single elements are used outside of T.Parallel:
    each thread that comes by needs them, so each holds them all."""
    fixed = {id(f.buffer) for f in facts if isinstance(f, Fixed)}
    for buffer, statement in _single_uses(kernel.body, kernel.body):
        size = prod(buffer.static_shape) * buffer.dtype.bits
        if id(buffer) in fixed or size > MOST_COPIED_BITS or isinstance(buffer, ReducerBuffer):
            continue
        fixed.add(id(buffer))
        one = Fragment.blocked((1,) * buffer.rank, threads)
        why = "elements are used outside of T.Parallel"
        yield Fixed(buffer, one.repeat(*buffer.static_shape), why, statement)


def _single_uses(node: Node, statement: Stmt) -> Iterator[tuple[Buffer, Stmt]]:
    """Fragments whose elements are read or written in code that every thread runs."""
    if isinstance(node, Load | Store) and node.buffer.scope is Scope.FRAGMENT:
        yield node.buffer, statement
    for child in children(node):
        if not isinstance(child, ParallelFor | TileOp):
            yield from _single_uses(child, child if isinstance(child, Stmt) else statement)


def check_rows(facts: Sequence[Fact], solution: Solution) -> None:
    """Matrix instructions read rows of 16 bytes: a layout that the program chose must keep them.

    Raises TileNotSupported (TL1773) naming the buffer.
    """
    for fact in facts:
        if not isinstance(fact, Prefer) or fact.buffer.scope is not Scope.SHARED:
            continue
        layout = solution.layout(fact.buffer)
        if isinstance(layout, MapLayout) and layout.panel_cols * layout.element_bits < ROW_BITS:
            raise TileNotSupported(
                f"the layout given for {fact.buffer.root.name} tears apart rows of 16 bytes, which "
                "a matrix instruction reads at once",
                code="TL1773",
                loc=fact.buffer.loc,
                hint="permute groups of 16 bytes, or leave the layout to the compiler",
            )
