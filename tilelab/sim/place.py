"""Places: evaluated references to memory, and the checks that all kinds of memory share.

Hides how a failed check finds the block and lane to blame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer, Pool, Scope
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, Value, bits_differ, first_bad, rows_with, varies
from tilelab.sim.group import BlockGroup
from tilelab.thread import Invoke, VectorCopy

_INSERTED = (VectorCopy, Invoke)


@dataclass(frozen=True)
class Place:
    """An evaluated Ref: a buffer and the values of its indices."""

    buffer: Buffer
    indices: tuple[Value, ...]

    def plus(self, offset: Value) -> Place:
        """So many elements further along the last axis."""
        if not self.indices:
            return self
        return Place(self.buffer, (*self.indices[:-1], self.indices[-1] + offset))

    def corner(self) -> tuple[int, ...]:
        """The element that the first block and lane mean."""
        return tuple(int(np.asarray(i).flat[0]) for i in self.indices)


def spread(count: int, frame: Frame) -> Array:
    """0 .. count-1 as a new first axis."""
    return np.arange(count, dtype=np.int32).reshape(-1, *(1,) * (len(frame.loops) + 2))


class CheckedBase:
    """Bounds, alignment and reports. `loc` and `statement` are what runs now, `site` the Load
    that is evaluated in it (None: the statement itself accesses memory)."""

    def __init__(self, group: BlockGroup) -> None:
        self.group = group
        self.loc: Loc | None = None
        self.statement: Any = None
        self.site: Any = None

    def extents(self, buffer: Buffer) -> tuple[int, ...]:
        """The shape as numbers."""
        if buffer.scope is Scope.GLOBAL:
            return self.group.arrays[buffer].shape
        return buffer.static_shape or (1,)

    def bounded(self, place: Place, frame: Frame, what: str) -> Place:
        """The place with every index inside its axis; what was outside is reported."""
        extents = self.extents(place.buffer)
        indices = place.indices or (0,)
        inside = all(_inside(i, n) for i, n in zip(indices, extents, strict=True))
        if inside:
            whole = place if place.indices else Place(place.buffer, indices)
            return self._existing(whole, frame, what)
        bad: Any = np.False_
        for index, extent in zip(indices, extents, strict=True):
            array = np.asarray(index)
            bad = bad | (array < 0) | (array >= extent)
        first = first_bad(bad, frame)
        if first is not None:
            at = first.index(indices)
            message = outside(what, place.buffer, at, extents)
            self.report(f.OUT_OF_BOUNDS, message, frame, first.lane, place.buffer, at)
            self.group.stop(frame.rows[rows_with(first.bad)])
        clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, extents, strict=True))
        return self._existing(Place(place.buffer, clipped), frame, what)

    def _existing(self, place: Place, frame: Frame, what: str) -> Place:
        """The place; an element of a pool that lies in no tensor is reported."""
        pool, pools = place.buffer, self.group.pools
        if not isinstance(pool, Pool) or pools is None:
            return place
        bad = pools.missing(pool, tuple(np.asarray(i) for i in place.indices))
        first = None if bad is None else first_bad(bad, frame)
        if first is None:
            return place
        at = first.index(place.indices)
        text = f"{what} of {pool.said}[{', '.join(map(str, at))}]: {pools.why_missing(pool, at)}"
        hint = "keep all tensors of the table on the CPU, alive, and as large as the program says"
        self.report(f.OUT_OF_BOUNDS, text, frame, first.lane, pool, at, hint=hint)
        self.group.stop(frame.rows[rows_with(first.bad)])
        return place

    def report(
        self,
        code: str,
        message: str,
        frame: Frame,
        at: Any,
        buffer: Buffer | None = None,
        index: tuple[int, ...] | None = None,
        other: Loc | None = None,
        hint: str = "",
        level: str = "error",
    ) -> None:
        self.group.report(
            code, message, self.loc, row=int(frame.rows[int(at[0])]),
            thread=int(frame.lanes[int(at[1])]), buffer=buffer, index=index, other=other, hint=hint,
            level=level,
        )  # fmt: skip

    def divided_by_zero(self, where: Any, frame: Frame) -> None:
        """Report an integer division by zero in an active lane."""
        first = first_bad(where, frame)
        if first is not None:
            self.report(f.DIVISION, "an integer is divided by zero", frame, first.lane)

    def inserted(self) -> bool:
        """Whether the compiler made the statement that runs out of a copy, a product, ..."""
        return type(self.statement) in _INSERTED

    def check_alignment(
        self, address: Any, width: int, frame: Frame, buffer: Buffer,
        indices: tuple[Value, ...] | None = None,
    ) -> None:  # fmt: skip
        """Report accesses of `width` bytes that start elsewhere; `indices` of the elements, None:
        shared memory knows them by their address."""
        first = first_bad(~aligned(np.asarray(address), width), frame)
        if first is None:
            return
        text = (
            f"an access of {width} bytes to {buffer.said} does not start at a multiple of {width}"
        )
        if indices is None:
            found = self.group.shared.element(int(first.of(address)), buffer)
            index = found and found[1]
        else:
            index = first.index(indices)
        self.report(f.MISALIGNED, text, frame, first.lane, buffer, index)


def outside(what: str, buffer: Buffer, at: tuple[int, ...], extents: tuple[int, ...]) -> str:
    """What is wrong with an access of `buffer[at]`, one of whose indices is out of range."""
    axis = next(a for a, (i, n) in enumerate(zip(at, extents, strict=True)) if not 0 <= i < n)
    where = "[" + ", ".join(map(str, at)) + "]"
    return f"{what} of {buffer.said}{where} is outside axis {axis}, whose extent is {extents[axis]}"


def aligned(address: Array, width: int) -> Any:
    """Where byte addresses are multiples of a width."""
    low = address & (width - 1) if width & (width - 1) == 0 else address % width
    return low == 0


def first_of(place: Place) -> Place:
    """The first element of a run: axis 0 of the last index dropped."""
    last = np.asarray(place.indices[-1])[0]
    others = place.indices[:-1]
    return Place(place.buffer, (*others, last))


def _inside(index: Value, extent: int) -> bool:
    if varies(index):
        return index.size == 0 or (int(index.min()) >= 0 and int(index.max()) < extent)
    return 0 <= index < extent


def differing(a: Array, b: Array, frame: Frame) -> Array:
    """Where two arrays of values differ in a bit, and the mask is on."""
    differ = bits_differ(a, b)
    return differ if frame.mask is None else differ & frame.mask
