"""Mixed-radix digits: the arithmetic below every fragment.

An axis index is written in mixed radix, ``index = d0 + e0*(d1 + e1*(d2 + ...))``; each digit is
given to the thread number or to the register number with a stride. All functions here use only
``+ * // %``, so that an index may be an int, a numpy array or an IR expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

from tilelab.errors import TileValueError

Owner: TypeAlias = Literal["thread", "register"]
Index: TypeAlias = Any
"""An int, a numpy array or an IR expression: whatever overloads ``+ * // %``."""

MALFORMED = "TL1301"


@dataclass(frozen=True)
class Digit:
    """One digit of an axis: it takes ``extent`` values and moves its owner by ``stride`` each.

    Raises TileValueError for an unknown owner or an extent or stride below one.
    """

    extent: int
    owner: Owner
    stride: int

    def __post_init__(self) -> None:
        if self.owner not in ("thread", "register"):
            raise malformed(f"a digit belongs to 'thread' or 'register', not to {self.owner!r}")
        if self.extent < 1 or self.stride < 1:
            raise malformed(f"{self} needs an extent and a stride of at least 1")

    def __str__(self) -> str:
        return f"{self.extent} to {self.owner} (stride {self.stride})"


Axes: TypeAlias = tuple[tuple[Digit, ...], ...]
"""Per axis, its digits from least to most significant."""
Replicas: TypeAlias = tuple[tuple[int, int], ...]
"""(extent, thread stride) pairs: the copies of each element."""


class Term(NamedTuple):
    """One summand of a thread or register number: ``(index[axis] // low % extent) * stride``.

    ``low`` is the product of the axis's lower extents; ``top`` says that this is the axis's most
    significant digit, whose ``% extent`` would change nothing.
    """

    axis: int
    low: int
    extent: int
    stride: int
    top: bool


def malformed(message: str, hint: str = "") -> TileValueError:
    """The error for a layout that contradicts itself (code TL1301)."""
    usual = "extents are positive ints, and the map gives every element one place"
    return TileValueError(message, code=MALFORMED, hint=hint or usual)


def axis_cover(digits: Iterable[Digit]) -> int:
    """How many index values the digits of one axis can write down."""
    return prod(d.extent for d in digits)


def owned(axes: Axes, owner: Owner) -> list[tuple[int, Digit]]:
    """All (axis, digit) pairs of one owner, by rising stride."""
    pairs = [(k, d) for k, digits in enumerate(axes) for d in digits if d.owner == owner]
    return sorted(pairs, key=lambda pair: pair[1].stride)


def count(axes: Axes, owner: Owner) -> int:
    """How many values the digits of one owner take together (replicas not counted)."""
    return prod(d.extent for _, d in owned(axes, owner))


def check_dense(axes: Axes, replicas: Replicas) -> None:
    """Raise TileValueError unless threads (with replicas) and registers number densely.

    Dense: sorted by stride, every stride equals the product of the extents below it, so each
    number from 0 up to the product is used by exactly one combination of digit values.
    """
    for owner in ("thread", "register"):
        parts = [(d.stride, d.extent, f"axis {k}, digit {d}") for k, d in owned(axes, owner)]
        if owner == "thread":
            parts += [(s, e, f"replica {e} (thread stride {s})") for e, s in replicas]
        expected = 1
        for stride, extent, name in sorted(parts):
            if stride != expected:
                fault = "overlaps them" if stride < expected else "leaves a gap above them"
                raise malformed(
                    f"{name}: the lower {owner} digits number {expected} values, "
                    f"so stride {stride} {fault}",
                    hint=f"the stride must be {expected}",
                )
            expected *= extent


def merge_axis(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """The same axis with as few digits as possible.

    Neighbours of one owner whose strides continue are one digit.
    """
    merged: list[Digit] = []
    for digit in digits:
        last = merged[-1] if merged else None
        if last and last.owner == digit.owner and digit.stride == last.stride * last.extent:
            merged[-1] = Digit(last.extent * digit.extent, last.owner, last.stride)
        else:
            merged.append(digit)
    return tuple(merged)


def merge_replicas(replicas: Replicas) -> Replicas:
    """Replicas by rising stride, runs whose strides continue made one."""
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted(replicas, key=lambda pair: pair[1]):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def terms_of(axes: Axes, owner: Owner) -> tuple[Term, ...]:
    """The summands of the owner's number, read from the digits."""
    found: list[Term] = []
    for k, digits in enumerate(axes):
        low = 1
        for position, digit in enumerate(digits):
            if digit.owner == owner:
                top = position == len(digits) - 1
                found.append(Term(k, low, digit.extent, digit.stride, top))
            low *= digit.extent
    return tuple(found)


def take_digit(value: Index, low: int, extent: int, top: bool) -> Index:
    """``value // low % extent``, without the operations that change nothing."""
    if low != 1:
        value = value // low
    return value if top else value % extent


def mixed(number: Index, digits: Iterable[tuple[int, int]]) -> Index:
    """What a number stands for whose digits have these (extent, stride), the lowest first."""
    total: Index = 0
    for extent, stride in digits:
        total = total + number % extent * stride
        number = number // extent
    return total


def unravel(flat: Index, shape: Sequence[Index]) -> tuple[Index, ...]:
    """Row-major indices of a flat element number; unlike numpy's, for rank 0 too."""
    indices: list[Index] = []
    for extent in reversed(shape):
        indices.insert(0, flat % extent)
        flat = flat // extent
    return tuple(indices)


def weighted_sum(parts: Iterable[tuple[Index, int]]) -> Index:
    """The sum of value*weight; the int 0 if there are no parts."""
    total: Index = None
    for value, weight in parts:
        scaled = value if weight == 1 else value * weight
        total = scaled if total is None else total + scaled
    return 0 if total is None else total
