"""Who wrote the value that a place holds, where several threads have written that value.

A thread that wrote it reads it back whatever the others do: its own write comes before its read,
and every write that has no order with the two brings the same value (PTX ISA, "Memory Consistency
Model"). Hides that a set of writers is kept once for all places that have it, and none for places
with one writer, which nearly all are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Unordered = Callable[[Array, Array], Array]
"""Whether entries of an access (by position) have no order with earlier accesses (marks)."""
_LARGE = 1 << 24
"""Bytes of sets from which on those are dropped that no place has any more."""
_PAIRS = 1 << 20
"""Pairs of threads that one access is compared by; of more writers, some stand for all."""


class _Set(NamedTuple):
    """Marks in order, as runs of neighbouring threads: of writes that a later one of the set is
    known to follow, and of the others."""

    before: tuple[Array, Array]
    now: tuple[Array, Array]


class Writers:
    """The sets of writers of places, an array of `shape`. A write's mark is a number above 0: its
    thread from bit `thread_at` on, below it what tells the thread's writes apart, later ones
    larger."""

    def __init__(self, shape: tuple[int, ...], thread_at: int) -> None:
        self._shape, self._at = shape, thread_at
        self.of: Array | None = None  # the set of each place, by number; 0: of one writer or none
        self._sets: list[_Set] = [_Set(self._runs([]), self._runs([]))]
        self._numbers: dict[bytes, int] = {}
        self._bytes, self._limit = 0, _LARGE

    def expand(self, rows: int) -> None:
        """The first axis, of one row, gets so many that are the same."""
        self._shape = (rows, *self._shape[1:])
        self.of = None if self.of is None else np.repeat(self.of, rows, axis=0)

    def forget(self, where: Any) -> None:
        """Places get another value, by one thread or none."""
        if self.of is not None:
            self.of[where] = 0

    def sets(self, where: Any) -> Any:
        """Their numbers at places; 0: no place has several writers."""
        return 0 if self.of is None else self.of[where]

    def wrote(
        self, where: tuple[Array, ...], mine: Array, several: Array, old: Array, follows: Array
    ) -> None:
        """Record a write of entries with marks `mine` to places `where`. `several`: which entries
        show that a place has several writers; `old`: the mark of the write before where that
        brought the same value, else 0; `follows`: where the entry's is known to come after it."""
        if self.of is None:
            self.of = np.zeros(self._shape, np.int32)
        earlier = np.where(old > 0, self.of[where], 0)
        self.of[where] = 0
        self.of[tuple(i[several] for i in where)] = -1
        chosen = self.of[where] < 0
        place = np.ravel_multi_index(tuple(i[chosen] for i in where), self._shape)
        order = np.argsort(place, kind="stable")
        place, mine = place[order], mine[chosen][order]
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        old, earlier, after = (
            np.maximum.reduceat(values[chosen][order], starts)
            for values in (old, earlier, follows.astype(np.int8))
        )
        # Places with the same marks get the same set: told apart by sums of mixed bits.
        looks = np.add.reduceat(_mixed(mine), starts) + _mixed(old) * np.uint64(3)
        looks += _mixed(earlier.astype(np.int64) * 4 + after + 2) * np.uint64(5)
        _, first, which = np.unique(looks, return_index=True, return_inverse=True)
        ends = np.r_[starts[1:], len(place)]
        numbers = [
            self._joined(mine[starts[i] : ends[i]], int(earlier[i]), int(old[i]), bool(after[i]))
            for i in first.tolist()
        ]
        self.of.reshape(-1)[place[starts]] = np.array(numbers, np.int32)[which.reshape(-1)]
        if self._bytes > self._limit:
            self._sweep()

    def _joined(self, mine: Array, earlier: int, old: int, follows: bool) -> int:
        """The set of those who write now and, if it is the same value, wrote before."""
        before, now = (self._marks(runs) for runs in self._sets[earlier])
        if old and not earlier:
            now = np.array([old])
        if follows:
            before, now = np.concatenate([before, now]), mine
        else:
            now = np.concatenate([now, mine])
        now = self._latest(now)
        before = self._latest(before)
        before = before[~_among(before >> self._at, now >> self._at)]
        return self._number(_Set(self._runs(before), self._runs(now)))

    def _latest(self, marks: Array) -> Array:
        """In order, the last mark of each thread."""
        marks = np.sort(marks)
        return marks[np.diff(marks >> self._at, append=-1) != 0]

    def _number(self, found: _Set) -> int:
        key = b"|".join(part.tobytes() for runs in found for part in runs)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._sets)
            self._sets.append(found)
            self._bytes += 2 * len(key) + 500
        return number

    def _sweep(self) -> None:
        assert self.of is not None
        flat = np.append(np.zeros(1, np.int32), self.of)
        used, places = np.unique(flat, return_inverse=True)
        self.of = places.reshape(-1)[1:].reshape(self._shape).astype(np.int32)
        kept = [self._sets[int(i)] for i in used]
        self._sets, self._numbers, self._bytes = kept[:1], {}, 0
        for one in kept[1:]:
            self._number(one)
        self._limit = max(_LARGE, 2 * self._bytes)

    def _runs(self, marks: Any) -> tuple[Array, Array]:
        marks = np.asarray(marks, np.int64)
        steps = np.diff(marks, prepend=marks[:1] - 1)
        starts = np.flatnonzero(steps != 1 << self._at)
        return marks[starts], np.diff(np.r_[starts, len(marks)])

    def _marks(self, runs: tuple[Array, Array]) -> Array:
        first, count = runs
        within: Array = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        marks: Array = np.repeat(first, count) + (within << self._at)
        return marks

    # ---- questions ----------------------------------------------------------------------------

    def _groups(self, sets: Array, asked: Array) -> Iterator[tuple[_Set, Array]]:
        """The sets of entries that are asked for, each with the positions of its entries."""
        for number in np.unique(sets[asked]).tolist():
            if number:
                yield self._sets[number], np.flatnonzero(asked & (sets == number))

    def harmless(self, sets: Array, mine: Array, bad: Array, unordered: Unordered) -> Array:
        """Where entries with marks `mine`, of those in which `bad` holds, read a value that they
        wrote themselves, or one of whose last writes they come after."""
        fine = np.zeros_like(bad)
        for one, on in self._groups(sets, bad):
            before, now = (self._marks(runs) for runs in one)
            wrote = np.sort(np.concatenate([before, now]) >> self._at)
            fine[on] = _among(mine[on] >> self._at, wrote)
            rest = on[~fine[on]]
            for some in np.array_split(rest, -(-len(rest) * len(now) // _PAIRS) or 1):
                fine[some] = ~_pairs(unordered, some, now).all(axis=1)
                if not fine[some].all():
                    return fine
        return fine

    def strays(self, sets: Array, asked: Array, unordered: Unordered) -> Array:
        """For each entry that is asked for, the mark of a writer of the value that is there whose
        write the entry has no order with; else 0."""
        found = np.zeros(len(asked), np.int64)
        for one, on in self._groups(sets, asked):
            marks = np.concatenate([self._marks(runs) for runs in one])
            marks = marks[:: -(-len(marks) * len(on) // _PAIRS)]
            bad = _pairs(unordered, on, marks)
            found[on] = np.where(bad.any(axis=1), marks[bad.argmax(axis=1)], 0)
        return found

    def warps(self, sets: Array, asked: Array, count: int) -> Array:
        """Which of `count` warps have a lane among the writers, (entries, warps)."""
        found = np.zeros((len(asked), count), np.bool_)
        for one, on in self._groups(sets, asked):
            marks = np.concatenate([self._marks(runs) for runs in one])
            found[np.ix_(on, np.unique(marks >> (self._at + 5)))] = True
        return found


def _pairs(unordered: Unordered, entries: Array, marks: Array) -> Array:
    """Each entry with each mark."""
    flat = unordered(np.repeat(entries, len(marks)), np.tile(marks, len(entries)))
    return flat.reshape(len(entries), len(marks))


def _among(values: Array, known: Array) -> Array:
    """Which values are among known ones (one or more, in order)."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Array = known[at] == values
    return found


def _mixed(numbers: Array) -> Array:
    """Numbers whose bits are mixed well (splitmix64: Steele, Lea, Flood 2014)."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
