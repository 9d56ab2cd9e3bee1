"""The map of a fragment: (indices) <-> (thread, register), in digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np

from .compose import aligned_run
from .digits import (
    Axes,
    Index,
    Replicas,
    Term,
    axis_cover,
    check_dense,
    count,
    malformed,
    merge_axis,
    take_digit,
    terms_of,
    weighted_sum,
)


def inside(indices: Sequence[Index], shape: Sequence[int], checked: Sequence[bool]) -> Any:
    """Whether the indices lie below the shape, on the axes that need a check.

    A plain bool for ints, a bool array (broadcast over all indices) for numpy arrays.
    """
    shapes = [cast(Any, i).shape for i in indices if isinstance(i, np.ndarray)]
    result: Any = np.ones(np.broadcast_shapes(*shapes), bool) if shapes else True
    for index, extent, needed in zip(indices, shape, checked, strict=True):
        if needed:
            below = index < extent
            result = below if result is True else result & below
    return result


@dataclass(frozen=True)
class DigitMap:
    """What ``Fragment`` (the name to use) knows about its elements; composition is added there.

    A tile of logical ``shape`` spread over threads and registers by mixed-radix digits.

    ``axes[k]`` lists axis k's digits from least to most significant. Their extents may multiply
    to more than ``shape[k]``: the axis is padded, and some slots hold no element. ``replicas``
    are (extent, thread stride) pairs: each element also lives in those other threads.

    Index arguments may be ints, numpy arrays or IR expressions; they must lie inside ``covers``
    (or below ``num_threads``/``num_registers``), which is not checked.

    Raises TileValueError (TL1301) if a stride leaves a gap or overlaps (see ``check_dense``), or
    if an axis's digits cover less than its extent. Digits of extent 1 are dropped.
    """

    shape: tuple[int, ...]
    axes: Axes
    replicas: Replicas = ()

    def __post_init__(self) -> None:
        axes = tuple(tuple(d for d in digits if d.extent != 1) for digits in self.axes)
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "replicas", tuple((e, s) for e, s in self.replicas if e != 1))
        if len(self.shape) != len(axes):
            raise malformed(f"{len(self.shape)} extents but digits for {len(axes)} axes")
        for k, (extent, cover) in enumerate(zip(self.shape, self.covers, strict=True)):
            if not 1 <= extent <= cover:
                raise malformed(f"axis {k}: the digits cover {cover} indices, not {extent}")
        check_dense(axes, self.replicas)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @cached_property
    def replication(self) -> int:
        """How many threads hold each element."""
        return prod(extent for extent, _ in self.replicas)

    @cached_property
    def num_threads(self) -> int:
        """Threads in use, replicas included."""
        return count(self.axes, "thread") * self.replication

    @cached_property
    def num_registers(self) -> int:
        """Elements each thread has room for."""
        return count(self.axes, "register")

    @cached_property
    def covers(self) -> tuple[int, ...]:
        """The padded shape: how many indices the digits of each axis can write."""
        return tuple(axis_cover(digits) for digits in self.axes)

    @property
    def is_padded(self) -> bool:
        """Whether some slots hold no element."""
        return self.covers != self.shape

    @cached_property
    def _terms(self) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        # From merged digits: fewer operations in the expressions that codegen prints.
        axes = tuple(merge_axis(digits) for digits in self.axes)
        return terms_of(axes, "thread"), terms_of(axes, "register")

    def thread_of(self, indices: Sequence[Index], replica: Index = 0) -> Index:
        """The thread that holds an element (its copy number ``replica`` < ``replication``).

        Axes without thread digits do not broadcast into the result; with none it is the int 0.
        """
        parts = [
            (take_digit(indices[t.axis], t.low, t.extent, t.top), t.stride) for t in self._terms[0]
        ]
        if not (isinstance(replica, int) and replica == 0):
            low = 1
            for extent, stride in self.replicas:
                top = low * extent == self.replication
                parts.append((take_digit(replica, low, extent, top), stride))
                low *= extent
        return weighted_sum(parts)

    def register_of(self, indices: Sequence[Index]) -> Index:
        """The register (an element slot of the owning thread) that holds an element."""
        return weighted_sum(
            (take_digit(indices[t.axis], t.low, t.extent, t.top), t.stride) for t in self._terms[1]
        )

    def element_of(self, thread: Index, register: Index) -> tuple[Index, ...]:
        """The indices of the element in a slot: the exact inverse of thread_of and register_of.

        In a padded fragment they may lie at or beyond ``shape``; ask ``in_bounds``.
        """
        parts: list[list[tuple[Index, int]]] = [[] for _ in self.shape]
        sources = ((thread, self.num_threads), (register, self.num_registers))
        for (number, total), terms in zip(sources, self._terms, strict=True):
            for t in terms:
                top = t.stride * t.extent == total
                parts[t.axis].append((take_digit(number, t.stride, t.extent, top), t.low))
        return tuple(weighted_sum(p) for p in parts)

    def in_bounds(self, thread: Index, register: Index) -> Any:
        """Whether a slot holds an element and not padding: a bool, or a bool array."""
        checked = [cover != extent for cover, extent in zip(self.covers, self.shape, strict=True)]
        indices = (*self.element_of(thread, register), thread, register)
        return inside(indices, (*self.shape, 0, 0), [*checked, False, False])

    def contiguous(self, axis: int = -1) -> int:
        """The widest vector along an axis: a power of two of aligned neighbours.

        That many elements, counted from a multiple of it, sit in as many neighbouring registers
        of one thread, and lie all inside the shape or all in its padding.
        """
        return aligned_run(merge_axis(self.axes[axis]), self.shape[axis])

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        copies = f", {self.replication} copies" if self.replication > 1 else ""
        padded = f", padded to {'x'.join(map(str, self.covers))}" if self.is_padded else ""
        where = f"{self.num_threads} threads x {self.num_registers} registers"
        return f"Fragment({size} over {where}{copies}{padded})"

    def describe(self) -> str:
        """Several lines: the short form, then each axis's digits, least significant first."""
        lines = [str(self)]
        for k, (extent, digits) in enumerate(zip(self.shape, self.axes, strict=True)):
            text = ", ".join(map(str, digits)) or "no digits"
            lines.append(f"  axis {k} (extent {extent}): {text}")
        lines += [f"  {e} copies (thread stride {s})" for e, s in self.replicas]
        return "\n".join(lines)
