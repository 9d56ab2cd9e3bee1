"""Who touched each element of global memory in one launch: races between blocks and warps.

Nothing orders blocks but atomics whose values they read; threads of a block are ordered by its
barriers (`clocks`). Hides how an access is packed into one integer per element, and which tensors
are worth watching: those that a kernel writes, or that it both updates by atomics and reads.
Atomics need no order among themselves, but with ordinary accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer, Load, Node, Scope, Store, walk
from tilelab.sim import findings as f
from tilelab.sim.block_knowledge import FENCED
from tilelab.sim.block_order import BlockOrder, tells
from tilelab.sim.clocks import Clocks
from tilelab.sim.writers import Writers
from tilelab.target import WARP
from tilelab.thread import Invoke, Ref, TensorMap, ThreadKernel, VectorCopy

Array = np.ndarray[Any, Any]

# An access: block + 1, thread, clock of its warp, whether TMA made it, place in the program. 0
# stands for none.
_CLOCK_AT, _THREAD_AT, _BLOCK_AT, _SEVERAL = 10, 28, 38, 1 << 62
_WARP_AT = _THREAD_AT + 5
_BY_TMA = 1 << (_CLOCK_AT - 1)
_MOST_LOCS, NEVER = _BY_TMA - 1, (1 << (_THREAD_AT - _CLOCK_AT)) - 1
_MOST_BLOCKS = (1 << 24) - 2


WRITTEN, UPDATED = "written", "updated by an atomic"


@dataclass
class Shared:
    """The last access of a kind that several threads may make together, of each element, packed;
    `others`: the last one by another warp (or block), so that a writer meets one beside itself."""

    last: Array
    others: Array

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> Self:
        """None so far."""
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    def note(self, where: Any, mine: Array) -> None:
        """Keep an access to each element, by its indices; warps and blocks may share one."""
        old = self.last[where]
        new = with_read(old, mine)
        self.last[where] = new
        for earlier in (old, new):  # of before, and of other lanes of this very access
            apart = (earlier != 0) & ~same_warp(earlier, self.last[where])
            if apart.any():
                self.others[tuple(i[apart] for i in where)] = earlier[apart]
        lost = (self.last[where] >> _BLOCK_AT) != (new >> _BLOCK_AT)
        if lost.any():
            self.last[tuple(i[lost] for i in where)] = _SEVERAL | (mine & _MOST_LOCS)[lost]


@dataclass
class Marks:
    """The last accesses of each element: its write, packed; its reads and its atomic updates
    (None: the kernel makes none); `observed`: the last atomic whose value the program reads, if no
    update followed it: who made it, or knows of it, comes after all the updates. `writers`: those
    of elements that several threads wrote the same value to. `current`: whether the last read was
    of the value that is there."""

    writes: Array
    writers: Writers
    reads: Shared | None
    atomics: Shared | None
    observed: Array | None = None
    current: Array | None = None

    def rewritten(self, where: Any, mine: Array) -> Array:
        """The writes that accesses find, where another thread made them (or several did) and no
        atomic followed; else 0."""
        old = self.writes[where]
        other = ~same_thread(old, mine) | (self.writers.sets(where) != 0)
        if self.atomics is not None:
            other &= self.atomics.last[where] == 0
        return np.where(other & ordinary(old), old, 0)

    def wrote(self, where: Any, mine: Array, same: Array, follows: Array) -> None:
        """Keep a write to each element; `same`: what `rewritten` found where the value stays what
        it was, `follows`: where it comes after that."""
        self.writes[where] = mine
        several = ~same_thread(self.writes[where], mine) | (same != 0)
        if several.any():
            self.writers.wrote(where, mine, several, same, follows)
        else:
            self.writers.forget(where)

    def earlier(self, reading: bool, updating: bool = False) -> list[tuple[Array, str]]:
        """What an access must have an order with: a read with writes and updates, an update with
        writes and reads, a write with all three."""
        found = [(self.writes, WRITTEN)]
        for kind, what, harmless in (
            (self.reads, "read", reading), (self.atomics, UPDATED, updating),
        ):  # fmt: skip
            if kind is not None and not harmless:
                found += [(kind.last, what), (kind.others, what)]
        return found


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last: block (its number, x fastest), thread of the block, place."""

    block: int
    thread: int
    loc: Loc | None

    @property
    def warp(self) -> int:
        return self.thread // WARP

    @property
    def lane(self) -> int:
        return self.thread % WARP


