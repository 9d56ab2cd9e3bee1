"""How values of a program read where Python shows them: `print(A[0])` while a kernel is traced.

Hides that dataclasses write their own __repr__, which `install` replaces.
"""

from __future__ import annotations

from typing import Any

from tilelab.ir.buffer import Buffer, Pool, ReducerBuffer, Region, ScalarBuffer, WorkCounter
from tilelab.ir.expr import Binary, Call, Cast, Const, Load, Select, Unary, Var
from tilelab.ir.printer import to_text


def _expression(self: Any) -> str:
    return f"<{to_text(self)}: {self.dtype}>"


def _region(self: Region) -> str:
    return f"<{to_text(self)}: {self.buffer.dtype}>"


def _buffer(self: Buffer) -> str:
    extents = ", ".join(to_text(e) if hasattr(e, "dtype") else str(e) for e in self.shape)  # type: ignore[arg-type]
    comma = "," if len(self.shape) == 1 else ""
    return f"<{self.name}: {self.dtype} ({extents}{comma}), {self.scope.value}>"


def install() -> None:
    """Give expressions, buffers and regions these texts."""
    for kind in (Binary, Call, Cast, Const, Load, Select, Unary, Var):
        kind.__repr__ = _expression
    for kind in (Buffer, Pool, ReducerBuffer, ScalarBuffer, WorkCounter):
        kind.__repr__ = _buffer
    Region.__repr__ = _region
