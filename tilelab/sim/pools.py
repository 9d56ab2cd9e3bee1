"""Tensors whose addresses a table holds, as arrays: what T.make_tensor of an address reaches.

A pool becomes one array with the table's axes first. Its elements are taken from the memory of
CPU tensors that are alive when a launch begins, and what the launch changed goes back when it
ends, so no access ever follows a number into foreign memory. Hides how an address is found in a
tensor's memory, and which elements of a pool exist.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import TileNotSupported
from tilelab.ir import Buffer, Pool, const_int
from tilelab.sim.frame import bits_differ
from tilelab.thread import ThreadKernel

Array = np.ndarray[Any, Any]
_MOST = 1 << 31  # bytes of a pool
_APART = 40  # the simulated addresses of two allocations differ in bits from this one on


@dataclass(frozen=True)
class Memory:
    """The memory of one live tensor (`owner` keeps it alive): its place among all, first address
    and bytes."""

    number: int
    start: int
    size: int
    owner: Any

    def elements(self, address: int, dtype: np.dtype[Any]) -> Array:
        """All whole elements from an address on, not copied."""
        count = (self.start + self.size - address) // dtype.itemsize
        raw: Any = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address)
        return np.asarray(np.frombuffer(raw, np.uint8)).view(dtype)


def live_memory() -> list[Memory]:
    """The memory of the torch tensors on the CPU that the process holds, by address."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    found: dict[int, tuple[int, Any]] = {}
    for thing in gc.get_objects():
        if not issubclass(type(thing), torch.Tensor):
            continue
        with contextlib.suppress(RuntimeError):  # of tensors without memory of their own
            if thing.device.type == "cpu" and thing.layout is torch.strided:
                storage = thing.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
                if size > found.get(start, (0, None))[0]:
                    found[start] = size, thing
    return [Memory(i, a, *found[a]) for i, a in enumerate(sorted(found))]


class Entry:
    """One tensor of a pool: the elements from `address` on, and where the pool's lie in them."""

    def __init__(self, address: int, offsets: Array, dtype: Any, memory: Sequence[Memory]) -> None:
        self.address, self.offsets = address, offsets
        at = bisect_right(memory, address, key=lambda m: m.start) - 1
        home = memory[at] if at >= 0 else None
        self.problem, self.simulated = "", 0
        self.elements: Array = np.empty(0, dtype)
        if address == 0:
            self.problem = "is 0, no address"
        elif home is None or address >= home.start + home.size:
            self.problem = f"is {address:#x}, where no CPU tensor of torch lies that is alive"
        elif (address - home.start) % self.elements.itemsize:
            self.problem = f"is {address:#x}, which lies inside an element"
        else:
            self.elements = home.elements(address, self.elements.dtype)
            self.simulated = ((home.number + 1) << _APART) + address - home.start
        self.exists: Array = offsets < len(self.elements)

    def gathered(self) -> Array:
        """The pool's elements; 0 where there is none."""
        if not len(self.elements):
            return np.zeros(self.offsets.shape, self.elements.dtype)
        taken = self.elements[np.minimum(self.offsets, len(self.elements) - 1)]
        return np.where(self.exists, taken, np.zeros((), taken.dtype))

    def give_back(self, before: Array, after: Array) -> None:
        """Write the elements that differ."""
        changed = bits_differ(before, after) & self.exists
        self.elements[self.offsets[changed]] = after[changed]

    def span(self) -> tuple[int, int]:
        """The bytes that hold its elements: from, to."""
        reached = self.offsets[self.exists]
        last = int(reached.max()) + 1 if reached.size else 0
        return self.address, self.address + last * self.elements.itemsize


class _Tensors:
    """The tensors of one pool, in the order of its table."""

    def __init__(
        self, pool: Pool, table: Array, shape: tuple[int, ...], memory: Sequence[Memory]
    ) -> None:
        self.pool, rank = pool, table.ndim
        if math.prod(shape) * pool.dtype.bytes > _MOST:
            size = math.prod(shape) * pool.dtype.bytes
            raise _no_stand_in(f"{pool.name}, with all tensors of its table, has {size:,} bytes")
        inner = shape[rank:]
        steps = [const_int(s) or 0 for s in (pool.strides or ())[rank:]]
        offsets = np.zeros(inner, np.int64)
        for axis, (extent, step) in enumerate(zip(inner, steps, strict=True)):
            offsets += (np.arange(extent) * step).reshape(-1, *(1,) * (len(inner) - axis - 1))
        self.steps = [step * pool.dtype.bytes for step in steps]
        numbers = [int(a) for a in table.reshape(-1)]
        self.entries = [Entry(a, offsets, pool.dtype.numpy, memory) for a in numbers]
        self.array = np.zeros(shape, pool.dtype.numpy)
        for row, entry in zip(self.rows(self.array), self.entries, strict=True):
            row[...] = entry.gathered()
        self.before: Array | None = None
        self.shape = table.shape
        whole = all(e.exists.all() for e in self.entries)
        self.exists = None if whole else np.stack([e.exists for e in self.entries]).reshape(shape)

    def rows(self, array: Array) -> Array:
        """An array of the pool's shape, with one axis for the table."""
        return array.reshape(len(self.entries), *array.shape[array.ndim - len(self.steps) :])

    def number(self, indices: Sequence[Any]) -> Any:
        """The entry that the first of an access's indices name."""
        total: Any = np.int64(0)
        for index, extent in zip(indices, self.shape, strict=False):
            total = total * extent + np.asarray(index, np.int64)
        return total