class GlobalOrder:
    """The accesses of one launch."""

    def __init__(self, kernel: ThreadKernel, arrays: Mapping[Buffer, Array], blocks: int) -> None:
        nodes = list(walk(kernel.body))
        self._viewed = {v.storage for v in kernel.views}
        self._written: dict[Buffer, Loc | None] = {}  # and the first statement that does
        for n in nodes:
            for b in _writes(n):
                self._written.setdefault(b, getattr(n, "loc", None))
        self._updated = {b for n in nodes for b in _updates(n)}
        self._read = {b for n in nodes for b in loads_of(n)}
        self._tells = any(map(tells, nodes))
        self._watched = ({*self._written} | (self._updated & self._read)) - self._viewed
        if blocks > _MOST_BLOCKS:
            self._watched.clear()
        loaded = {b for n in nodes if isinstance(n, Invoke) for b in n.loaded}
        mixed = bool(loaded & {b for n in nodes for b in _writes(n)})
        self.between = BlockOrder(kernel, min(blocks, _MOST_BLOCKS), mixed)
        self._arrays = arrays
        self._marks: dict[Buffer, Marks] = {}
        self._locs: list[tuple[Loc | None, bool]] = [(None, False)]
        self._numbers: dict[tuple[int, bool], int] = {}

    def marks(self, buffer: Buffer) -> Marks | None:
        """What is known of a tensor; None when it is not watched."""
        if buffer not in self._watched:
            return None
        found = self._marks.get(buffer)
        if found is None:
            shape = self._arrays[buffer].shape
            reads = Shared.of(shape) if buffer in self._read else None
            atomics = Shared.of(shape) if buffer in self._updated else None
            seen = np.zeros(shape, np.int64) if atomics and self._tells else None
            writers = Writers(shape, _THREAD_AT)
            current = np.zeros(shape, np.bool_) if reads else None
            found = Marks(np.zeros(shape, np.int64), writers, reads, atomics, seen, current)
            self._marks[buffer] = found
        return found

    def reached(self, buffer: Buffer) -> Array | None:
        """Which elements of a tensor the launch has written or updated; None where that is not
        known."""
        if buffer in self._viewed or buffer in self._updated - self._watched:
            return None
        marks = self._marks.get(buffer)
        if marks is None:
            known = buffer not in self._written or buffer in self._watched
            return np.zeros(self._arrays[buffer].shape, np.bool_) if known else None
        found: Array = marks.writes != 0
        return found if marks.atomics is None else found | (marks.atomics.last != 0)

    def writes(self, buffer: Buffer) -> bool:
        """Whether the kernel has a statement that writes or updates a tensor, or a view of it."""
        return any(b.storage is buffer for b in (*self._written, *self._updated))

    def place_of_writes(self, buffer: Buffer) -> Loc | None:
        """The first statement of the kernel that writes a tensor."""
        return self._written.get(buffer)

    @property
    def told(self) -> bool:
        """Whether blocks can know of each other: the kernel reads atomics, and fences."""
        return self.between.used

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

    def hint(self, mark: int) -> str:
        """What to do about an access of another block."""
        if by_tma(mark):
            return f.STORED_HINT
        return f.TOLD_HINT if self.told else f.BETWEEN_BLOCKS_HINT

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
        self, blocks: Array, threads: Array, when: Any, place: tuple[Loc | None, bool],
        by_tma: bool = False,
    ) -> Array:  # fmt: skip
        """Accesses by (blocks, threads) at times `when` of their warps, (blocks or 1, threads), to
        be kept per element; time 0: asynchronous ones, ordered otherwise; NEVER: stores that
        nobody has waited for. `place` as `place()` gives it."""
        times = np.minimum(np.asarray(when, np.int64), NEVER)
        mine = (threads.astype(np.int64) << _THREAD_AT) | (times << _CLOCK_AT) | _BY_TMA * by_tma
        return ((blocks.astype(np.int64)[:, None] + 1) << _BLOCK_AT) | (mine | self._number(*place))

    def unfenced(self, marks: Array, mine: int, clocks: Clocks, first_block: int) -> Array:
        """Where a thread (the access `mine`) knows of no proxy fence behind earlier ordinary
        accesses of other blocks."""
        if not self.between.used:
            return np.zeros(marks.shape, np.bool_)
        by = np.broadcast_to((mine >> _BLOCK_AT) - 1, marks.shape), thread_of(mine)
        other = (marks >> _BLOCK_AT) - 1, thread_of(marks), clock_of(marks)
        bare = self.between.unknown(by, other, clocks, first_block, False, plane=FENCED)
        return bare & ordinary(marks)

    def unordered(
        self, marks: Array, mine: Array, clocks: Clocks, first_block: int, copies: bool = False
    ) -> Array:
        """Where earlier accesses `marks` have no order with accesses `mine` (made by blocks of one
        group, which begins with `first_block`). `copies`: not within a block."""
        mine = np.broadcast_to(mine, marks.shape)
        other_block = (marks >> _BLOCK_AT) != (mine >> _BLOCK_AT)
        when, that = clock_of(marks), thread_of(marks)
        bad = (marks != 0) & other_block
        this = thread_of(mine)
        if self.between.used and bad.any():
            by, other = ((mine >> _BLOCK_AT) - 1, this), ((marks >> _BLOCK_AT) - 1, that, when)
            bad &= self.between.unknown(by, other, clocks, first_block, copies)
        if copies or bool(other_block.all()):
            return bad
        at = clocks.of((mine >> _BLOCK_AT) - 1 - first_block)
        late = clocks.unknown(at, this, that, when)
        return bad | (~other_block & late & (when > 0))


