"""The shared-memory budget of a compiled kernel: every byte, the chip's limits, what fits.

Numbers come from the kernel's own plan (`ThreadKernel.shared`), so they equal what the launch
asks for. Hides how stages, gaps and shared bytes are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

from tilelab.ir import Scope
from tilelab.passes.plan import PipelinePlan, VersionedBuffer
from tilelab.passes.shared_lifetimes import live_ranges
from tilelab.target import Limits, Target
from tilelab.thread.nodes import SharedSlot, ThreadKernel
from tilelab.thread.occupancy import Occupancy, occupancy
from tilelab.views.base import View, register
from tilelab.views.memory_svg import draw
from tilelab.views.table import bytes_text, plural, table, wrapped


@dataclass(frozen=True)
class MemoryRow:
    """One thing in shared memory. `use` is "tile", "barrier" or "padding".

    `stages` copies of `bytes_per_stage` each make up `num_bytes`, except that alignment inside
    a buffer may add some: `num_bytes` is what it takes. `shares_with` names buffers in whose
    bytes it lies too; `first` and `last` are the phases of the kernel in which it holds them.
    """

    name: str
    use: str
    dynamic: bool
    offset: int
    num_bytes: int
    stages: int
    bytes_per_stage: int
    detail: str
    shares_with: tuple[str, ...]
    first: int = 0
    last: int = 0

    def sharing(self) -> str:
        """With whom it shares bytes, and when it has them; "" where it shares none."""
        if not self.shares_with:
            return ""
        when = f"phase {self.first + 1}" + (
            f" to {self.last + 1}" if self.last > self.first else ""
        )
        return f"{', '.join(self.shares_with)}; its own in {when}"


@dataclass(frozen=True)
class StageFit:
    """How many stages of a pipelined loop would fit: bytes one stage takes, the rest, the most.

    The rest leaves out staging tiles, which are made only where stages leave room for them.
    """

    loop: str
    stages: int
    bytes_per_stage: int
    other_bytes: int
    largest: int


@register
@dataclass(frozen=True)
class MemoryView(View):
    """The budget of one kernel on one target; all sizes in bytes. `phases`: parts of the kernel's
    life, from one change of owners to the next; 1 where no tiles share bytes."""

    kind: ClassVar[str] = "memory"
    kernel: str
    target: str
    rows: tuple[MemoryRow, ...]
    dynamic_bytes: int
    static_bytes: int
    shared_per_block: int
    shared_per_sm: int
    reserved_per_block: int
    threads: int
    registers: int | None
    spill_bytes: int
    occupancy: Occupancy
    fits: tuple[StageFit, ...]
    phases: int = 1

    @property
    def total_bytes(self) -> int:
        """Dynamic and static together: what the block's limit is held against."""
        return self.dynamic_bytes + self.static_bytes

    def verdict(self) -> str:
        """One sentence: whether it fits, and how many blocks share a multiprocessor."""
        if self.total_bytes > self.shared_per_block:
            over = self.total_bytes - self.shared_per_block
            return f"does not fit: {over:,} B over the limit of {self.shared_per_block:,} B"
        by = " and ".join(self.occupancy.limiters)
        return (
            f"fits; {plural(self.occupancy.blocks, 'block')} on each multiprocessor, "
            f"limited by {by}"
        )

    def to_text(self) -> str:
        """Bytes by buffer, limits, occupancy by resource, and the stages that fit."""
        head = ("buffer", "kind", "at", "bytes", "stages", "per stage", "what")
        rows = [
            (r.name, r.use, f"{r.offset:,}" if r.dynamic else "static", f"{r.num_bytes:,}",
             r.stages, f"{r.bytes_per_stage:,}", _detail(r))
            for r in self.rows
        ]  # fmt: skip
        used = 100 * self.total_bytes / self.shared_per_block
        parts = [
            f"SHARED MEMORY  {self.kernel} on {self.target}: {bytes_text(self.dynamic_bytes)} "
            f"dynamic + {self.static_bytes:,} B static",
            wrapped(f"{used:.1f} % of the {bytes_text(self.shared_per_block)} a block may have"),
            table(head, rows) if rows else "  (no shared memory)",
            "\n  blocks on one multiprocessor",
            table(OCCUPANCY_HEAD, occupancy_rows(self.occupancy)),
            wrapped("→ " + self.verdict()),
        ]
        parts += [wrapped("→ " + fit_sentence(f, self.shared_per_block)) for f in self.fits]
        if self.spill_bytes:
            parts.append(wrapped(f"→ registers do not suffice: {self.spill_bytes} B are spilled"))
        return "\n".join(parts) + "\n"

    def to_svg(self) -> str:
        """A bar of bytes against the block's limit, and the blocks each resource allows."""
        return draw(self)


OCCUPANCY_HEAD = ("resource", "a block takes", "there is", "blocks")


def occupancy_rows(found: Occupancy) -> list[tuple[str, str, str, str]]:
    """The table of bounds as text; what is not known is a question mark."""

    def shown(value: int | None) -> str:
        return "?" if value is None else f"{value:,}"

    return [
        (b.resource, shown(b.per_block), shown(b.per_sm), shown(b.blocks)) for b in found.bounds
    ]


def fit_sentence(fit: StageFit, limit: int) -> str:
    """What one more stage would cost and how many fit."""
    text = (
        f"loop {fit.loop}: a stage takes {bytes_text(fit.bytes_per_stage)}; "
        f"{plural(fit.stages, 'stage')} now, at most {fit.largest} fit in {limit:,} B"
    )
    return text + (f" beside {fit.other_bytes:,} B of other data" if fit.other_bytes else "")


