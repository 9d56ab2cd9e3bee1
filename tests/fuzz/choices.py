"""Draws that can be recorded, replayed and made smaller. Hides how a failing draw is shrunk.

A draw is a list of whole numbers. A shorter list, or smaller numbers, means a simpler program:
0 is always the plainest choice, and a list that ends early goes on with zeros.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Choices:
    """Where a generator takes its decisions from: a seed, or a recorded list."""

    def __init__(self, seed: int | None = None, replay: Sequence[int] = ()) -> None:
        self._random = None if seed is None else random.Random(seed)
        self._replay = list(replay)
        self.made: list[int] = []

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1."""
        if self._random is not None:
            number = self._random.randrange(count)
        else:
            at = len(self.made)
            number = min(self._replay[at], count - 1) if at < len(self._replay) else 0
        self.made.append(number)
        return number

    def pick(self, items: Sequence[Item]) -> Item:
        """One of several, the plainest of which stands first."""
        return items[self.below(len(items))]

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True about `percent` times in a hundred; False is the plain choice."""
        return self.below(100) >= 100 - percent


def shrink(made: Sequence[int], fails: Callable[[list[int]], bool], tries: int = 400) -> list[int]:
    """A simpler list for which `fails` still holds, found in at most `tries` attempts."""
    best, left = list(made), tries
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in _simpler(best):
            left -= 1
            if left <= 0:
                break
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def _simpler(made: list[int]) -> list[list[int]]:
    """Lists to try: without a run of numbers, then with smaller numbers."""
    candidates: list[list[int]] = []
    size = len(made) // 2
    while size >= 1:
        candidates += [made[:i] + made[i + size :] for i in range(0, len(made), size)]
        size //= 2
    for i, number in enumerate(made):
        smaller = dict.fromkeys(n for n in (0, number // 2, number - 1) if 0 <= n < number)
        candidates += [[*made[:i], n, *made[i + 1 :]] for n in smaller]
    return candidates