def thread_of(marks: Any) -> Any:
    """The thread of packed accesses."""
    return (marks >> _THREAD_AT) & 1023


def clock_of(marks: Any) -> Any:
    """The time, on its warp's clock, of packed accesses; 0: asynchronous."""
    return (marks >> _CLOCK_AT) & NEVER


def by_tma(marks: Any) -> Any:
    """Where packed accesses are TMA stores."""
    return marks & _BY_TMA != 0


def ordinary(marks: Any) -> Any:
    """Where packed accesses are those of threads."""
    return (clock_of(marks) > 0) & ~by_tma(marks)


def split_by(marks: Array, block: int) -> tuple[Array, Array]:
    """Positions, in flat order, of the ordinary accesses of one block, and of those of others."""
    marks = marks.reshape(-1)
    own = marks >> _BLOCK_AT == block + 1
    return np.flatnonzero(own & ordinary(marks)), np.flatnonzero((marks != 0) & ~own)


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


def _writes(n: Node) -> list[Buffer]:
    """Tensors that a node writes with ordinary stores."""
    buffers = _WRITERS.get(type(n))
    return [] if buffers is None else [b for b in buffers(n) if b.scope is Scope.GLOBAL]


def _invoked(n: Invoke) -> list[Buffer]:
    pairs = zip(n.intrinsic.operands, n.operands, strict=True)
    refs = [o.buffer for p, o in pairs if isinstance(o, Ref) and p.role == "writes"]
    if n.intrinsic.name.startswith("tma_store"):
        refs += n.tensors
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


def loads_of(n: Node) -> list[Buffer]:
    """Tensors that a node may read, but by atomics."""
    rule = _READERS.get(type(n))
    return [] if rule is None else rule(n)


def _read_by(n: Invoke) -> list[Buffer]:
    if n.intrinsic.cost == "atomic":
        return []
    refs = [o.buffer for o in n.operands if isinstance(o, Ref)]
    return refs + n.tensors


_READERS: dict[type[Node], Callable[[Any], list[Buffer]]] = {
    Load: lambda n: [n.buffer], VectorCopy: lambda n: [n.src.buffer], Invoke: _read_by,
}  # fmt: skip


def _updates(n: Node) -> list[Buffer]:
    """Tensors that a node accesses by atomics."""
    if not isinstance(n, Invoke) or n.intrinsic.cost != "atomic":
        return []
    refs = [o.buffer for o in n.operands if isinstance(o, Ref)]
    return [b for b in refs if b.scope is Scope.GLOBAL]
