"""An instruction of lanes in different places; hides that the last to come does it for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.sim.frame import Array, Env, Frame
from tilelab.sim.lane_barriers import BarrierLanes
from tilelab.sim.waits import MeetingWait
from tilelab.target import WARP
from tilelab.thread import Intrinsic


def meet(m: BarrierLanes, record: Intrinsic, operands: Sequence[Any]) -> Iterator[Any]:
    """Wait until the lanes that the first operand names have come; the instruction's values."""
    frame = m.frame
    masks = m.by_lane(m.named(np.asarray(operands[0])))
    values = [masks, *(m.full(o) for o in operands[1:])]
    own = masks >> (frame.lanes % WARP).astype(np.uint32) & 1 != 0
    meeting = m.group.meetings.at(record, values)
    m.takes_part(own, f"a lane runs {meeting.name} with a mask that does not name itself")
    before = meeting.arrive(frame.rows, frame.lanes, masks, values)
    for rows, threads in meeting.complete(frame.rows):
        m.frame = Frame(rows, threads, Env(), m.group.size, frame.epoch)
        at = np.ix_(rows, threads)
        given: Array | None = record.meaning(m, *(o[at] for o in meeting.operands))
        if given is not None:
            meeting.give(rows, threads, np.broadcast_to(given, m.frame.shape))
    m.frame = frame
    yield from m.waiting(MeetingWait(meeting, frame.rows, frame.lanes, before, m.memory.loc))
    return meeting.given(frame.rows, frame.lanes)
