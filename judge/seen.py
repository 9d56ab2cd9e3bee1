"""What is known of a wrong output: its values, the right ones, who wrote what.

Read by the guesses at causes. Hides which of many wrong elements are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from judge.compare import ULP, Difference
from judge.kernels import KernelTask, Sizes

_SAMPLES = 4
Index = tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """What is known of a wrong output.

    inputs, got, reference, allowed: float64 tensors. blocks: of the launch, 0 where not known.
    threads: of a block. block_of: which block wrote an element, None for none. halves: names of
    the kernel's buffers of 16-bit floats. stores: whether a line of the text stores to the output.
    """

    task: KernelTask
    sizes: Sizes
    difference: Difference
    inputs: list[Any]
    got: Any
    reference: Any
    allowed: Any
    blocks: int = 0
    threads: int = 0
    block_of: Callable[[Index], int | None] = lambda index: None
    halves: tuple[str, ...] = ()
    stores: bool = False


def is_missing(d: Difference) -> bool:
    """Whether all that is wrong is that nothing was written."""
    return d.unwritten == d.wrong


def some_wrong(seen: Seen) -> list[Index]:
    """A few wrong elements, far apart."""
    bad = (~((seen.got - seen.reference).abs() <= seen.allowed)).nonzero().tolist()
    steps = max(len(bad) - 1, 1) / max(_SAMPLES - 1, 1)
    return [tuple(bad[round(i * steps)]) for i in range(min(_SAMPLES, len(bad)))]


def slack(seen: Seen, index: Index) -> float:
    """How far from an element's value another right one may lie: both are rounded."""
    return float(seen.allowed[index] + ULP[seen.task.output.dtype] * seen.got[index].abs())


def positions(mask: Any) -> set[int]:
    """The indices at which a mask of one axis is true."""
    return set(mask.nonzero().flatten().tolist())
