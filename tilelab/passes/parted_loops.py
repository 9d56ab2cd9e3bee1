"""An elementwise loop in two parts: the first points that each thread has, and the rest of them.

Hides how a part is noted. Which points these are is known once the loop has a layout; until then
either part stands for the whole loop to everyone who asks what it touches. Both run with one
layout, for they have the same body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilelab.ir import Kernel, Node, ParallelFor, Seq
from tilelab.ir.printer import TEXTS
from tilelab.ir.rewrite import rewrite_statements

PART = "part"


@dataclass(frozen=True)
class Part:
    """Of each thread's points, `of` of them by estimate, those before (`first`) or from (not
    `first`) number `at` on."""

    first: bool
    at: int
    of: int

    def range(self, count: int) -> tuple[int, int]:
        """First point and number of points, of `count` that a thread has."""
        cut = count * self.at // self.of
        return (0, cut) if self.first else (cut, count - cut)


WHOLE = Part(first=False, at=0, of=1)


def in_two(loop: ParallelFor, at: int, of: int) -> tuple[ParallelFor, ...]:
    """A loop's first `at` points of `of` that a thread has, and the others, if there are any."""
    if at >= of:
        return (loop,)
    parts = (Part(True, at, of), Part(False, at, of))
    return tuple(replace(loop, attrs=(*loop.attrs, (PART, part))) for part in parts)


def part_of(loop: Node) -> Part | None:
    """Which part of a loop a statement is; None for a whole loop and other statements."""
    attrs = loop.attrs if isinstance(loop, ParallelFor) else ()
    return next((v for key, v in attrs if key == PART and isinstance(v, Part)), None)


def rejoined(kernel: Kernel) -> Kernel:
    """The kernel with every loop in one piece again, where its second part stands."""

    def visit(node: Node) -> Node | None:
        part = part_of(node)
        if part is None:
            return None
        assert isinstance(node, ParallelFor)
        whole = replace(node, attrs=tuple(a for a in node.attrs if a[0] != PART))
        return Seq((), loc=node.loc) if part.first else whole

    return rewrite_statements(kernel, visit)


TEXTS[Part] = lambda part, p: f"<{'first' if part.first else 'behind'} {part.at} of {part.of}>"

__all__ = ["WHOLE", "Part", "in_two", "part_of", "rejoined"]
