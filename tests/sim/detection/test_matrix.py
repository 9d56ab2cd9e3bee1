"""Every program of the matrix: its bug is found with the right line, and without it nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.detection import (
    aliases,
    arrivals,
    barriers,
    between,
    blocks,
    bounds,
    copied,
    copies,
    elements,
    endless,
    lanes,
    orders,
    races,
    rings,
    roles,
    slots,
    stuck,
    tails,
    uninitialised,
    waits,
    warps,
    writers,
)  # fmt: skip
from tests.sim.detection.matrix import Entry
from tilelab.sim.findings import INSERTED_HINT

CLASSES = {
    "out-of-bounds read": [
        *bounds.READS,
        *elements.BOUNDS_READ,
        *tails.BOUNDS_READ,
        *copied.BOUNDS_READ,
    ],
    "out-of-bounds write": [*bounds.WRITES, *elements.BOUNDS_WRITE, *tails.BOUNDS_WRITE],
    "uninitialised read": [*uninitialised.READS, *elements.UNSET, *tails.UNSET],
    "shared race": [
        *races.SHARED,
        *warps.SHARED,
        *aliases.SHARED,
        *orders.SHARED,
        *writers.SHARED,
        *barriers.SHARED,
        *lanes.SHARED,
    ],
    "global race": [
        *races.GLOBAL,
        *blocks.GLOBAL,
        *between.GLOBAL,
        *orders.GLOBAL,
        *writers.GLOBAL,
        *arrivals.GLOBAL,
        *lanes.GLOBAL,
    ],
    "missing async wait": [
        *waits.ASYNC,
        *copies.ASYNC,
        *rings.ASYNC,
        *roles.ASYNC,
        *copied.ASYNC,
        *arrivals.ASYNC,
        *lanes.ASYNC,
    ],
    "barrier divergence or deadlock": [
        *barriers.STUCK,
        *stuck.STUCK,
        *endless.ENDLESS,
        *rings.STUCK,
        *roles.STUCK,
        *between.STUCK,
        *aliases.STUCK,
        *lanes.STUCK,
    ],
    "slot reused too early": [
        *waits.SLOTS,
        *slots.SLOTS,
        *rings.SLOTS,
        *copied.SLOTS,
        *arrivals.SLOTS,
        *lanes.SLOTS,
    ],
}
ENTRIES = [e for entries in CLASSES.values() for e in entries]
ROOT = Path(__file__).parents[3]
PLACELESS = ("TL2008", "TL2009", "TL2010")
"""Findings about threads and loops, not about an element of a buffer."""
WITHOUT_BUFFER = ("named barrier", "setmaxnreg")
every = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)


def test_the_documentation_counts_the_programs() -> None:
    reads, writes, unset, shared, between, waits_, stuck_, slots_ = map(len, CLASSES.values())
    text = " ".join((ROOT / "docs" / "simulator.md").read_text(encoding="utf-8").split())
    assert (
        f"`tests/sim/detection` holds {len(ENTRIES)} programs, each with one bug and a twin "
        f"without it: out-of-bounds reads ({reads}) and writes ({writes}), uninitialised reads "
        f"({unset}), "
        f"races in shared ({shared}) and global memory ({between}), missing waits ({waits_}), "
        f"divergence and deadlocks ({stuck_}), slots reused too early ({slots_})."
    ) in text


def test_each_class_has_enough_programs() -> None:
    assert all(len(entries) >= 6 for entries in CLASSES.values())
    assert all(entry.lines() for entry in ENTRIES)


@every
def test_the_bug_is_found_at_its_line(entry: Entry) -> None:
    report = entry.simulate(ok=False)
    lines = entry.lines()
    found = [f for f in report.findings if f.loc and f.loc.line in lines and f.code in entry.codes]
    assert found, str(report)
    for one in report.findings:
        assert one.hint and one.hint != INSERTED_HINT  # the bug is the program's
        assert one.block is not None and one.warp is not None and one.lane is not None
        placeless = one.code in PLACELESS or any(w in one.message for w in WITHOUT_BUFFER)
        assert placeless or (one.buffer and one.index is not None), one


@every
def test_the_right_twin_has_no_finding(entry: Entry) -> None:
    for schedule, seed in (("late", 0), ("eager", 0), ("random", 1), ("random", 2)):
        report = entry.simulate(ok=True, schedule=schedule, seed=seed)
        assert report.ok, f"{schedule} {seed}: {report}"
