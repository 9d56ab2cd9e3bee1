"""Which elements of global memory hold a value: outputs and workspaces begin without one.

Hides that only tensors which some kernel reads are kept account of, and that an account is
closed once its tensor is complete. Tensors that other types look at as well are left out. What
no block has written in the end is told from the marks that races are found by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.ir import Buffer, Node, TensorParam, walk
from tilelab.sim import findings as f
from tilelab.sim.findings import Finding, Findings
from tilelab.sim.global_order import GlobalOrder, loads_of, reads_of
from tilelab.sim.regular import Regular
from tilelab.thread import Program

Array = np.ndarray[Any, Any]


class GlobalWritten:
    """A flag for each element of the tensors `unset`."""

    def __init__(
        self, program: Program, arrays: Mapping[Buffer, Array], unset: Iterable[Buffer]
    ) -> None:
        nodes = [n for kernel in program.kernels for n in walk(kernel.body)]
        read = {b for n in nodes for b in reads_of(n)}
        viewed = {v.storage for kernel in program.kernels for v in kernel.views}
        self._flags = {b: np.zeros(arrays[b].shape, np.bool_) for b in {*unset} & read - viewed}

    def flags(self, buffer: Buffer) -> Array | None:
        """The flags of a tensor; None when every element has a value."""
        return self._flags.get(buffer)

    def missing(self, buffer: Buffer, where: Any) -> Array | None:
        """Which of the elements at `where` have no value; None when all have one."""
        flags = self._flags.get(buffer)
        if flags is None:
            return None
        bad = ~flags[where]
        if bad.any():
            return bad
        if flags.all():
            del self._flags[buffer]
        return None

    def mark(self, buffer: Buffer, where: Any) -> None:
        """The elements at `where` are written."""
        flags = self._flags.get(buffer)
        if flags is not None:
            flags[where] = True

    def mark_regular(self, buffer: Buffer, plain: Regular) -> None:
        """The elements of an access are written."""
        flags = self._flags.get(buffer)
        if flags is not None:
            plain.store(flags, True)


def note_unwritten(
    program: Program, orders: Sequence[GlobalOrder], findings: Findings, unset: Iterable[str]
) -> None:
    """Note the elements of outputs that no block of the program has written. Outputs are the
    tensors `unset`, and those that a kernel writes and none reads."""
    if not findings.wants(f.RACE) or not findings.wants(f.UNINITIALISED):
        return
    nodes: list[Node] = [n for kernel in program.kernels for n in walk(kernel.body)]
    read = {b for n in nodes for b in loads_of(n)}
    begins = set(unset)
    for param in program.params:
        if not isinstance(param, TensorParam):
            continue
        buffer = param.buffer
        places = [o.place_of_writes(buffer) for o in orders if o.writes(buffer)]
        if param.name not in begins and (buffer in read or not places):
            continue
        parts = [o.reached(buffer) for o in orders]
        if any(p is None for p in parts):
            continue
        left: Array = ~np.logical_or.reduce([p for p in parts if p is not None])
        if not left.any():
            continue
        at = tuple(int(i) for i in np.unravel_index(int(left.argmax()), left.shape))
        count, total = int(left.sum()), left.size
        index = f"[{', '.join(map(str, at))}]"
        kept = "hold no value" if param.name in begins else "keep what they held"
        message = (
            f"no block writes {count:,} of the {total:,} elements of {param.name}, which {kept}; "
            f"the first is {param.name}{index}"
        )
        findings.add(Finding(
            f.UNINITIALISED, message, places[0] if places else buffer.loc, param.name, at,
            hint=f.UNWRITTEN_HINT, level="note",
        ))  # fmt: skip
