"""NaN: where one is first produced, by which operation, from which operands (check "nan").

Hides how the operation inside an expression is found: its parts are evaluated once more. NaNs
that were in memory already are passed on, and no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.ir import Binary, Call, Cast, Expr, Select, Unary, children
from tilelab.sim import findings as f
from tilelab.sim.again import Unchecked
from tilelab.sim.evaluate import evaluate
from tilelab.sim.frame import Array, Frame, first_bad, varies

if TYPE_CHECKING:
    from tilelab.sim.access import CheckedMemory

Part = tuple[Expr, Frame]


def check_value(memory: CheckedMemory, e: Expr, value: Array, frame: Frame) -> None:
    """Report an operation in `e`, whose value is about to be stored, that makes NaN of operands
    which are none."""
    if not memory.group.findings.wants(f.NOT_A_NUMBER) or not e.dtype.is_float:
        return
    if not _nan(value).any():
        return
    again = Unchecked(memory)
    for part, inner in _parts(e, frame, again):
        if not part.dtype.is_float:
            continue
        operands = [evaluate(c, inner, again) for c in children(part) if isinstance(c, Expr)]
        bad = _nan(evaluate(part, inner, again))
        for operand in operands:
            bad = bad & ~_nan(operand)
        first = first_bad(bad, inner)
        if first is not None:
            values = map(_shown, map(first.of, operands))
            text = f"{_NAMES[type(part)](part)} makes NaN of {' and '.join(values)}"
            memory.report(f.NOT_A_NUMBER, text, inner, first.lane)
            return


def check_product(
    memory: CheckedMemory, operands: list[Array], result: Array, frame: Frame
) -> None:
    """Report a matrix product with a NaN although no operand holds one."""
    if not memory.group.findings.wants(f.NOT_A_NUMBER) or result.dtype.kind in "iub":
        return
    if _nan(result).any() and not any(_nan(o).any() for o in operands):
        text = "a matrix product makes NaN: of infinity times zero, or of infinities of both signs"
        memory.report(f.NOT_A_NUMBER, text, frame, (0, 0))


def _parts(e: Expr, frame: Frame, memory: Unchecked) -> Iterator[Part]:
    """The operations of an expression, operands first, each with the lanes that need it."""
    if isinstance(e, Select):
        cond = evaluate(e.cond, frame, memory)
        if varies(cond):
            yield from _parts(e.a, frame.masked(cond), memory)
            yield from _parts(e.b, frame.masked(~cond), memory)
        else:
            yield from _parts(e.a if cond else e.b, frame, memory)
        return
    if type(e) in _NAMES:
        for child in children(e):
            if isinstance(child, Expr):
                yield from _parts(child, frame, memory)
        yield e, frame


def _nan(value: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return np.zeros(array.shape, np.bool_)
    return np.isnan(array)


_NAMES: dict[type[Expr], Callable[[Any], str]] = {
    Binary: lambda e: f"the operation {e.op}", Unary: lambda e: f"the operation {e.op}",
    Call: lambda e: e.fn, Cast: lambda e: "a conversion",
}  # fmt: skip
"""Operations, and what they are called in a message."""


def _shown(value: Any) -> str:
    return f"{float(value):g}"
