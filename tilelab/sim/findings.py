"""Findings and notes: what the simulator noticed, as records. Hides deduplication and who is to
blame.

Nothing here prints or raises: a finding that makes going on meaningless stops its block. A note
says what is right on a GPU and yet seldom meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tilelab.errors import Loc, TileValueError

OUT_OF_BOUNDS = "TL2001"
UNINITIALISED = "TL2002"
MISSING_WAIT = "TL2003"
DEADLOCK = "TL2004"
EXPECTED_BYTES = "TL2005"
MISALIGNED = "TL2006"
RACE = "TL2007"
BARRIER_DIVERGENCE = "TL2008"
PARTIAL_WARP = "TL2009"
RUNAWAY_LOOP = "TL2010"
BARRIER_MISUSE = "TL2011"
DIVISION = "TL2012"
NOT_A_NUMBER = "TL2013"
ASSERTION = "TL2020"

KINDS = {
    OUT_OF_BOUNDS: "bounds", UNINITIALISED: "uninitialised", MISSING_WAIT: "async",
    DEADLOCK: "barriers", EXPECTED_BYTES: "barriers", MISALIGNED: "alignment", RACE: "races",
    BARRIER_DIVERGENCE: "barriers", PARTIAL_WARP: "barriers", RUNAWAY_LOOP: "barriers",
    BARRIER_MISUSE: "barriers", ASSERTION: "assertions", DIVISION: "arithmetic",
    NOT_A_NUMBER: "nan",
}  # fmt: skip
"""Code -> the name under which `simulate(checks=...)` switches it."""
OPTIONAL_CHECKS = frozenset({"nan"})
"""Checks of what is no mistake by itself: only made when they are named."""
ALL_CHECKS = frozenset(KINDS.values()) - OPTIONAL_CHECKS
"""The checks that `checks=True` means; among names, "default" stands for them."""

_HINTS = {
    OUT_OF_BOUNDS: "guard the access, or make the loop and the region end at the extent",
    UNINITIALISED: "write the element first: T.clear or T.fill the buffer, or copy into it",
    MISSING_WAIT: "wait for the copy (or wgmma) that writes it before using it",
    DEADLOCK: "match every wait with the arrivals and bytes that complete its phase",
    EXPECTED_BYTES: "expect exactly the bytes that the copies of this phase bring",
    MISALIGNED: "align the offset, or copy in narrower pieces",
    RACE: "put a barrier between the two accesses",
    BARRIER_DIVERGENCE: "let every thread of the block reach the same barrier",
    PARTIAL_WARP: "let whole warps run this instruction; where it has a mask, name the lanes in it",
    RUNAWAY_LOOP: "change in the body what the condition reads, so that it fails some time",
    BARRIER_MISUSE: "initialise the barrier with the number of arrivals of one phase",
    DIVISION: "guard the division, or let the divisor never be zero",
    NOT_A_NUMBER: "guard the operation, or keep infinities out of it",
    ASSERTION: "T.print the values that the condition reads",
}

GUARDED_HINT = (
    "let the loop, the index or the condition around it end at the extent (`i < N`, not `i <= N`): "
    "without the compiler's guard, as in plain CUDA, it is an access out of bounds"
)
UNWRITTEN_HINT = "let the grid and the loops cover the tensor, unless a part of it is meant"
"""Of notes, in place of the advice on their code."""

INSERTED_HINT = (
    "both accesses come from copies or products that tilelab lowered, where a program cannot put "
    "a barrier: this is a bug of tilelab, please report it with the program"
)
BETWEEN_BLOCKS_HINT = (
    "give each block elements of its own, update them by atomics, or use two kernels: "
    "nothing orders the blocks of a launch"
)
TOLD_HINT = (
    "let all threads of the other block write before a barrier, and one of them announce it behind "
    'that by an atomic of memory_order="release"; here, read its value with "acquire" (relaxed '
    "atomics order nothing), and put a barrier between that and this access"
)
COUNTS_HINT = (
    "give one number of threads (whole warps) wherever threads meet at a named barrier, and sets "
    "of threads that do not meet each its own barrier"
)
REGISTERS_HINT = (
    "let the budgets of all warpgroups sum to no more than they start with, and give back before "
    "others take"
)
ASKING_HINT = (
    "let another thread or block write what the loop waits for, on every path; blocks are only "
    "sure to run beside each other when all of the grid fit on the chip"
)
PROXY_HINT = (
    "put T.fence_proxy_async() behind the writes, in each thread that makes some, and the barrier "
    "(for another block, the flag) behind that; for cp.async that arrives at an mbarrier, behind "
    "the wait for it"
)
STORED_HINT = (
    "wait for all of the TMA store where it is made, T.tma_store_wait(0, read=False), then comes "
    "the barrier (for another block, the flag): without read=False its source may be reused, and "
    "no more"
)
LANES_HINT = "put T.sync_warp() or a barrier between: lanes of a warp need not run in step"
"""These stand instead of the advice on a code where another is of use."""


def chosen_checks(checks: bool | str | Iterable[str]) -> frozenset[str]:
    """The checks that `simulate(checks=...)` means. TileValueError (TL2109) for an unknown name."""
    if isinstance(checks, bool):
        return ALL_CHECKS if checks else frozenset()
    names: Iterable[str] = {checks} if isinstance(checks, str) else checks
    chosen = frozenset(names)
    known = ALL_CHECKS | OPTIONAL_CHECKS | {"default"}
    if chosen - known:
        raise TileValueError(
            f"there is no check {sorted(chosen - known)[0]!r}",
            code="TL2109", hint="use " + ", ".join(sorted(known)),
        )  # fmt: skip
    every: frozenset[str] = ALL_CHECKS if "default" in chosen else frozenset()
    return chosen.difference({"default"}).union(every)


@dataclass(frozen=True)
class Finding:
    """One problem at one place of the program. `times` counts equal ones that followed.

    level: "error": the program is wrong, whatever its output; "note": it is right on a GPU, and
    yet seldom meant. (Costs are counters.)
    """

    code: str
    message: str
    loc: Loc | None = None
    buffer: str = ""
    index: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    warp: int | None = None
    lane: int | None = None
    hint: str = ""
    other: Loc | None = None
    times: int = 1
    level: str = "error"

    def __str__(self) -> str:
        kind = "" if self.level == "error" else f" ({self.level})"
        times = f" ({self.times} times)" if self.times > 1 else ""
        lines = [f"{self.code}{kind}: {self.message}{times}"]
        if self.loc is not None:
            lines.append(self.loc.excerpt())
        if self.other is not None:
            lines.append("  the other access:\n" + self.other.excerpt())
        who = [
            f"{name} {value}"
            for name, value in (("block", self.block), ("warp", self.warp), ("lane", self.lane))
            if value is not None
        ]
        if who:
            lines.append("  seen in " + ", ".join(who))
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(self)
        for name in ("loc", "other"):
            place: Loc | None = getattr(self, name)
            data[name] = None if place is None else {"file": place.file, "line": place.line}
        return data


_ATOMICS: dict[type[ast.operator], str] = {
    ast.Add: "T.atomic_add({place}, {value})", ast.Sub: "T.atomic_add({place}, -({value}))",
    ast.BitOr: "T.atomic_or({place}, {value})",
}  # fmt: skip


def _update_hint(loc: Loc | None) -> str:
    """What to write for a statement that updates an element which other threads update, too: no
    barrier orders a statement with itself. Empty where the line is no such statement."""
    try:
        stmt = ast.parse(loc.text().strip() if loc else "").body[0]
    except (SyntaxError, ValueError, IndexError):
        return ""
    if isinstance(stmt, ast.AugAssign):
        place, op, value = stmt.target, type(stmt.op), stmt.value
    elif isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.BinOp):
        place, op, value = stmt.targets[0], type(stmt.value.op), stmt.value.right
        if ast.unparse(place) != ast.unparse(stmt.value.left):
            return ""
    else:
        return ""
    atomic = _ATOMICS.get(op)
    said = atomic and atomic.format(place=ast.unparse(place), value=ast.unparse(value))
    return "several threads update one element at once: " + (
        f"write {said}" if said else "use an atomic, or give each thread elements of its own"
    )


@dataclass
class Findings:
    """Collects findings, one for each (level, code, line, buffer); only those of enabled checks.
    `by_hand`: the program orders accesses itself, so that no race is blamed on the compiler."""

    checks: frozenset[str]
    by_hand: bool = False
    noted: set[int] = field(default_factory=set[int])  # nodes (by identity) that a note is about
    _found: dict[tuple[Any, ...], Finding] = field(default_factory=dict[tuple[Any, ...], Finding])

    def wants(self, code: str) -> bool:
        """Whether findings of this code are reported."""
        return KINDS[code] in self.checks

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it when the same place said the same before."""
        if not self.wants(finding.code):
            return
        place = (finding.loc.file, finding.loc.line) if finding.loc else None
        key = (finding.level, finding.code, place, finding.buffer)
        old = self._found.get(key)
        if old is not None:
            self._found[key] = replace(old, times=old.times + 1)
            return
        blames = finding.hint == INSERTED_HINT and self.by_hand
        hint = _HINTS[finding.code] if blames else finding.hint or _HINTS[finding.code]
        if finding.code == RACE and hint != INSERTED_HINT and finding.loc == finding.other:
            hint = _update_hint(finding.loc) or hint
        self._found[key] = replace(finding, hint=hint)

    def all(self) -> tuple[Finding, ...]:
        """All errors, in the order they were met."""
        return tuple(found for found in self._found.values() if found.level == "error")

    def notes(self) -> tuple[Finding, ...]:
        """All notes, in the order they were met."""
        return tuple(found for found in self._found.values() if found.level == "note")
