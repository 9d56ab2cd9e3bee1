"""Who runs a statement: blocks, lanes, lane loops, mask, and the values of variables.

A value is a Python number when it is the same everywhere, else an array whose last two axes are
(blocks, lanes), each of size 1 where it does not vary; LANES loops stand before them, the
innermost first. Narrowing to a branch slices values only when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tilelab.ir import Var

if TYPE_CHECKING:
    from tilelab.sim.loops import LoopThreads

Array = np.ndarray[Any, Any]
Value = Any
Narrow = Callable[[Value], Value]


def varies(value: Any) -> TypeGuard[Array]:
    """Whether a value is an array (and not one number for everybody)."""
    return isinstance(value, np.ndarray)


def snapshot(value: Value) -> Value:
    """A value that later stores do not change: a load may give a view of the memory itself."""
    return value.copy() if varies(value) and value.base is not None else value


def bits_differ(a: Array, b: Array) -> Array:
    """Where two arrays of one element type differ in a bit (NaN equals itself, 0 is not -0)."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    differ: Array = np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)
    return differ


@dataclass(frozen=True)
class First:
    """The first place where something is wrong. `bad`: all such places, an array of lane loops,
    blocks and lanes; `lane`: the block's row and the lane of the first."""

    bad: Array
    place: tuple[Any, ...]

    @property
    def lane(self) -> tuple[Any, ...]:
        return self.place[-2:]

    def of(self, value: Value) -> Any:
        """What a value is there."""
        return np.broadcast_to(np.asarray(value), self.bad.shape)[self.place]

    def index(self, indices: Iterable[Value]) -> tuple[int, ...]:
        """The indices of the element that is accessed there."""
        return tuple(int(self.of(i)) for i in indices)


def first_bad(bad: Any, frame: Frame) -> First | None:
    """The first active lane of a frame in which `bad` holds; None where none is."""
    bad = np.asarray(bad) if frame.mask is None else bad & frame.mask
    if not bad.any():
        return None
    bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, frame.shape))
    return First(bad, np.unravel_index(int(bad.argmax()), bad.shape))


class Env:
    """Values of variables; a child sees its parent's through an optional slicing."""

    __slots__ = ("_narrow", "_parent", "_values")

    def __init__(self, parent: Env | None = None, narrow: Narrow | None = None) -> None:
        self._values: dict[Var, Value] = {}
        self._parent, self._narrow = parent, narrow

    def set(self, var: Var, value: Value) -> None:
        self._values[var] = value

    def get(self, var: Var) -> Value:
        """The value of a variable; KeyError when it has none (a malformed program)."""
        try:
            return self._values[var]
        except KeyError:
            if self._parent is None:
                raise
        value = self._parent.get(var)
        if self._narrow is None:
            return value
        value = self._values[var] = self._narrow(value)
        return value


def rows_with(bad: Array) -> Array:
    """Of (..., rows, lanes), which rows have a true entry."""
    rows: Any = bad.any(axis=tuple(a for a in range(bad.ndim) if a != bad.ndim - 2))
    return rows


def is_range(numbers: Array) -> bool:
    """Whether numbers in order are all those between the first and the last."""
    return len(numbers) > 0 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1


