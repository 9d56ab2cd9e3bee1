"""What a program says while it is simulated: printed lines, and assertions that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.errors import Loc
from tilelab.layout.digits import unravel
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, first_bad, rows_with

if TYPE_CHECKING:
    from tilelab.sim.group import BlockGroup

MOST_LINES = 10_000
"""Lines kept for one launch; the device's buffer is bounded too."""


@dataclass(frozen=True)
class Printed:
    """A line that one thread printed."""

    text: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    loc: Loc | None

    def __str__(self) -> str:
        block, thread = (" ".join(map(str, _padded(c))) for c in (self.block, self.thread))
        return f"{self.text} (block {block}, thread {thread})"


def _padded(coordinates: tuple[int, ...]) -> tuple[int, ...]:
    return (*coordinates, 0, 0, 0)[:3]


class Speech:
    """The lines of one launch, in the order they were said. `dropped` counts those too many."""

    def __init__(self) -> None:
        self.lines: list[Printed] = []
        self.dropped = 0


def say(group: BlockGroup, frame: Frame, loc: Loc | None, text: str, values: Sequence[Any]) -> None:
    """Print for every active lane."""
    arrays = [np.broadcast_to(np.asarray(v), frame.shape) for v in values]
    speech = group.speech
    for at in _active(frame):
        if group.dead[frame.rows[at[-2]]]:
            continue
        if len(speech.lines) >= MOST_LINES:
            speech.dropped += 1
            continue
        line = text % tuple(a[at].item() for a in arrays)
        block = group.coordinates(int(frame.rows[at[-2]]))
        thread = coordinates(int(frame.lanes[at[-1]]), group.kernel.threads)
        speech.lines.append(Printed(line, group.kernel.name, block, thread, loc))


def _active(frame: Frame) -> Iterator[tuple[int, ...]]:
    """Positions (loops, block, lane) that take part, block by block and thread by thread."""
    mask: Array = np.ones(frame.shape, np.bool_)
    if frame.mask is not None:
        mask = mask & frame.mask
    order = np.argwhere(np.moveaxis(mask, (-2, -1), (0, 1)))
    for row, lane, *loops in order.tolist():
        yield (*loops, row, lane)


def coordinates(number: int, threads: tuple[int, ...]) -> tuple[int, ...]:
    """threadIdx of a thread of the block, x first."""
    return unravel(number, threads[::-1])[::-1]


def clause(subject: str, said: str) -> str:
    """What threads, or a role of them, do: "block waits ...", "threads 0 to 31 wait ..."."""
    plural = subject.startswith("threads ") and said.startswith("waits ")
    return f"{subject} {said.replace('waits', 'wait', 1) if plural else said}"


def require(
    group: BlockGroup, frame: Frame, loc: Loc | None, ok: Any, text: str, code: str = f.ASSERTION
) -> None:
    """Report what fails to hold in an active lane, and stop the blocks in which it does."""
    first = first_bad(~np.asarray(ok, np.bool_), frame)
    if first is None:
        return
    row, lane = first.lane
    group.report(code, text, loc, row=int(frame.rows[row]), thread=int(frame.lanes[lane]))
    group.stop(frame.rows[rows_with(first.bad)])
