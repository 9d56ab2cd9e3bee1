"""Expressions evaluated once more, to find what in them is to blame: without checks or counters.

Hides how memory is read as it is now, whatever order its accesses have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.ir import Load, Scope
from tilelab.sim.frame import Frame, Value, varies
from tilelab.sim.place import Place

if TYPE_CHECKING:
    from tilelab.sim.access import CheckedMemory


class Unchecked:
    """The memory of a strand, for looking again (`evaluate.Memory`)."""

    def __init__(self, memory: CheckedMemory) -> None:
        self.memory = memory

    def read(self, load: Load, indices: tuple[Value, ...], frame: Frame) -> Value:
        """What is there; indices outside are moved inside."""
        memory, buffer, group = self.memory, load.buffer, self.memory.group
        extents = memory.extents(buffer)
        inside = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices or (0,), extents, strict=True))
        if buffer.scope is Scope.LOCAL:
            index = inside[0] if varies(inside[0]) and inside[0].ndim else int(inside[0])
            return group.registers.load(buffer, index, frame)
        if buffer.scope is Scope.GLOBAL:
            out = np.asarray(group.arrays[buffer][inside])
            return out.reshape(1, 1) if out.ndim == 0 else out
        return group.shared.load(buffer.dtype, memory.address(Place(buffer, inside)), frame)

    def divided_by_zero(self, where: Any, frame: Frame) -> None:
        """Reported the first time."""

    def guarded(self, e: Any, cond: Value, frame: Frame) -> None:
        """Noted the first time."""