class Frame:
    """The blocks (`rows` of the group) and threads (`lanes` of the block) that run together.

    `mask` is None, or says where (blocks, lanes, lane loops) the statement takes effect.
    """

    __slots__ = (
        "all_rows",
        "env",
        "epoch",
        "lane_key",
        "lanes",
        "loop",
        "loops",
        "mask",
        "row_key",
        "rows",
    )

    def __init__(
        self, rows: Array, lanes: Array, env: Env, group_size: int, epoch: int = 0
    ) -> None:
        self.rows, self.lanes, self.env, self.epoch = rows, lanes, env, epoch
        self.all_rows = len(rows) == group_size
        self.row_key: Any = _key(rows)
        self.lane_key: Any = _key(lanes)
        self.mask: Array | None = None
        self.loops: tuple[int, ...] = ()
        self.loop: LoopThreads | None = None  # the innermost loop that holds break or continue

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a value that varies everywhere."""
        return (*self.loops, len(self.rows), len(self.lanes))

    @property
    def contiguous_rows(self) -> bool:
        """Whether the blocks are neighbours in the group (`row_key` is a slice)."""
        return not varies(self.row_key)

    def active(self) -> int:
        """How many (block, lane, iteration) take part."""
        if self.mask is not None:
            return int(np.count_nonzero(np.broadcast_to(self.mask, self.shape)))
        total = len(self.rows) * len(self.lanes)
        for extent in self.loops:
            total *= extent
        return total

    def _copy(self) -> Frame:
        other = object.__new__(Frame)
        for name in Frame.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def kept(self) -> Frame:
        """The same for later, whichever blocks stop meanwhile (`drop_rows`)."""
        return self._copy()

    def inside(self, loop: LoopThreads) -> Frame:
        """The same in a loop that some threads may leave before others."""
        other = self._copy()
        other.loop = loop
        return other

    def masked(self, cond: Array) -> Frame:
        """The same lanes, with effect only where `cond` holds too."""
        other = self._copy()
        other.mask = cond if self.mask is None else self.mask & cond
        return other

    def looped(self, var: Var, values: Array) -> Frame:
        """With one more axis: the iterations of a LANES loop."""
        other = self._copy()
        other.loops = (len(values), *self.loops)
        other.env = Env(self.env)
        other.env.set(var, values.reshape(-1, *(1,) * (len(self.loops) + 2)))
        return other

    def looped_axis(self, count: int) -> Frame:
        """With one more axis of `count` iterations, without a variable."""
        other = self._copy()
        other.loops = (count, *self.loops)
        return other

    def narrowed(self, rows: Array | None, lanes: Array | None, group_size: int) -> Frame:
        """Only some blocks and lanes (boolean selections over this frame's; None: all)."""
        narrow = _slicer(rows, lanes, len(self.rows), len(self.lanes))
        new_rows = self.rows if rows is None else self.rows[rows]
        new_lanes = self.lanes if lanes is None else self.lanes[lanes]
        env = Env(self.env, narrow)
        other = Frame(new_rows, new_lanes, env, group_size, self.epoch)
        other.loops, other.loop = self.loops, self.loop
        other.mask = None if self.mask is None else narrow(self.mask)
        return other

    def where(self, cond: Array, group_size: int) -> Frame | None:
        """The part of this frame in which `cond` holds (itself: everywhere); None: nowhere.

        Blocks and lanes in which it never holds are left out; what is left is masked if needed.
        """
        both = cond if self.mask is None else cond & self.mask
        if both.ndim > 2 and max(both.shape[:-2]) > 1:
            return self.masked(cond) if both.any() else None
        flat = np.broadcast_to(both.reshape(both.shape[-2:]), self.shape[-2:])
        rows: Array = np.any(flat, axis=1)
        lanes: Array = np.any(flat, axis=0)
        if not rows.any():
            return None
        if self.mask is None and flat.all():
            return self
        sub = flat[rows][:, lanes]
        plain = self if self.mask is None else self._unmasked()
        out = plain.narrowed(
            None if rows.all() else rows, None if lanes.all() else lanes, group_size
        )
        out.mask = None if sub.all() else sub
        return out

    def rectangles(self, group_size: int) -> list[Frame]:
        """This frame as frames without a mask, one for each set of lanes that some blocks share;
        itself when it has no mask or one over lane loops."""
        if self.mask is None or self.mask.ndim > 2:
            return [self]
        flat = np.broadcast_to(self.mask, self.shape[-2:])
        patterns, numbers = np.unique(flat, axis=0, return_inverse=True)
        numbers = numbers.reshape(-1)
        plain = self._unmasked()
        return [
            plain.narrowed(numbers == i, lanes, group_size)
            for i, lanes in enumerate(patterns)
            if lanes.any()
        ]

    def _unmasked(self) -> Frame:
        other = self._copy()
        other.mask = None
        return other

    def drop_rows(self, keep: Array, group_size: int) -> None:
        """Go on with fewer blocks, in place (the others have stopped)."""
        smaller = self.narrowed(keep, None, group_size)
        for name in Frame.__slots__:
            setattr(self, name, getattr(smaller, name))

    def pick(self, array: Array) -> Array:
        """This frame's part of an array (..., blocks of the group, threads of the block)."""
        return array[..., self.row_key, :][..., self.lane_key]


def _key(numbers: Array) -> Any:
    if is_range(numbers):
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _slicer(rows: Array | None, lanes: Array | None, old_rows: int, old_lanes: int) -> Narrow:
    def narrow(value: Value) -> Value:
        if not varies(value) or value.ndim < 2:
            return value
        if rows is not None and value.shape[-2] == old_rows > 1:
            value = value[..., rows, :]
        if lanes is not None and value.shape[-1] == old_lanes > 1:
            value = value[..., lanes]
        return value

    return narrow


def agreeing(
    frame: Frame, values: Sequence[Value], group_size: int
) -> list[tuple[Frame, tuple[int, ...]]]:
    """The parts of a frame, without lane loops, whose threads have the same whole numbers as
    `values`, and these."""
    if not any(varies(v) and v.size > 1 for v in values):
        return [(frame, tuple(int(np.asarray(v).flat[0]) for v in values))]
    each = np.stack([np.broadcast_to(np.asarray(v), frame.shape).ravel() for v in values])
    kinds, which = np.unique(each, axis=1, return_inverse=True)
    if kinds.shape[1] == 1:
        return [(frame, tuple(kinds[:, 0].tolist()))]
    which = which.reshape(frame.shape)
    return [
        (part, tuple(kind))
        for i, kind in enumerate(kinds.T.tolist())
        for part in frame.masked(which == i).rectangles(group_size)
    ]
