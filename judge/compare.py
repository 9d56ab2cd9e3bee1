"""Is an output right? Tolerance from types and the length of sums; the first wrong element.

Runs in the runner, on torch tensors of either device. Hides the error bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
SUBNORMAL = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float32": 2.0**-149,
    "float64": 2.0**-1074,
}
"""Steps between the smallest numbers of a type: no rounding is finer than these."""
ACCUMULATOR = 2.0**-22
"""Relative error of one addition in float32; tensor cores truncate, so an ulp more."""


@dataclass(frozen=True)
class Difference:
    """How an output differs: `wrong` of `total` elements, `unwritten` still as they were; the
    first wrong index with both values and the error that is allowed there."""

    wrong: int
    total: int
    unwritten: int
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float
    last: tuple[int, ...]


def tolerance(reference: Any, magnitude: Any, dtype: str, terms: int) -> Any:
    """The error allowed for each element.

    One rounding to the output's type (subnormal numbers have fixed steps), and a float32 sum of
    `terms` terms in any order. Rounding errors are as good as independent, so the error of a sum
    grows as the square root of its length (Higham, Accuracy and Stability of Numerical
    Algorithms, 4.3); six standard deviations of the worst order, terms of one sign added one by
    one, are allowed.
    """
    rounding = (ULP[dtype] * reference.abs()).clamp(min=SUBNORMAL[dtype])
    return rounding + ACCUMULATOR * (4.0 + 0.5 * terms**0.5) * magnitude + 1e-30


def difference(got: Any, reference: Any, allowed: Any) -> Difference | None:
    """What is wrong with `got` (the output) against a float64 reference; None when nothing is."""
    import torch

    values = got.to(torch.float64)
    bad = ~((values - reference).abs() <= allowed)  # NaN is never right
    count = int(bad.sum())
    if not count:
        return None
    places = torch.nonzero(bad)
    first, last = (tuple(int(i) for i in places[p]) for p in (0, -1))
    return Difference(
        count, bad.numel(), int(torch.isnan(values).sum()), first, float(values[first]),
        float(reference[first]), float(allowed[first]), last,
    )  # fmt: skip
