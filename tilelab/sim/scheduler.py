"""Which strand runs next, when asynchronous copies arrive, and when nothing can go on.

Schedules: "late" (strands in turn; a copy arrives only when nobody can run without it, so a
missing wait shows), "eager" (copies arrive at once), "random" (seeded choice of both).
"""

from __future__ import annotations

from itertools import islice
from typing import Literal

import numpy as np

from tilelab.sim import findings as f
from tilelab.sim.arrivals import Arrival
from tilelab.sim.endless import IN_VAIN
from tilelab.sim.frame import Array
from tilelab.sim.group import BlockGroup
from tilelab.sim.speech import clause
from tilelab.sim.strand import Strand
from tilelab.sim.tma import Transfer
from tilelab.sim.waits import BarrierWait, JoinWait, MeetingWait, PhaseWait, RegisterWait, Turn

Schedule = Literal["late", "eager", "random"]
SCHEDULES: tuple[Schedule, ...] = ("late", "eager", "random")
_ARRIVES_EARLY = 0.3


class Scheduler:
    """Runs the strands of one group of blocks to their end; `roots` begin, one for all blocks or
    one for each."""

    def __init__(
        self, group: BlockGroup, roots: list[Strand], schedule: Schedule, seed: int
    ) -> None:
        self.group, self.roots = group, roots
        self.schedule: Schedule = schedule
        self.random = np.random.default_rng(seed)
        self.live = group.strands = list(roots)

    def run(self) -> None:
        """Until every strand has ended."""
        while self.live:
            ready = [s for s in self.live if s.wait is None or not len(s.wait.blocked(self.group))]
            busy = [s for s in ready if not isinstance(s.wait, Turn)]
            if self.group.transfers and (not busy or self._arrives_early()):
                self._arrive(self._wanted())
            elif busy:
                self._step(busy)
            elif ready:
                self._ask(ready)
            elif not self._part(every=False):
                self._deadlock()
        self._leftovers()

    def _ask(self, ready: list[Strand]) -> None:
        """Let strands that only ask do so, until one does more or stops: asking ends no wait, so
        nobody else can go on meanwhile. Where they have asked in vain, others go on that wait for
        them at the end of a branch."""
        group, epoch, asks = self.group, self.group.epoch, True
        group.asking = len(ready)
        while asks and group.epoch == epoch:
            group.idle += 1
            asks = group.idle % IN_VAIN != 0 or not self._part(every=True)
            strand = self._step(ready)
            ready.remove(strand)
            ready.append(strand)
            asks &= not strand.done and isinstance(strand.wait, Turn)

    def _leftovers(self) -> None:
        """What the kernel leaves behind: copies nobody waited for, bytes nobody expected."""
        group = self.group
        for transfer in group.transfers:
            if isinstance(transfer, Arrival):
                transfer.land()
        group.transfers = [t for t in group.transfers if not isinstance(t, Arrival)]
        for transfer in group.transfers:
            buffer = transfer.place.buffer
            text = f"the kernel ends while a TMA load into {buffer.said} is still under way"
            row = int(transfer.rows[0])
            group.report(
                f.MISSING_WAIT, text, transfer.loc, row=row, thread=transfer.thread, buffer=buffer,
                index=transfer.corner(),
            )  # fmt: skip
        if group.transfers:
            return
        for barriers in group.mbarriers.values():
            rows, which = np.nonzero((barriers.bytes != 0) & ~group.dead[:, None])
            if len(rows):
                text = f"at the end of the kernel {barriers.state(int(rows[0]), int(which[0]))}"
                group.report(
                    f.EXPECTED_BYTES, text, group.kernel.loc, row=int(rows[0]),
                    buffer=barriers.buffer, index=barriers.index(int(which[0])),
                )  # fmt: skip

    def _step(self, ready: list[Strand]) -> Strand:
        in_turn = self.group.idle > IN_VAIN + self.group.asking  # before those who ask are given up
        drawn = self.schedule == "random" and not in_turn
        pick = int(self.random.integers(len(ready))) if drawn else 0
        strand = ready[pick]
        ended = self.group.dead[strand.frame.rows].all()  # by a finding: it does nothing for others
        if not isinstance(strand.wait, Turn) and not ended:
            self.group.idle = 0
        strand.advance()
        self.live.remove(strand)
        if not strand.done:
            self.live.append(strand)
        self._begin(strand)
        if strand.done and any(strand is r for r in self.roots):
            strand.machine.finish()
            frame = strand.frame
            self.group.barriers.leave(frame.rows, len(frame.lanes))
        return strand

    def _begin(self, strand: Strand) -> None:
        self.live.extend(strand.children)
        strand.children.clear()

    def _part(self, *, every: bool) -> bool:
        """Let threads go on that wait for others at the end of a branch, those of one strand or of
        `every` one, whole warps before lanes; whether any could. Not where these stand at a
        barrier of the block: it is in the wrong place then."""
        for whole in (True, False):
            live = [s for s in self.live if not _at_block_barrier(s)]
            parted = list(islice((s for s in live if s.part(whole)), None if every else 1))
            for strand in parted:
                self._begin(strand)
            if parted:
                return True
        return False

    def _arrives_early(self) -> bool:
        return self.schedule == "random" and self.random.random() < _ARRIVES_EARLY

    def _wanted(self) -> int:
        """The copy that arrives next: the oldest whose barrier somebody waits for, else the
        oldest; any in a random schedule."""
        if self.schedule == "random":
            return int(self.random.integers(len(self.group.transfers)))
        waits = [s.wait for s in self.live if isinstance(s.wait, PhaseWait)]
        for i, transfer in enumerate(self.group.transfers):
            if any(self._awaits(wait, transfer) for wait in waits):
                return i
        return 0

    def _awaits(self, wait: PhaseWait, transfer: Transfer | Arrival) -> bool:
        """Whether a copy completes at a barrier that holds somebody up."""
        if transfer.bar is None or transfer.bar[0] is not wait.barriers:
            return False
        held = np.full(self.group.size, -1)
        held[wait.rows] = wait.which
        blocked = np.isin(transfer.rows, wait.blocked(self.group))
        return bool((blocked & (held[transfer.rows] == transfer.bar[1])).any())

    def _arrive(self, which: int) -> None:
        self.group.transfers.pop(which).land()

    # ---- nothing can go on --------------------------------------------------------------------

    def _stuck(self) -> Array:
        """Blocks in which every strand is held up by that block itself."""
        stuck = ~self.group.dead
        for strand in self.live:
            if isinstance(strand.wait, JoinWait):
                continue
            rows = strand.wait.rows
            passable = np.setdiff1d(rows, strand.wait.blocked(self.group))
            stuck[passable] = False
        held = np.zeros_like(stuck)
        for strand in self.live:
            if not isinstance(strand.wait, JoinWait):
                held[strand.wait.blocked(self.group)] = True
        found = np.flatnonzero(stuck & held)
        return found if len(found) else np.flatnonzero(held)

    def _deadlock(self) -> None:
        group, rows = self.group, self._stuck()
        row = int(rows[0])
        waiting = [
            s for s in self.live
            if not isinstance(s.wait, JoinWait) and row in s.wait.blocked(group)
        ]  # fmt: skip
        parts = [clause(s.role, s.wait.missing(group, row)) for s in waiting]
        text = "no thread of the block can go on: " + "; ".join(parts)
        code, cause = self._verdict(waiting, row)
        wait, thread = cause.wait, int(cause.frame.lanes[0])
        hint, other = f.REGISTERS_HINT if isinstance(wait, RegisterWait) else "", None
        if code == f.BARRIER_DIVERGENCE and isinstance(wait, BarrierWait):
            needs = int(group.barriers.at(wait.number).needs[row])
            use = group.barriers.other_use(wait.number, needs)
            if use is not None:
                code, hint, other = f.BARRIER_MISUSE, f.COUNTS_HINT, use[1]
                text += f"; elsewhere, named barrier {wait.number} joins {use[0]} threads"
        found = (None, None)
        if isinstance(wait, PhaseWait):
            found = wait.barriers.buffer, wait.barriers.index(wait.barrier(row))
        group.report(
            code, text, wait.loc, row=row, thread=thread, buffer=found[0], index=found[1],
            other=other, hint=hint,
        )  # fmt: skip
        group.stop(rows)

    def _verdict(self, waiting: list[Strand], row: int) -> tuple[str, Strand]:
        """The code, and the strand whose wait shows best what is wrong."""
        for strand in waiting:
            wait = strand.wait
            if isinstance(wait, PhaseWait):
                which = wait.which[wait.rows == row]
                barriers = wait.barriers
                if (
                    barriers.pending[row, which].min() < barriers.count[row, which].min()
                    and (barriers.pending[row, which] <= 0).any()
                ):
                    return f.EXPECTED_BYTES, strand
        apart = [s for s in waiting if isinstance(s.wait, MeetingWait)]
        if apart and all(isinstance(s.wait, BarrierWait | MeetingWait) for s in waiting):
            return f.PARTIAL_WARP, apart[0]
        if all(isinstance(s.wait, BarrierWait) for s in waiting):
            return f.BARRIER_DIVERGENCE, waiting[0]
        budgets = [s for s in waiting if isinstance(s.wait, RegisterWait)]
        return f.DEADLOCK, [*budgets, *waiting][0]


def _at_block_barrier(strand: Strand) -> bool:
    """Whether a strand, or one that it has forked, waits for all threads of the block."""
    wait = strand.wait
    if isinstance(wait, JoinWait):
        return any(_at_block_barrier(s) for s in wait.strands if not s.done)
    return isinstance(wait, BarrierWait) and wait.number == 0
