"""Queues of asynchronous work in groups, as cp.async, TMA stores and wgmma have them.

Hides what becomes of a queue when threads go apart and join: both sides know the work, and the
first that waits for it completes it (items carry `finished`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Queue:
    """Work since the last commit, and committed groups, oldest first."""

    open: list[Any] = field(default_factory=list[Any])
    groups: list[list[Any]] = field(default_factory=list[list[Any]])

    def commit(self) -> None:
        """Close a group."""
        self.groups.append(self.open)
        self.open = []

    def take(self, pending: int) -> list[Any]:
        """Remove all groups but the newest `pending`, and return what was in them."""
        count = max(len(self.groups) - pending, 0)
        done, self.groups = self.groups[:count], self.groups[count:]
        return [item for group in done for item in group if not item.finished]

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