def _detail(row: MemoryRow) -> str:
    return row.detail + (f" (shares bytes with {row.sharing()})" if row.shares_with else "")


def _overlaps(slot: SharedSlot, slots: Sequence[SharedSlot]) -> tuple[str, ...]:
    return tuple(s.buffer.root.name for s in slots if s is not slot and slot.crosses(s))


def _row(
    slot: SharedSlot, slots: Sequence[SharedSlot], versions: dict[str, VersionedBuffer]
) -> MemoryRow:
    root = slot.buffer.root
    barrier = slot.buffer.scope is Scope.BARRIER
    version = versions.get(root.name)
    stages = version.versions if version else 1
    shape = "x".join(map(str, root.static_shape))
    return MemoryRow(
        name=root.name,
        use="barrier" if barrier else "tile",
        dynamic=slot.dynamic,
        offset=slot.offset,
        num_bytes=slot.num_bytes,
        stages=stages,
        bytes_per_stage=version.bytes_per_version if version else slot.num_bytes,
        detail=f"{plural(slot.num_bytes // 8, 'mbarrier')} of 8 B"
        if barrier
        else f"{shape} {root.dtype}",
        shares_with=_overlaps(slot, slots),
    )


def _lives(
    kernel: ThreadKernel, slots: Sequence[SharedSlot]
) -> tuple[list[tuple[int, int]], int]:  # fmt: skip
    """The first and the last phase of each slot, and how many phases there are (those in which no
    tile lives are left out): one, unless slots share bytes. What no live range is known of lives
    all the time."""
    if not any(a.crosses(b) for a, b in combinations(slots, 2)):
        return [(0, 0)] * len(slots), 1
    ranges = live_ranges(kernel)
    known = [ranges.get(id(slot.buffer.storage)) for slot in slots]
    lives = [(r.first, r.last) for r in known if r is not None]
    ends = sorted({end for first, last in lives for end in (first, last + 1)})
    starts = [e for e in ends if any(first <= e <= last for first, last in lives)]
    phases = max(len(starts), 1)
    whole = (0, phases - 1)
    places = [
        whole if r is None else (
            starts.index(r.first), sum(start <= r.last for start in starts) - 1
        )
        for r in known
    ]  # fmt: skip
    return places, phases


def _gaps(slots: Sequence[SharedSlot], dynamic_bytes: int) -> list[MemoryRow]:
    """Bytes of dynamic shared memory that no buffer covers."""
    rows: list[MemoryRow] = []
    end = 0
    spans = sorted((s.offset, s.offset + s.num_bytes) for s in slots if s.dynamic)
    for start, stop in [*spans, (dynamic_bytes, dynamic_bytes)]:
        if start > end:
            size = start - end
            rows.append(MemoryRow("padding", "padding", True, end, size, 1, size, "alignment", ()))
        end = max(end, stop)
    return rows


def _fit(plan: PipelinePlan, total: int, limits: Limits) -> StageFit | None:
    per_stage = sum(b.bytes_per_version for b in plan.buffers)
    if not per_stage:
        return None
    barriers_per_stage = sum(8 * b.count for b in plan.barriers) // max(plan.num_stages, 1)
    step = per_stage + barriers_per_stage
    stages = max(b.versions for b in plan.buffers)
    other = max(total - stages * step, 0)
    return StageFit(plan.loop, stages, per_stage, other, (limits.shared_per_block - other) // step)


def memory_view(
    kernel: ThreadKernel, target: Target, *, plans: Sequence[PipelinePlan] = (),
    registers: int | None = None, spill_bytes: int = 0,
) -> MemoryView:  # fmt: skip
    """The budget of a lowered kernel. `registers` (of each thread) is what ptxas reported."""
    own = [p for p in plans if p.kernel in ("", kernel.name)]
    versions = {b.buffer.root.name: b for plan in own for b in plan.buffers}
    slots = sorted(kernel.shared, key=lambda s: (not s.dynamic, s.offset))
    lives, phases = _lives(kernel, slots)
    rows = [replace(_row(slot, slots, versions), first=first, last=last)
            for slot, (first, last) in zip(slots, lives, strict=True)]  # fmt: skip
    gaps = [replace(row, last=phases - 1) for row in _gaps(slots, kernel.dynamic_bytes)]
    rows = sorted([*rows, *gaps], key=lambda r: (not r.dynamic, r.offset))
    limits = target.limits
    total = kernel.dynamic_bytes + kernel.static_bytes
    needed = total - sum(s.num_bytes for s in kernel.shared if s.yields)
    fits = [_fit(plan, needed, limits) for plan in own]
    return MemoryView(
        title=f"Shared-memory budget of {kernel.name}",
        kernel=kernel.name,
        target=target.name,
        rows=tuple(rows),
        dynamic_bytes=kernel.dynamic_bytes,
        static_bytes=kernel.static_bytes,
        shared_per_block=limits.shared_per_block,
        shared_per_sm=limits.shared_per_sm,
        reserved_per_block=limits.shared_reserved_per_block,
        threads=kernel.num_threads,
        registers=registers,
        spill_bytes=spill_bytes,
        occupancy=occupancy(total, kernel.num_threads, registers, limits),
        fits=tuple(f for f in fits if f is not None),
        phases=phases,
    )
