"""Regular accesses: elements that lie at constant steps, as a view instead of index by index.

Hides how steps are found: each axis of an access is split into digits (as layouts are made of),
along each of which the place in the tensor grows by a constant. Moving a view of many elements
costs a third of gathering or scattering them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

Array = np.ndarray[Any, Any]
FEWEST = 2048
"""Elements from which on looking for steps is worth while."""


@dataclass(frozen=True)
class Regular:
    """The elements `first + sum(steps * digits)` of a row-major array, for all digits below
    `extents`; `shape` is the access's own, whose axes the digits split. `distinct`: no element
    is named twice."""

    shape: tuple[int, ...]
    first: int
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    distinct: bool

    def of(self, array: Array) -> Array:
        """The elements of a row-major array as a view, an axis for each digit."""
        size = array.itemsize
        words = array.reshape(-1)[self.first :].view(f"u{size}")  # 8-bit floats have no strides
        seen = as_strided(words, self.extents, [step * size for step in self.steps])
        return seen.view(array.dtype)

    def load(self, array: Array) -> Array:
        """The elements, in the access's shape."""
        out = np.empty(self.shape, array.dtype)
        out.reshape(self.extents)[...] = self.of(array)
        return out

    def store(self, array: Array, values: Any) -> None:
        """Write values that have (or extend to) the access's shape."""
        self.of(array)[...] = np.broadcast_to(values, self.shape).reshape(self.extents)


def regular(array: Array, indices: Sequence[Any], shape: tuple[int, ...]) -> Regular | None:
    """How `array[indices]`, extended to `shape`, lies in a row-major array; None where that is
    irregular, or not worth finding out. The indices are in range."""
    if prod(shape) < FEWEST or not array.flags.c_contiguous or not array.size:
        return None
    first, stride = 0, array.size
    lines = [np.zeros(n, np.int64) for n in shape]
    for index, extent in zip(indices, array.shape, strict=True):
        stride //= extent
        values = np.asarray(index)
        values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
        start = int(values.flat[0])
        first += start * stride
        parts = _lines(values, start)
        if parts is None:
            return None
        for axis, part in parts:
            lines[axis] += part.astype(np.int64) * stride
    digits = [_digits(line) for line in lines]
    found = [d for axis in digits if axis is not None for d in axis]
    if any(axis is None for axis in digits):
        return None
    extents, steps = tuple(n for n, _ in found), tuple(s for _, s in found)
    return Regular(shape, first, extents, steps, _distinct(found))


def _lines(values: Array, start: int) -> list[tuple[int, Array]] | None:
    """What an index adds along each axis, when it is a sum of such; else None."""
    axes = [a for a, n in enumerate(values.shape) if n > 1]
    parts: list[tuple[int, Array]] = []
    for axis in axes:
        at: list[Any] = [0] * values.ndim
        at[axis] = slice(None)
        parts.append((axis, values[tuple(at)] - start))
    if len(axes) < 2:
        return parts
    total: Any = start
    for axis, part in parts:
        total = total + part.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return parts if np.array_equal(total, values) else None


def _digits(line: Array) -> list[tuple[int, int]] | None:
    """(extent, step) of the digits that numbers 0, 1, ... have such that `line` is the sum of
    steps times digits, the slowest first; None when there are none."""
    if len(line) == 1:
        return [(1, 0)]
    out: list[tuple[int, int]] = []
    while len(line) > 1:
        step = int(line[1] - line[0])
        other = np.flatnonzero(np.diff(line) != step)
        extent = int(other[0]) + 1 if len(other) else len(line)
        if len(line) % extent:
            return None
        runs = line.reshape(-1, extent)
        if not np.array_equal(runs, runs[:, :1] + np.arange(extent) * step):
            return None
        out.append((extent, step))
        line = runs[:, 0]
    return out[::-1]


def _distinct(digits: Sequence[tuple[int, int]]) -> bool:
    """Whether different digits always give different places: each step passes all of the
    smaller ones together."""
    reach = 0
    for extent, step in sorted(((n, abs(s)) for n, s in digits if n > 1), key=lambda d: d[1]):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True
