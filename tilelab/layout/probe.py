"""From a user's map (indices) -> (thread, register) to digits, by probing and then proving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .digits import Axes, Digit, Owner, malformed
from .fragment import Fragment
from .table import AnyFragment, IntArray, TableFragment, tables

SlotMap = Callable[..., Any]
"""(i, j, ...[, replica]) -> (thread, register)."""


def from_function(
    shape: Sequence[int], fn: SlotMap, num_threads: int | None = None, replicate: int = 1
) -> AnyFragment:
    """The fragment of a map ``fn(i, j, ...) -> (thread, register)``.

    With ``replicate`` > 1, ``fn`` takes the replica's number as one more, last argument, and only
    the thread may depend on it. ``num_threads``: how many threads there are, if more than the
    map uses. The map is tried on single steps along each axis; digits found so are checked on
    every element, and where there are none a TableFragment results.

    Raises TileValueError (TL1301) if ``fn`` does not return pairs of whole numbers, if the
    register depends on the replica, or if two elements share a slot.
    """
    shape = tuple(shape)
    if replicate < 1 or any(extent < 1 for extent in shape):
        raise malformed(f"a fragment {shape} with {replicate} replicas is empty")
    threads, registers = _evaluate((*shape, replicate), fn, with_replica=replicate > 1)
    if (registers != registers[..., :1]).any():
        raise malformed("the register of an element depends on its replica")
    found = _digits(threads, registers, num_threads)
    if found is not None:
        seen_threads, seen_registers = tables(found)
        if np.array_equal(seen_registers, registers[..., 0]) and np.array_equal(
            seen_threads, threads
        ):
            return found
    return TableFragment(shape, threads, registers[..., 0], num_threads or 0)


def _evaluate(shape: tuple[int, ...], fn: SlotMap, with_replica: bool) -> tuple[IntArray, IntArray]:
    """The map on every element, as arrays of ``shape`` (the replica is the last axis)."""
    grid = np.indices(shape)
    arguments = list(grid if with_replica else grid[:-1])
    try:
        thread, register = fn(*arguments)
        pair = [np.broadcast_to(np.asarray(part), shape) for part in (thread, register)]
    except (TypeError, ValueError):
        # Written for single numbers (an `if`, a call of math): ask element by element.
        pair = _evaluate_singly(shape, fn, arguments)
    for name, part in zip(("thread", "register"), pair, strict=True):
        if part.dtype.kind not in "iub":
            raise malformed(f"the {name} number must be a whole number, not {part.dtype}")
    return pair[0].astype(np.int64), pair[1].astype(np.int64)


def _evaluate_singly(
    shape: tuple[int, ...], fn: SlotMap, arguments: list[IntArray]
) -> list[IntArray]:
    columns = [argument.ravel().tolist() for argument in arguments]
    size = int(np.prod(shape))
    points = zip(*columns, strict=True) if columns else (() for _ in range(size))
    slots = np.array([fn(*point) for point in points])
    if slots.shape != (size, 2):
        raise malformed("the map must return a pair (thread, register)")
    return [slots[:, 0].reshape(shape), slots[:, 1].reshape(shape)]


def _digits(threads: IntArray, registers: IntArray, num_threads: int | None) -> Fragment | None:
    """A candidate read off single steps along each axis, or None; not yet proved."""
    rank = threads.ndim
    if threads.flat[0] or registers.flat[0]:
        return None
    axes: list[list[Digit]] = []
    for k in range(rank):
        line = tuple(slice(None) if a == k else 0 for a in range(rank))
        digits = _axis_digits(threads[line].tolist(), registers[line].tolist())
        if digits is None:
            return None
        axes.append(digits)
    _fill_gaps(axes, "thread", num_threads)
    _fill_gaps(axes, "register", None)
    replicas = tuple((d.extent, d.stride) for d in axes[-1])
    try:
        result = Fragment(threads.shape[:-1], _frozen(axes[:-1]), replicas)
    except ValueError:
        return None
    return result if num_threads in (None, result.num_threads) else None


def _frozen(axes: Sequence[Sequence[Digit]]) -> Axes:
    return tuple(tuple(digits) for digits in axes)


def _axis_digits(threads: Sequence[int], registers: Sequence[int]) -> list[Digit] | None:
    """Digits of one axis from the slots along it; None if a step moves both or neither owner."""
    digits: list[Digit] = []
    low, extent = 1, len(threads)
    while low < extent:
        moved: tuple[Owner, int]
        if threads[low] > 0 and registers[low] == 0:
            moved = ("thread", threads[low])
        elif registers[low] > 0 and threads[low] == 0:
            moved = ("register", registers[low])
        else:
            return None
        line, other = (threads, registers) if moved[0] == "thread" else (registers, threads)
        run = 1
        while run * low < extent and (line[run * low], other[run * low]) == (run * moved[1], 0):
            run += 1
        digits.append(Digit(run, moved[0], moved[1]))
        low *= run
    return digits


def _fill_gaps(axes: list[list[Digit]], owner: Owner, total: int | None) -> None:
    """Widen top digits of padded axes, whose extent the shape cuts short.

    A digit that ends below the next stride of its owner (or below ``total``) is widened to meet
    it if it is its axis's last: only there does padding leave the map of real elements alone.
    The last of ``axes`` counts the replicas, which cannot be padded.
    """
    places = [(d.stride, k, i) for k, a in enumerate(axes) for i, d in enumerate(a)]
    places = sorted(p for p in places if axes[p[1]][p[2]].owner == owner)
    for n, (stride, k, i) in enumerate(places):
        bound = places[n + 1][0] if n + 1 < len(places) else total
        is_top = i == len(axes[k]) - 1 and k < len(axes) - 1
        if is_top and bound and bound % stride == 0 and bound > stride * axes[k][i].extent:
            axes[k][i] = Digit(bound // stride, owner, stride)
