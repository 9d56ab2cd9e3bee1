"""Fragments: which thread holds which element of a tile, in which of its registers.

``DigitMap`` holds the digits and answers where an element is; ``Fragment`` adds composition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import compose
from .compose import Order
from .digitmap import DigitMap
from .digits import Axes, Digit, malformed, merge_axis, merge_replicas

__all__ = ["Digit", "Fragment"]


@dataclass(frozen=True)
class Fragment(DigitMap):
    """A tile of logical ``shape`` spread over threads and registers by mixed-radix digits.

    See ``DigitMap`` for the fields and the maps. Every method here returns a new fragment and
    raises TileValueError (TL1301) for arguments that do not fit. ``order`` arguments name axes,
    the fastest varying first; axes not named follow, last axis first.
    """

    @classmethod
    def blocked(cls, shape: Sequence[int], num_threads: int, vector: int = 1) -> Fragment:
        """The default layout of an elementwise tile over exactly ``num_threads`` threads.

        A thread holds ``vector`` neighbours of the last axis (fewer if the extent is no multiple),
        threads run along the last axis and then outwards, registers take the rest. Extents that
        do not divide are padded; threads left over hold copies.
        """
        if num_threads < 1 or vector < 1 or any(extent < 1 for extent in shape):
            raise malformed(f"cannot spread {tuple(shape)} over {num_threads} threads x {vector}")
        return cls(tuple(shape), *compose.blocked_axes(shape, num_threads, vector))

    def repeat(self, *times: int, order: Order = None) -> Fragment:
        """Repeat over new registers, ``times[k]`` along axis k."""
        compose.check_times(times, self.shape, self.covers)
        axes = compose.stack(self.axes, times, "register", self.num_registers, order)
        return self._grown(times, axes)

    def spatial(self, *times: int, order: Order = None) -> Fragment:
        """Repeat over new threads, ``times[k]`` along axis k."""
        compose.check_times(times, self.shape, self.covers)
        axes = compose.stack(self.axes, times, "thread", self.num_threads, order)
        return self._grown(times, axes)

    def _grown(self, times: Sequence[int], axes: Axes) -> Fragment:
        shape = tuple(s * t for s, t in zip(self.shape, times, strict=True))
        return Fragment(shape, axes, self.replicas)

    def product(self, outer: Fragment) -> Fragment:
        """This fragment as the inner block of each element of ``outer``.

        Threads and registers of ``outer`` are numbered above this one's; so are its replicas.
        """
        if self.rank != outer.rank:
            raise malformed(f"a product needs equal ranks, not {self.rank} and {outer.rank}")
        compose.check_times(outer.covers, self.shape, self.covers)
        scaled = compose.scale(outer.axes, self.num_threads, self.num_registers)
        axes = tuple(low + high for low, high in zip(self.axes, scaled, strict=True))
        shape = tuple(a * b for a, b in zip(self.shape, outer.shape, strict=True))
        above = tuple((e, s * self.num_threads) for e, s in outer.replicas)
        return Fragment(shape, axes, self.replicas + above)

    def replicate(self, copies: int) -> Fragment:
        """Give each element to ``copies`` times as many threads, numbered above the present."""
        if copies < 1:
            raise malformed(f"{copies} copies of a fragment leave nothing")
        return Fragment(self.shape, self.axes, (*self.replicas, (copies, self.num_threads)))

    def reduce(self, axis: int, keepdim: bool = False) -> Fragment:
        """The layout of the result of reducing an axis, known to all threads that took part.

        The axis's thread digits become replicas, its register digits vanish and the registers
        that remain are numbered densely in the old order.
        """
        axis = self._axis(axis)
        axes, replicas = compose.reduce_axis(self.axes, self.replicas, axis)
        shape = tuple(1 if k == axis else s for k, s in enumerate(self.shape))
        kept = Fragment(shape, axes, replicas)
        return kept if keepdim else kept.drop_axis(axis)

    def transpose(self, perm: Sequence[int] | None = None) -> Fragment:
        """Axes in the order ``perm`` (default: reversed); no element moves."""
        order = tuple(perm) if perm is not None else tuple(reversed(range(self.rank)))
        if sorted(order) != list(range(self.rank)):
            raise malformed(f"{order} is no permutation of {self.rank} axes")
        shape = tuple(self.shape[k] for k in order)
        return Fragment(shape, tuple(self.axes[k] for k in order), self.replicas)

    def with_shape(self, shape: Sequence[int]) -> Fragment:
        """The same digits for another shape within ``covers``: more or less padding."""
        return Fragment(tuple(shape), self.axes, self.replicas)

    def drop_axis(self, axis: int) -> Fragment:
        """Without an axis of extent 1 that has no digits."""
        axis = self._axis(axis)
        if self.axes[axis]:
            raise malformed(f"axis {axis} has digits; reduce it instead of dropping it")
        keep = [k for k in range(self.rank) if k != axis]
        return Fragment(
            tuple(self.shape[k] for k in keep), tuple(self.axes[k] for k in keep), self.replicas
        )

    def drop_leading(self, axes: int = 1) -> Fragment:
        """Without the first ``axes`` axes, which must have extent 1 and no digits."""
        fragment = self
        for _ in range(axes):
            fragment = fragment.drop_axis(0)
        return fragment

    def insert_axis(self, axis: int = 0) -> Fragment:
        """With a new axis of extent 1 at position ``axis``."""
        if not 0 <= axis <= self.rank:
            raise malformed(f"no position {axis} in a layout of rank {self.rank}")
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return Fragment(shape, (*self.axes[:axis], (), *self.axes[axis:]), self.replicas)

    def normalized(self) -> Fragment:
        """The same map with as few digits as possible, replicas by rising stride."""
        axes = tuple(merge_axis(digits) for digits in self.axes)
        return Fragment(self.shape, axes, merge_replicas(self.replicas))

    def _axis(self, axis: int) -> int:
        if not -self.rank <= axis < self.rank:
            raise malformed(f"no axis {axis} in a layout of rank {self.rank}")
        return axis % self.rank
