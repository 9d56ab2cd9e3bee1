"""Layouts that the program chose itself (T.annotate_layout), as facts of the solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelab.errors import TileNotSupported
from tilelab.ir import Alloc, Kernel, Scope, walk
from tilelab.layout import MapLayout
from tilelab.passes.layout_solver import Solution
from tilelab.tile.op import Fact, Fixed, Prefer

ROW_BITS = 128  # what ldmatrix and stmatrix take at once


def chosen_layouts(kernel: Kernel) -> Iterator[Fact]:
    """A demand for every buffer that has a layout before any was inferred."""
    for node in walk(kernel):
        if isinstance(node, Alloc) and node.buffer.layout is not None:
            why = "the program says so (T.annotate_layout)"
            yield Fixed(node.buffer, node.buffer.layout, why, node)


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
