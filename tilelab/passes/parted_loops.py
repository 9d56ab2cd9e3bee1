"""An elementwise loop in two parts: the first points that each thread has, and the rest of them.

Hides how a part is noted. Which points these are is known once the loop has a layout; until then
either part stands for the whole loop to everyone who asks what it touches. Both run with one
layout, for they have the same body.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.ir import Kernel, Node, ParallelFor, Seq
from tilelab.ir.rewrite import rewrite_statements

PART = "part"  # (whether it is the first, before which point the loop is cut, of how many)


def in_two(loop: ParallelFor, at: int, of: int) -> tuple[ParallelFor, ...]:
    """A loop's first `at` points of `of` that a thread has, and the others, if there are any."""
    cuts = [(PART, (first, at, of)) for first in (True, False)]
    return tuple(replace(loop, attrs=(*loop.attrs, cut)) for cut in cuts) if at < of else (loop,)


def part_of(loop: Node) -> tuple[bool, int, int] | None:
    """Which part of a loop a statement is; None for a whole loop and other statements."""
    attrs = loop.attrs if isinstance(loop, ParallelFor) else ()
    return next((v for key, v in attrs if key == PART), None)  # type: ignore[return-value]


def points_of(loop: ParallelFor, count: int) -> tuple[int, int]:
    """The first point, and the number of points, that a loop runs of `count` that a thread has."""
    first, at, of = part_of(loop) or (False, 0, 1)
    cut = count * at // of
    return (0, cut) if first else (cut, count - cut)


def rejoined(kernel: Kernel) -> Kernel:
    """The kernel with every loop in one piece again, where its second part stands."""

    def visit(node: Node) -> Node | None:
        part = part_of(node)
        if part is None or not isinstance(node, ParallelFor):
            return None
        whole = replace(node, attrs=tuple(a for a in node.attrs if a[0] != PART))
        return Seq((), loc=node.loc) if part[0] else whole

    return rewrite_statements(kernel, visit)


__all__ = ["in_two", "part_of", "points_of", "rejoined"]
