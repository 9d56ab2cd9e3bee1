"""Queues of asynchronous work in groups, as cp.async, TMA stores and wgmma have them.

Hides what becomes of a queue when threads go apart and join: both sides know the work, and a wait
completes what the waiting threads themselves have started (items carry `finished`, and come
apart where only some of their threads or blocks wait).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Acting = np.ndarray[Any, Any] | None
"""Which threads wait, (blocks of the group, threads); None: all."""


@dataclass
class Queue:
    """Work since the last commit, and committed groups, oldest first."""

    open: list[Any] = field(default_factory=list[Any])
    groups: list[list[Any]] = field(default_factory=list[list[Any]])

    def commit(self) -> None:
        """Close a group."""
        self.groups.append(self.open)
        self.open = []

    def take(self, pending: int, acting: Acting = None) -> list[Any]:
        """Remove what the waiting threads have in all groups but the newest `pending`."""
        count = max(len(self.groups) - pending, 0)
        done, kept = list[Any](), list[list[Any]]()
        for group in self.groups[:count]:
            mine = _started(group, acting)
            numbers = {id(item) for item in mine}
            group[:] = [item for item in group if id(item) not in numbers and not item.finished]
            done += mine
            if group:
                kept.append(group)
        self.groups = kept + self.groups[count:]
        return done

    def older(self, pending: int, acting: Acting = None) -> list[Any]:
        """The same, but it stays."""
        count = max(len(self.groups) - pending, 0)
        return [item for group in self.groups[:count] for item in _started(group, acting)]

    def started(self, acting: Acting = None) -> list[Any]:
        """All work that the acting threads have under way."""
        return [i for group in (*self.groups, self.open) for i in _started(group, acting)]

    def pending(self) -> list[Any]:
        """The work that has not been waited for."""
        return [i for group in (self.open, *self.groups) for i in group if not i.finished]

    def copy(self) -> Queue:
        """The same work, for threads that go on apart."""
        return Queue(list(self.open), list(self.groups))

    def adopt(self, other: Queue) -> None:
        """Add what threads that went apart have left under way, beyond what they began with."""
        mine = {id(item) for group in (self.open, *self.groups) for item in group}
        for group in other.groups:
            if not any(group is g for g in self.groups):
                self.groups.append(group)
        self.open += [item for item in other.open if id(item) not in mine]


def _started(group: list[Any], acting: Acting) -> list[Any]:
    """Unfinished work of a group that the acting threads have started; items that others have a
    part in come apart, in place."""
    if acting is None:
        return [item for item in group if not item.finished]
    mine, parts = list[Any](), list[Any]()
    for item in group:
        if not item.finished:
            own, rest = item.apart(acting)
            mine += [] if own is None else [own]
            parts += [part for part in (own, rest) if part is not None]
    group[:] = parts
    return mine
