"""Lanes that act for their warp, at a barrier or with a copy: what the others did is not told.

Hides that clocks count the time of whole warps: accesses of lanes that the arriving ones have not
met since (T.sync_warp) are dated behind the arrival, where nobody who hears of it knows them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.sim.frame import Array, Frame
from tilelab.sim.group import BlockGroup
from tilelab.sim.shadow import Access, beside, lane_of, names
from tilelab.target import WARP


def hold_back(group: BlockGroup, frame: Frame) -> None:
    """The lanes of a frame have told what their warps know and did; date what other lanes of
    these warps did since they met behind it."""
    if not group.findings.wants("TL2007"):
        return
    if frame.mask is None:
        _hold_back(group, frame.rows, frame.lanes)
        return
    mask: Array = np.broadcast_to(frame.mask, frame.shape[-2:])
    for row, on in zip(frame.rows.tolist(), mask, strict=True):
        _hold_back(group, np.array([row]), frame.lanes[on])


def _hold_back(group: BlockGroup, rows: Array, lanes: Array) -> None:
    clocks, shadow = group.clocks, group.shadow
    for warp in np.unique(lanes // WARP).tolist():
        own = warp * WARP + np.arange(min(WARP, group.kernel.num_threads - warp * WARP))
        told = np.isin(own, lanes)
        if told.all():
            continue
        at = clocks.rows(rows)
        if not clocks.uniform:
            shadow.expand()
        met = clocks.synced[at, own[told]].max(axis=1, keepdims=True)
        since = np.minimum(clocks.synced[at, own], met)
        here = np.zeros(1, np.int64) if shadow.uniform else rows
        for threads, times in (
            (shadow.write_thread, shadow.write_clock),
            (shadow.read_thread, shadow.read_clock[:, warp]),
        ):
            marks = threads[here]
            row, cell = np.nonzero(names(marks, warp))
            if not len(cell):
                continue
            lane, when = lane_of(marks[row, cell]), times[here[row], cell]
            line = row if len(at) > 1 else np.zeros_like(row)
            known = np.where(lane < 0, met[line, 0], since[line, np.maximum(lane, 0)])
            late = (when >= known) & ~((lane >= 0) & told[np.maximum(lane, 0)])
            where = here[row[late]], cell[late]
            times[where] = clocks.now[at[line[late], 0], warp, warp]
            if threads is shadow.write_thread:  # fenced all the same
                fenced = clocks.fenced[at[line[late], 0], warp]
                shadow.unfenced[where] &= when[late] > fenced


def unmet(group: BlockGroup, access: Access, thread: int) -> tuple[int, str] | None:
    """(position, "read" or "written") of the first cell of a copy that a thread issues which
    another lane of its warp has touched since the two met."""
    clocks, shadow = group.clocks, group.shadow
    mine = np.full(len(access.cells), thread)
    row: Any = 0 if access.rows is None else access.rows
    for kind, threads, times in (
        ("written", shadow.write_thread, shadow.write_clock),
        ("read", shadow.read_thread, shadow.read_clock[:, thread // WARP]),
    ):
        bad = beside(threads[row, access.cells], times[row, access.cells], access, mine, clocks)
        if bad.any():
            return int(bad.argmax()), kind
    return None
