"""The shared-memory budget of a kernel against the limit of a target or a device.

Hides the arithmetic of stages: which buffers have one copy for each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.errors import TileValueError
from tilelab.passes.plan import PipelinePlan
from tilelab.thread.nodes import ThreadKernel


@dataclass(frozen=True)
class BudgetLine:
    """One buffer in shared memory: `copies` of `bytes_each`."""

    name: str
    copies: int
    bytes_each: int

    @property
    def bytes(self) -> int:
        return self.copies * self.bytes_each


def budget_lines(kernel: ThreadKernel, plans: Sequence[PipelinePlan]) -> list[BudgetLine]:
    """What fills the shared memory of a kernel, largest first."""
    versions = {v.buffer.root.name: v.versions for plan in plans for v in plan.buffers}
    lines: list[BudgetLine] = []
    for slot in kernel.shared:
        copies = versions.get(slot.buffer.root.name, 1)
        if slot.num_bytes % copies:
            copies = 1
        lines.append(BudgetLine(slot.buffer.root.name, copies, slot.num_bytes // copies))
    return sorted(lines, key=lambda line: -line.bytes)


def largest_stages(
    kernel: ThreadKernel, plans: Sequence[PipelinePlan], limit: int
) -> tuple[int, int] | None:
    """(stages now, the most that fit in `limit`) of the kernel's largest pipeline; None when it
    has no pipelined loop. 0 when not even one stage fits."""
    if not plans:
        return None
    plan = max(plans, key=lambda p: sum(v.bytes_per_version * v.versions for v in p.buffers))
    per_stage = sum(v.bytes_per_version for v in plan.buffers)
    if not per_stage:
        return None
    total = kernel.dynamic_bytes + kernel.static_bytes
    fixed = total - per_stage * plan.num_stages
    return plan.num_stages, max((limit - fixed) // per_stage, 0)


def check_shared(
    kernel: ThreadKernel, limit: int, where: str, plans: Sequence[PipelinePlan] = ()
) -> None:
    """TileValueError (TL1634) when a block needs more shared memory than `limit` bytes, with the
    bytes of each buffer and the largest number of stages that fits. `where` names the chip."""
    total = kernel.dynamic_bytes + kernel.static_bytes
    if total <= limit:
        return
    own = [plan for plan in plans if plan.kernel == kernel.name] or list(plans)
    lines = budget_lines(kernel, own)
    notes = [
        f"{line.name}: {line.bytes:,} bytes"
        + (f" ({line.copies} stages of {line.bytes_each:,})" if line.copies > 1 else "")
        for line in lines
    ]
    raise TileValueError(
        f"{kernel.name} needs {total} bytes of shared memory for each block, and {where} has "
        f"{limit}",
        code="TL1634", loc=kernel.loc, notes=notes, hint=_remedy(kernel, own, limit, lines),
    )  # fmt: skip


def _remedy(
    kernel: ThreadKernel, plans: Sequence[PipelinePlan], limit: int, lines: Sequence[BudgetLine]
) -> str:
    stages = largest_stages(kernel, plans, limit)
    if stages is not None and stages[1] >= 1:
        return f"num_stages={stages[1]} is the most that fits (now {stages[0]})"
    name = lines[0].name if lines else "the tiles"
    if stages is not None:
        return f"not even one stage fits: make {name} smaller"
    return f"make {name} smaller"
