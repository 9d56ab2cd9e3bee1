"""Fragments seen under another shape: the same threads and registers for row-major positions.

Hides how digits are cut and joined, and which digits several shapes can name at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from .digits import Digit
from .fragment import Fragment


def reshaped(layout: Fragment, shape: Sequence[int]) -> Fragment | None:
    """The same threads and registers for row-major positions under another shape.

    None where an axis of the new shape would begin inside a digit that cannot be cut, or where
    padding would no longer be the end of an axis.
    """
    shape = tuple(shape)
    plain = [n for n, extent in enumerate(layout.shape) if extent != 1]
    if tuple(layout.shape[n] for n in plain) == tuple(e for e in shape if e != 1):
        rest = iter(layout.axes[n] for n in plain)
        axes = tuple(() if extent == 1 else next(rest) for extent in shape)
        return _checked(Fragment, shape, axes, layout.replicas)
    if layout.covers != layout.shape or prod(shape) != prod(layout.shape):
        return None
    digits = _joined([d for axis in reversed(layout.axes) for d in axis if d.extent > 1])
    axes_up: list[tuple[Digit, ...]] = []
    for extent in reversed(shape):
        taken = _take(digits, extent)
        if taken is None:
            return None
        axes_up.append(taken)
    return _checked(Fragment, shape, tuple(reversed(axes_up)), layout.replicas)


def _checked(make: Any, *parts: Any) -> Fragment | None:
    try:
        return make(*parts)
    except ValueError:
        return None


def _joined(digits: Sequence[Digit]) -> list[Digit]:
    """The digits, from the least significant on, where runs of one owner are one digit."""
    joined: list[Digit] = []
    for d in digits:
        last = joined[-1] if joined else None
        if last is not None and (last.owner, last.stride * last.extent) == (d.owner, d.stride):
            joined[-1] = Digit(last.extent * d.extent, last.owner, last.stride)
        else:
            joined.append(d)
    return joined


def _take(digits: list[Digit], extent: int) -> tuple[Digit, ...] | None:
    """The lowest digits that count up to `extent`, removed from `digits`; None if they do not."""
    taken: list[Digit] = []
    while extent > 1:
        if not digits:
            return None
        low = digits.pop(0)
        if extent % low.extent == 0:
            taken.append(low)
            extent //= low.extent
        elif low.extent % extent == 0:
            taken.append(Digit(extent, low.owner, low.stride))
            digits.insert(0, Digit(low.extent // extent, low.owner, low.stride * extent))
            extent = 1
        else:
            return None
    return tuple(taken)


def seen_as(shapes: Sequence[Sequence[int]], threads: int, vector: int = 1) -> Fragment:
    """A layout of the first shape over exactly `threads` threads that every shape can name.

    The shapes hold equally many elements. A thread gets at most `vector` neighbours first; among
    these the layout with the fewest registers is taken, then the one with the most neighbours.
    Digits that cannot be shared out among threads are registers, and threads left over hold
    copies. Pads nothing.
    """
    steps = list(_steps(shapes))
    widths = [w for w in range(vector, 0, -1) if vector % w == 0]
    flat = min((_flat(steps, threads, w) for w in widths), key=lambda f: f.num_registers)
    found = reshaped(flat, shapes[0])
    assert found is not None, (shapes, flat)
    return found


def _steps(shapes: Sequence[Sequence[int]]) -> Iterator[int]:
    """Extents of digits, from the lowest on: as small as every shape allows, since each axis
    must begin where a digit does or inside a digit that can be cut there."""
    total = prod(shapes[0])
    cuts = {prod(shape[k:]) for shape in shapes for k in range(len(shape))}
    points = [
        p for p in range(1, total + 1)
        if total % p == 0 and all(c % p == 0 or p % c == 0 for c in cuts)
    ]  # fmt: skip
    chain = [1]
    for p in points[1:]:
        if p % chain[-1] == 0:
            chain.append(p)
    yield from (high // low for low, high in pairwise(chain))


def _flat(steps: Sequence[int], threads: int, width: int) -> Fragment:
    digits: list[Digit] = []
    used, held = 1, 1
    for extent in steps:
        free = threads // used
        wide = not digits or all(d.owner == "register" for d in digits)
        if (wide and held * extent <= width) or free % extent:
            digits.append(Digit(extent, "register", held))
            held *= extent
        else:
            digits.append(Digit(extent, "thread", used))
            used *= extent
    copies = ((threads // used, used),) if threads > used else ()
    return Fragment((prod(steps),), (tuple(digits),), copies)
