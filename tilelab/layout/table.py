"""Fragments kept as tables, for maps that no digits describe; and comparison by enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .digitmap import inside
from .digits import malformed, unravel
from .fragment import Fragment

IntArray: TypeAlias = NDArray[np.int64]


class TableFragment:
    """A fragment whose map is two arrays; it answers the same questions as ``Fragment``.

    threads: shape + (replication,); registers: shape. Indices must be ints or numpy arrays;
    an IR expression raises TileValueError, for there is no formula to print. Slots that hold no
    element give ``element_of`` = shape and ``in_bounds`` = False.

    Raises TileValueError (TL1301) if two elements share a slot, or a number is negative or
    beyond ``num_threads``.
    """

    def __init__(
        self, shape: Sequence[int], threads: IntArray, registers: IntArray, num_threads: int = 0
    ) -> None:
        self.shape = tuple(shape)
        self.threads = np.array(threads, np.int64)
        self.registers = np.array(registers, np.int64)
        self.replication = self.threads.shape[-1]
        self.num_registers = int(self.registers.max()) + 1
        used = int(self.threads.max()) + 1
        self.num_threads = num_threads or used
        if self.threads.min() < 0 or self.registers.min() < 0 or used > self.num_threads:
            raise malformed(
                f"thread numbers run from {self.threads.min()} to {used - 1}, registers from "
                f"{self.registers.min()}; there are {self.num_threads} threads"
            )
        self.threads.flags.writeable = self.registers.flags.writeable = False
        self._elements = self._inverse()

    def _inverse(self) -> IntArray:
        """Flat element index per (thread, register) slot; -1 for an empty one."""
        slots = (self.threads * self.num_registers + self.registers[..., None]).ravel()
        order = np.argsort(slots, kind="stable")
        twice = np.nonzero(slots[order][1:] == slots[order][:-1])[0]
        if twice.size:
            first, second = (int(order[twice[0] + k]) // self.replication for k in (0, 1))
            thread, register = divmod(int(slots[order[twice[0]]]), self.num_registers)
            raise malformed(
                f"elements {unravel(first, self.shape)} and {unravel(second, self.shape)} "
                f"are both in thread {thread}, register {register}",
                hint="a fragment's map must give each element a slot of its own",
            )
        inverse = np.full(self.num_threads * self.num_registers, -1, np.int64)
        inverse[slots] = np.arange(slots.size) // self.replication
        return inverse

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def covers(self) -> tuple[int, ...]:
        """The shape: a table has no padded indices, only empty slots."""
        return self.shape

    @property
    def is_padded(self) -> bool:
        """Whether some slots hold no element."""
        slots = self.num_threads * self.num_registers
        return slots != prod(self.shape) * self.replication

    def thread_of(self, indices: Sequence[Any], replica: Any = 0) -> Any:
        """The thread that holds copy ``replica`` of an element."""
        return self._look(self.threads, (*indices, replica))

    def register_of(self, indices: Sequence[Any]) -> Any:
        """The register of the owning thread that holds an element."""
        return self._look(self.registers, tuple(indices))

    def element_of(self, thread: Any, register: Any) -> tuple[Any, ...]:
        """The indices of the element in a slot; ``shape`` itself if the slot is empty."""
        table = self._elements.reshape(self.num_threads, self.num_registers)
        flat = self._look(table, (thread, register))
        if isinstance(flat, int):
            return self.shape if flat < 0 else unravel(flat, self.shape)
        found = unravel(flat, self.shape)
        return tuple(
            np.where(flat < 0, extent, index)
            for index, extent in zip(found, self.shape, strict=True)
        )

    def in_bounds(self, thread: Any, register: Any) -> Any:
        """Whether a slot holds an element: a bool, or a bool array."""
        indices = self.element_of(thread, register)
        return inside(indices, self.shape, [True] * self.rank)

    @staticmethod
    def _look(table: IntArray, indices: tuple[Any, ...]) -> Any:
        if not all(isinstance(i, (int, np.integer, np.ndarray)) for i in indices):
            raise malformed(
                "this fragment is a table and cannot be indexed by an expression",
                hint="write its map with + * // % so that it has mixed-radix digits",
            )
        value: Any = table[indices]
        return int(value) if np.ndim(value) == 0 else value

    def contiguous(self, axis: int = -1) -> int:
        """The widest vector along an axis, as in ``Fragment.contiguous``, by enumeration."""
        extent = self.shape[axis]
        threads = np.moveaxis(self.threads[..., 0], axis, -1).reshape(-1, extent)
        registers = np.moveaxis(self.registers, axis, -1).reshape(-1, extent)
        width = 1
        while extent % (2 * width) == 0:
            t = threads.reshape(-1, 2 * width)
            r = registers.reshape(-1, 2 * width)
            run = r == r[:, :1] + np.arange(2 * width)
            if not (run.all() and (t == t[:, :1]).all() and (r[:, 0] % (2 * width) == 0).all()):
                break
            width *= 2
        return width

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.num_threads, self.threads.tobytes(), self.registers.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFragment) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        copies = f", {self.replication} copies" if self.replication > 1 else ""
        where = f"{self.num_threads} threads x {self.num_registers} registers"
        return f"TableFragment({size} over {where}{copies})"

    __repr__ = __str__

    def describe(self) -> str:
        """Several lines: the short form and where the elements of the first row are."""
        cells = zip(self.threads[..., 0].ravel(), self.registers.ravel(), strict=True)
        row = " ".join(f"t{t}r{r}" for (t, r), _ in zip(cells, range(16), strict=False))
        return f"{self}\n  a table, no digits; it begins {row}"


AnyFragment: TypeAlias = Fragment | TableFragment


def tables(fragment: AnyFragment) -> tuple[IntArray, IntArray]:
    """The whole map: threads of shape + (replication,), registers of shape."""
    grid = tuple(np.indices(fragment.shape))
    registers = np.broadcast_to(fragment.register_of(grid), fragment.shape)
    replica = np.arange(fragment.replication)
    threads = fragment.thread_of([g[..., None] for g in grid], replica)
    threads = np.broadcast_to(threads, (*fragment.shape, fragment.replication))
    return threads.astype(np.int64), registers.astype(np.int64)


def equivalent(a: AnyFragment, b: AnyFragment) -> bool:
    """Whether every element is in the same threads and the same register in both.

    The number of threads must agree too; padding and the numbering of replicas need not.
    """
    if (a.shape, a.num_threads, a.replication) != (b.shape, b.num_threads, b.replication):
        return False
    if isinstance(a, Fragment) and isinstance(b, Fragment) and a.normalized() == b.normalized():
        return True
    (threads_a, registers_a), (threads_b, registers_b) = tables(a), tables(b)
    same = np.array_equal(registers_a, registers_b)
    return same and np.array_equal(np.sort(threads_a, axis=-1), np.sort(threads_b, axis=-1))
