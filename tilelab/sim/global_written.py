"""Which elements of global memory hold a value: outputs and workspaces begin without one.

Hides that only tensors which some kernel reads are kept account of, and that an account is
closed once its tensor is complete. Tensors that other types look at as well are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tilelab.ir import Buffer, walk
from tilelab.sim.global_order import reads_of
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
