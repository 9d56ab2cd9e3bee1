"""Ranges of threads that a condition on the thread index says. Hides the forms it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilelab.ir import Binary, Expr, If, Seq, Var, const_int
from tilelab.target import WARP


@dataclass(frozen=True)
class Threads:
    """Threads first .. stop-1 of the block."""

    first: int
    stop: int

    @property
    def text(self) -> str:
        """For names and notes."""
        return f"threads {self.first} to {self.stop - 1}"

    @property
    def count(self) -> int:
        return self.stop - self.first

    @property
    def whole_warps(self) -> bool:
        return self.first < self.stop and not (self.first % WARP or self.stop % WARP)

    def minus(self, other: Threads) -> Threads | None:
        """What is left without `other`, which lies at one end; None where that is no range."""
        if other.first == self.first:
            return Threads(other.stop, self.stop)
        return Threads(self.first, other.first) if other.stop == self.stop else None


def threads_where(cond: Expr, thread: Var | None, within: Threads) -> Threads | None:
    """The threads of `within` for which a condition holds, where it says a range."""
    if not isinstance(cond, Binary) or thread is None:
        return None
    if cond.op == "and":
        first = threads_where(cond.a, thread, within)
        return None if first is None else threads_where(cond.b, thread, first)
    limit, rule = const_int(cond.b), _RANGES.get(cond.op)
    size = 1 if cond.a is thread else _group_size(cond.a, thread)
    if size is None or limit is None or rule is None:
        return None
    return rule(limit, size, within)


def _group_size(value: Expr, thread: Var) -> int | None:
    """n where a value is the number of the thread's group of n: `tx // 32` is that of its warp."""
    if not isinstance(value, Binary) or value.op != "//" or value.a is not thread:
        return None
    size = const_int(value.b)
    return size if size is not None and size > 0 else None


def _below(limit: int, size: int, within: Threads) -> Threads:
    return Threads(within.first, min(limit * size, within.stop))


def _from(limit: int, size: int, within: Threads) -> Threads:
    return Threads(max(limit * size, within.first), within.stop)


_RANGES: dict[str, Callable[[int, int, Threads], Threads]] = {
    "<": _below,
    "<=": lambda limit, size, within: _below(limit + 1, size, within),
    ">": lambda limit, size, within: _from(limit + 1, size, within),
    ">=": _from,
    "==": lambda limit, size, within: _below(limit + 1, size, _from(limit, size, within)),
}
"""Threads of a range whose group, of `size` threads, has a number with this relation to a limit."""


def ranges_of(
    branch: If, thread: Var | None, within: Threads
) -> list[tuple[Expr | None, Threads, Seq]] | None:
    """Condition (None: else), threads and body of every side of an if, elif, else chain; None
    where one of them is no range of `within`."""
    out: list[tuple[Expr | None, Threads, Seq]] = []
    left: Threads | None = within
    for cond, body in _sides(branch):
        if left is None:
            return None
        mine = left if cond is None else threads_where(cond, thread, left)
        if mine is None:
            return None
        out.append((cond, mine, body))
        left = left.minus(mine)
    return out


def _sides(branch: If) -> Iterator[tuple[Expr | None, Seq]]:
    """Conditions and bodies of an if, elif, else chain."""
    yield branch.cond, branch.then
    rest = branch.orelse
    if rest is None or not rest.body:
        return
    inner = rest.body[0]
    if len(rest.body) == 1 and isinstance(inner, If):
        yield from _sides(inner)
    else:
        yield None, rest