class Pools:
    """The pools of one launch."""

    def __init__(
        self, kernel: ThreadKernel, memory: Mapping[Buffer, Array], number: Callable[[Any], int]
    ) -> None:
        pools = [v for v in kernel.views if isinstance(v, Pool)]
        alive = live_memory() if pools else []
        self._made = {
            p: _Tensors(p, memory[p.table], tuple(number(s) for s in p.shape), alive) for p in pools
        }

    def arrays(self) -> Iterator[tuple[Buffer, Array]]:
        """Each pool and the array that stands for it."""
        yield from ((pool, made.array) for pool, made in self._made.items())

    def watch(self, memory: Mapping[Buffer, Array], writes: Callable[[Buffer], bool]) -> None:
        """Keep what the launch may change. TileNotSupported (TL2116) where arrays that stand for
        the tensors would not do as these do: they share memory that the kernel writes, or it
        writes a table."""
        spans: list[tuple[int, int, bool, str]] = []
        for pool, made in self._made.items():
            if writes(pool.table):
                raise _no_stand_in(f"the kernel writes {pool.table.name}, a table of addresses")
            if writes(pool):
                made.before = made.array.copy()
            name = pool.table.said
            for i, entry in enumerate(made.entries):
                at = ", ".join(str(int(n)) for n in np.unravel_index(i, made.shape))
                spans.append((*entry.span(), writes(pool), f"{pool.name} at {name}[{at}]"))
        others = [b for b in memory if not isinstance(b, Pool)]
        whole = [(*_span(memory[b]), writes(b), b.name) for b in others] if spans else []
        _check_apart([*spans, *whole], len(spans))

    def missing(self, pool: Pool, indices: tuple[Any, ...]) -> Array | None:
        """Which of the elements lie in no tensor; None when all do."""
        exists = self._made[pool].exists
        return None if exists is None else ~exists[indices]

    def why_missing(self, pool: Pool, at: tuple[int, ...]) -> str:
        """What is wrong with the address of an element that is missing."""
        made, rank = self._made[pool], pool.table.rank
        entry = made.entries[int(made.number(at))]
        name = f"{pool.table.said}[{', '.join(map(str, at[:rank]))}]"
        room = f"points to {len(entry.elements)} elements, and this is element "
        room += str(
            sum(i * s for i, s in zip(at[rank:], made.steps, strict=True)) // pool.dtype.bytes
        )
        return f"{name} {entry.problem or room}"

    def address_parts(self, pool: Pool, indices: Sequence[Any]) -> list[Array]:
        """Parts of the byte addresses of an access: of its tensors, and along each axis."""
        made, rank = self._made[pool], pool.table.rank
        base = np.array([e.simulated for e in made.entries], np.int64)[made.number(indices)]
        inner = zip(indices[rank:], made.steps, strict=True)
        return [np.asarray(base), *(np.asarray(i, np.int64) * step for i, step in inner)]

    def give_back(self) -> None:
        """Write what the launch has changed to the tensors."""
        for made in self._made.values():
            if made.before is None:
                continue
            rows = zip(made.entries, made.rows(made.before), made.rows(made.array), strict=True)
            for entry, before, after in rows:
                entry.give_back(before, after)


def _span(array: Array) -> tuple[int, int]:
    """The bytes of an array: from, to."""
    start = int(array.__array_interface__["data"][0])
    if not array.size:
        return start, start
    steps = zip(array.shape, array.strides, strict=True)
    return start, start + sum((n - 1) * s for n, s in steps if s > 0) + array.itemsize


def _check_apart(spans: Sequence[tuple[int, int, bool, str]], of_pools: int) -> None:
    """TileNotSupported where a tensor of a pool shares bytes with another tensor, and the kernel
    writes one of them. The first `of_pools` spans are of pools."""
    order = sorted((s, i < of_pools) for i, s in enumerate(spans) if s[0] < s[1])
    for n, ((_, end, written, name), pooled) in enumerate(order):
        for (start, _, also, other), beside in order[n + 1 :]:
            if start >= end:
                break
            if (written or also) and (pooled or beside):
                raise _no_stand_in(f"{name} and {other} share memory, and the kernel writes it")


def _no_stand_in(why: str) -> TileNotSupported:
    return TileNotSupported(
        f"{why}, which the simulator cannot follow", code="TL2116",
        hint="give tensors of a table memory of their own and a smaller size, or run on a GPU",
    )  # fmt: skip
