"""Who touched each element of global memory in one launch: races between blocks and warps.

Nothing orders blocks; warps of a block are ordered by its barriers (`shadow.Clocks`). Hides how an
access is packed into one integer per element, and which tensors are worth watching: those that a
kernel writes with ordinary stores. Atomic updates are not recorded: they race with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer, Load, Node, Scope, Store, walk
from tilelab.sim.shadow import Clocks
from tilelab.thread import Invoke, Ref, TensorMap, ThreadKernel, VectorCopy

Array = np.ndarray[Any, Any]

# An access: block + 1, thread, clock of its warp, place in the program. 0 stands for none.
_CLOCK_AT, _THREAD_AT, _BLOCK_AT, _SEVERAL = 10, 28, 38, 1 << 62
_WARP_AT = _THREAD_AT + 5
_MOST_LOCS, _MOST_CLOCKS = (1 << _CLOCK_AT) - 1, (1 << (_THREAD_AT - _CLOCK_AT)) - 1
_MOST_BLOCKS = (1 << 24) - 2
_WARP = 32


@dataclass
class Marks:
    """The last write and read of each element, packed; `reads` None: the kernel reads none.

    others: the last read by another warp (or block) than that of `reads`, so that a writer meets
    a reader beside itself.
    """

    writes: Array
    reads: Array | None
    others: Array | None = None


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last: block (its number, x fastest), thread of the block, place."""

    block: int
    thread: int
    loc: Loc | None

    @property
    def warp(self) -> int:
        return self.thread // _WARP

    @property
    def lane(self) -> int:
        return self.thread % _WARP


