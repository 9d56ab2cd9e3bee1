"""Composition of layouts on the level of digits: what the methods of Fragment are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod
from typing import TypeAlias

from .digits import Axes, Digit, Owner, Replicas, count, malformed, owned

Order: TypeAlias = int | Sequence[int] | None
"""Axes from the fastest varying on; axes not named follow, last axis first."""


def axis_order(rank: int, order: Order) -> tuple[int, ...]:
    """All axes, the fastest first. ``order`` names some of them; negative numbers count back.

    Raises TileValueError for an axis that does not exist or is named twice.
    """
    named = () if order is None else (order,) if isinstance(order, int) else tuple(order)
    if any(not -rank <= k < rank for k in named):
        raise malformed(f"order {named} names an axis that a layout of rank {rank} has not")
    front = tuple(k % rank for k in named)
    if len(set(front)) != len(front):
        raise malformed(f"order {named} names an axis twice")
    return front + tuple(k for k in reversed(range(rank)) if k not in front)


def check_times(times: Sequence[int], shape: Sequence[int], covers: Sequence[int]) -> None:
    """Raise TileValueError unless there is one factor per axis and no padding is repeated."""
    if len(times) != len(shape):
        raise malformed(f"{len(times)} factors given for {len(shape)} axes")
    for k, factor in enumerate(times):
        if factor < 1:
            raise malformed(f"axis {k}: a factor of {factor} leaves nothing")
        if factor > 1 and covers[k] != shape[k]:
            raise malformed(
                f"axis {k} is padded from {shape[k]} to {covers[k]}; repeating it leaves holes",
                hint="compose the unpadded layouts first, then use with_shape",
            )


def stack(axes: Axes, times: Sequence[int], owner: Owner, base: int, order: Order) -> Axes:
    """New digits of ``owner`` on top of each axis, numbered from stride ``base`` on."""
    grown = [list(digits) for digits in axes]
    stride = base
    for k in axis_order(len(axes), order):
        if times[k] > 1:
            grown[k].append(Digit(times[k], owner, stride))
            stride *= times[k]
    return tuple(tuple(digits) for digits in grown)


def scale(axes: Axes, threads: int, registers: int) -> Axes:
    """The same digits with strides multiplied, as the outer part of a product."""
    factor = {"thread": threads, "register": registers}
    return tuple(
        tuple(Digit(d.extent, d.owner, d.stride * factor[d.owner]) for d in digits)
        for digits in axes
    )


def densify(axes: Axes) -> Axes:
    """Close the gaps between register digits, keeping their order."""
    renamed: dict[int, int] = {}
    expected = 1
    for _, digit in owned(axes, "register"):
        renamed[digit.stride] = expected
        expected *= digit.extent
    return tuple(
        tuple(
            Digit(d.extent, d.owner, renamed[d.stride]) if d.owner == "register" else d
            for d in digits
        )
        for digits in axes
    )


def reduce_axis(axes: Axes, replicas: Replicas, axis: int) -> tuple[Axes, Replicas]:
    """Empty an axis: its thread digits become replicas, its register digits vanish."""
    copies = tuple((d.extent, d.stride) for d in axes[axis] if d.owner == "thread")
    emptied = tuple(() if k == axis else digits for k, digits in enumerate(axes))
    return densify(emptied), replicas + copies


def aligned_run(digits: Sequence[Digit], extent: int) -> int:
    """Largest power of two of neighbours that sit in as many aligned neighbouring registers.

    It divides ``extent`` too, so that a vector lies either inside the shape or in its padding.
    """
    run = 1
    for digit in digits:
        if digit.owner != "register" or digit.stride != run:
            break
        run *= digit.extent
    common = gcd(run, extent)
    return common & -common


def divisors(number: int) -> list[int]:
    """All divisors, rising."""
    return [d for d in range(1, number + 1) if number % d == 0]


def thread_splits(threads: int, rank: int) -> list[tuple[int, ...]]:
    """All ways to give a divisor of what is left of ``threads`` to each axis in turn."""
    if rank == 0:
        return [()]
    return [
        (first, *rest)
        for first in divisors(threads)
        for rest in thread_splits(threads // first, rank - 1)
    ]


@lru_cache(maxsize=512)
def best_split(chunks: tuple[int, ...], threads: int) -> tuple[int, ...]:
    """Threads per axis that leave the fewest chunks per thread.

    Ties: fewer distinct threads (so that the others replicate rather than idle on padding),
    then more threads on the last axis (neighbouring threads touch neighbouring memory).
    """

    def cost(split: tuple[int, ...]) -> tuple[int, ...]:
        rounds = prod(-(-c // t) for c, t in zip(chunks, split, strict=True))
        return (rounds, prod(split), *(-t for t in reversed(split)))

    return min(thread_splits(threads, len(chunks)), key=cost)


def blocked_axes(shape: Sequence[int], threads: int, vector: int) -> tuple[Axes, Replicas]:
    """Digits of the default elementwise layout; see ``Fragment.blocked``."""
    if not shape:
        return (), ((threads, 1),)
    width = gcd(shape[-1], vector)
    chunks = (*shape[:-1], shape[-1] // width)
    split = best_split(chunks, threads)
    rounds = [-(-c // t) for c, t in zip(chunks, split, strict=True)]
    axes: Axes = tuple(() for _ in shape)
    lanes = [1] * (len(shape) - 1) + [width]
    axes = stack(axes, lanes, "register", 1, None)
    axes = stack(axes, split, "thread", 1, None)
    axes = stack(axes, rounds, "register", width, None)
    used = count(axes, "thread")
    return axes, ((threads // used, used),)
