"""What holds of every schedule with times, modelled or measured. For CPU and GPU tests."""

from __future__ import annotations

from itertools import pairwise

from tilelab.views import ScheduleView


def check(view: ScheduleView) -> None:
    """No slot is loaded before it is free, none is used before its load was issued or before it
    was asked for; uses keep their order."""
    for use in view.uses:
        assert use.slot == use.k % view.slots and use.issue < use.consume < use.done, use
        assert use.arrived is None or use.issue < use.arrived <= use.consume, use
        assert use.asked <= use.consume <= use.busy_until, use
    for before, after in pairwise(view.uses):
        assert before.issue < after.issue and before.consume <= after.asked, (before, after)
    for use in view.uses[view.slots :]:
        before = view.uses[use.k - view.slots]
        assert use.issue >= before.consume and before.done <= use.consume, (before, use)
