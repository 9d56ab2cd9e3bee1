"""Atomic updates: the part of `Machine` in which lanes change one element after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab.ir import Buffer, Scope
from tilelab.sim.frame import Array, Frame
from tilelab.sim.lane_copies import CopyLanes
from tilelab.sim.place import Place, spread


class AtomicLanes(CopyLanes):
    """Atomics of one strand. Lanes take their turn in the order of iterations, blocks, lanes."""

    def atomic(
        self, place: Place, values: Array | None, combine: Callable[[Array, Array], Array],
        together: int = 1,
    ) -> Array:  # fmt: skip
        """Update consecutive elements (axis 0 of `values`; None: read one), `together` of them by
        one instruction; the old values."""
        count = 1 if values is None else len(values)
        if together > 1:
            self.memory.check_start(place, together * place.buffer.dtype.bytes, self.frame)
        inner = self.frame.looped_axis(count)
        whole = self.memory.bounded(place.plus(spread(count, self.frame)), inner, "atomic access")
        self.group.counters.add(self.memory.loc, "atomics", inner.active())
        target, where = self._target(whole, inner)
        where = tuple(np.broadcast_to(i, inner.shape) for i in where)
        on = self._effective(inner)
        if self.group.order.told:
            flat = np.ravel_multi_index(where, target.shape)
            self._tell(place.buffer, target.size, flat, inner, on)
        if values is None:
            return np.asarray(target[where])
        old = np.zeros(inner.shape, target.dtype)
        chosen = tuple(i[on] for i in where)
        new = np.broadcast_to(values, inner.shape)[on].astype(target.dtype, copy=False)
        old[on] = in_turn(target, chosen, new, combine)
        if self.group.idle and (target[chosen] != old[on]).any():
            self.group.idle = 0
        return old

    def _target(self, place: Place, frame: Frame) -> tuple[Array, tuple[Any, ...]]:
        """The array that holds the elements, and their indices in it."""
        buffer, group = place.buffer, self.group
        if buffer.scope is Scope.GLOBAL:
            where = tuple(np.asarray(i) for i in place.indices)
            self.memory.use_global_atomic(buffer, where, frame)
            return group.arrays[buffer], where
        address = np.asarray(self.memory.address(place))
        self.memory.use_atomic(buffer, address, frame)
        view = group.shared.view(buffer.dtype.numpy)
        return view, (frame.rows[:, None], address // buffer.dtype.bytes)

    def _tell(self, buffer: Buffer, size: int, where: Any, frame: Frame, on: Array) -> None:
        """Let the active threads publish at the elements, and read there, what blocks know."""
        group, numbers = self.group, self.group.numbers[frame.rows][:, None]
        blocks, threads = (np.broadcast_to(v, frame.shape)[on] for v in (numbers, frame.lanes))
        elements = where[on] if buffer.scope is Scope.GLOBAL else where[on] + blocks * size
        group.order.between.exchange(
            buffer, elements, (blocks, threads), group.clocks, int(group.numbers[0]),
            self.memory.statement,
        )  # fmt: skip

    def _effective(self, frame: Frame) -> Array:
        """Where the update takes effect: the mask, without blocks that have stopped."""
        alive = ~self.group.dead[frame.rows][:, None]
        on = alive if frame.mask is None else frame.mask & alive
        return np.broadcast_to(on, frame.shape)


def in_turn(
    target: Array, where: tuple[Array, ...], values: Array, combine: Callable[[Array, Array], Array]
) -> Array:
    """Apply updates to `target` one after another where they meet; what each one found."""
    if not len(values):
        return values
    keys = np.ravel_multi_index(where, target.shape)
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    where = tuple(i[order] for i in where)
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    sizes = np.diff(np.r_[starts, len(keys)])
    old = np.empty_like(values)
    if combine is np.add and target.dtype.kind in "iu":
        old[:] = _running_sums(values, starts, sizes) + target[where]
        last = starts + sizes - 1
        target[tuple(i[last] for i in where)] = old[last] + values[last]
    else:
        for turn in range(int(sizes.max())):
            now = starts[sizes > turn] + turn
            at = tuple(i[now] for i in where)
            old[now] = target[at]
            target[at] = combine(old[now], values[now]).astype(target.dtype, copy=False)
    out = np.empty_like(old)
    out[order] = old
    return out


def _running_sums(values: Array, starts: Array, sizes: Array) -> Array:
    """Sums of the values before each one in its run (integers wrap around)."""
    before = np.cumsum(values, dtype=values.dtype) - values
    return before - np.repeat(before[starts], sizes)