class GlobalOrder:
    """The accesses of one launch. `between_blocks`: whether blocks are checked against each
    other: not where they may order themselves by atomics whose values they read."""

    def __init__(self, kernel: ThreadKernel, arrays: Mapping[Buffer, Array], blocks: int) -> None:
        nodes = list(walk(kernel.body))
        viewed = {v.storage for v in kernel.views}
        self._written = {b for n in nodes for b in _writes(n)} - viewed
        self._read = {b for n in nodes for b in reads_of(n)}
        if blocks > _MOST_BLOCKS:
            self._written.clear()
        self.between_blocks = not any(_orders_blocks(n) for n in nodes)
        self._arrays = arrays
        self._marks: dict[Buffer, Marks] = {}
        self._locs: list[tuple[Loc | None, bool]] = [(None, False)]
        self._numbers: dict[tuple[int, bool], int] = {}

    def marks(self, buffer: Buffer) -> Marks | None:
        """What is known of a tensor; None when it is not watched."""
        if buffer not in self._written:
            return None
        found = self._marks.get(buffer)
        if found is None:
            shape = self._arrays[buffer].shape
            both = buffer in self._read
            reads, others = (np.zeros(shape, np.int64) if both else None for _ in range(2))
            found = self._marks[buffer] = Marks(np.zeros(shape, np.int64), reads, others)
        return found

    def writer(self, name: str, index: tuple[int, ...]) -> Writer | None:
        """Who wrote an element of the tensor `name`, so far as it was watched."""
        for buffer, marks in self._marks.items():
            mark = int(marks.writes[index]) if buffer.root.name == name else 0
            block = block_of(mark) if mark else None
            if block is not None:
                return Writer(block, int(thread_of(mark)), self.place(mark)[0])
        return None

    def place(self, mark: int) -> tuple[Loc | None, bool]:
        """Where an access stands in the program, and whether the compiler inserted it."""
        return self._locs[mark & _MOST_LOCS]

    def _number(self, loc: Loc | None, inserted: bool) -> int:
        key = (id(loc), inserted)
        found = self._numbers.get(key)
        if found is None:
            if len(self._locs) > _MOST_LOCS:
                return 0
            found = self._numbers[key] = len(self._locs)
            self._locs.append((loc, inserted))
        return found

    def stamp(
        self, blocks: Array, threads: Array, clocks: Clocks | None, loc: Loc | None, inserted: bool
    ) -> Array:
        """Accesses by (blocks, threads), to be kept per element; `clocks` None: asynchronous
        ones, which warps of their own block are taken to be ordered with."""
        if clocks is None:
            when: Any = np.zeros(1, np.int64)
        else:
            warps = threads // _WARP
            when = np.minimum(clocks.now[warps, warps].astype(np.int64), _MOST_CLOCKS)
        mine = (threads.astype(np.int64) << _THREAD_AT) | (when << _CLOCK_AT)
        return ((blocks.astype(np.int64)[:, None] + 1) << _BLOCK_AT) | (
            mine | self._number(loc, inserted)
        )

    def unordered(self, marks: Array, mine: Array, clocks: Clocks | None) -> Array:
        """Where earlier accesses `marks` have no order with accesses `mine`."""
        other_block = (marks >> _BLOCK_AT) != (mine >> _BLOCK_AT)
        bad = (marks != 0) & other_block & self.between_blocks
        if clocks is not None:
            when = (marks >> _CLOCK_AT) & _MOST_CLOCKS
            seen = clocks.now[thread_of(mine) // _WARP, thread_of(marks) // _WARP]
            bad |= ~other_block & (when > seen)
        return bad


def thread_of(marks: Any) -> Any:
    """The thread of packed accesses."""
    return (marks >> _THREAD_AT) & 1023


def block_of(mark: int) -> int | None:
    """The number of the block of an access; None: of several blocks."""
    return None if mark >= _SEVERAL else (mark >> _BLOCK_AT) - 1


def same_thread(a: Array, b: Array) -> Array:
    """Where two packed accesses are by the same thread of the same block."""
    return (a >> _THREAD_AT) == (b >> _THREAD_AT)


def with_read(old: Array, mine: Array) -> Array:
    """Marks of elements after one more read each: the last one, or that several blocks read."""
    several = (old != 0) & ((old >> _BLOCK_AT) != (mine >> _BLOCK_AT))
    return np.where(several, _SEVERAL | (mine & _MOST_LOCS), mine)


def same_warp(a: Array, b: Array) -> Array:
    """Where two packed accesses are by the same warp of the same block."""
    return (a >> _WARP_AT) == (b >> _WARP_AT)


def note_read(marks: Marks, where: Any, mine: Array) -> None:
    """Keep a read of each element, by its indices; warps and blocks may read one together."""
    reads, others = marks.reads, marks.others
    assert reads is not None and others is not None
    old = reads[where]
    new = with_read(old, mine)
    reads[where] = new
    for earlier in (old, new):  # of before, and of other lanes of this very access
        apart = (earlier != 0) & ~same_warp(earlier, reads[where])
        if apart.any():
            others[tuple(i[apart] for i in where)] = earlier[apart]
    lost = (reads[where] >> _BLOCK_AT) != (new >> _BLOCK_AT)
    if lost.any():
        reads[tuple(i[lost] for i in where)] = _SEVERAL | (mine & _MOST_LOCS)[lost]


def _writes(n: Node) -> list[Buffer]:
    """Tensors that a node writes with ordinary stores."""
    buffers = _WRITERS.get(type(n))
    return [] if buffers is None else [b for b in buffers(n) if b.scope is Scope.GLOBAL]


def _invoked(n: Invoke) -> list[Buffer]:
    pairs = zip(n.intrinsic.operands, n.operands, strict=True)
    refs = [o.buffer for p, o in pairs if isinstance(o, Ref) and p.role == "writes"]
    if n.intrinsic.name.startswith("tma_store"):
        refs += [o.tensor for o in n.operands if isinstance(o, TensorMap)]
    return refs if n.intrinsic.cost != "atomic" else []


def _stored(n: Store) -> list[Buffer]:
    return [n.buffer]


def _copied(n: VectorCopy) -> list[Buffer]:
    return [n.dst.buffer]


_WRITERS: dict[type[Node], Callable[[Any], list[Buffer]]] = {
    Store: _stored, VectorCopy: _copied, Invoke: _invoked,
}  # fmt: skip


def reads_of(n: Node) -> list[Buffer]:
    """Tensors that a node may read (or write)."""
    if isinstance(n, Load | Ref):
        return [n.buffer]
    return [n.tensor] if isinstance(n, TensorMap) else []


def _orders_blocks(n: Node) -> bool:
    """Whether a node is an atomic by which blocks may wait for each other."""
    if not isinstance(n, Invoke) or n.intrinsic.cost != "atomic":
        return False
    return n.result is not None or n.intrinsic.name.startswith(("atomic_load", "atomic_store"))
