"""Random fragments, and a slow second reading of what a fragment means."""

from __future__ import annotations

import os
import random
from itertools import product

from hypothesis import settings

from tilelab.layout import Digit, Fragment, SharedLayout

PROFILE = settings(max_examples=50, deadline=None, derandomize=True)
BRUTE_CASES = 500 if os.environ.get("TILELAB_FULL") else 60
EXTENTS = (1, 2, 2, 2, 3, 4, 4, 5, 7, 8, 11)


def random_fragment(rng: random.Random, limit: int = 3000) -> Fragment:
    """A fragment of rank 1-4 with digits dealt at random; sometimes replicated and padded."""
    rank = rng.randint(1, 4)
    cells: list[list[tuple[int, str]]] = [[] for _ in range(rank)]
    size = 1
    for _ in range(rng.randint(0, 7)):
        extent = rng.choice(EXTENTS)
        if size * extent > limit:
            continue
        size *= extent
        cells[rng.randrange(rank)].append((extent, rng.choice(("thread", "register"))))
    copies = [rng.choice((2, 3, 4)) for _ in range(rng.choice((0, 0, 1, 2)))]
    slots = [(k, i) for k, axis in enumerate(cells) for i in range(len(axis))]
    slots += [(-1, i) for i in range(len(copies))]
    rng.shuffle(slots)
    stride = {"thread": 1, "register": 1}
    digits: dict[tuple[int, int], Digit] = {}
    replicas: dict[int, tuple[int, int]] = {}
    for k, i in slots:
        extent, owner = cells[k][i] if k >= 0 else (copies[i], "thread")
        if k >= 0:
            digits[k, i] = Digit(extent, owner, stride[owner])  # type: ignore[arg-type]
        else:
            replicas[i] = (extent, stride[owner])
        stride[owner] *= extent
    axes = tuple(tuple(digits[k, i] for i in range(len(cells[k]))) for k in range(rank))
    whole = Fragment(
        tuple(_product(d.extent for d in axis) for axis in axes),
        axes,
        tuple(replicas[i] for i in range(len(copies))),
    )
    if rng.random() < 0.5:
        return whole
    return whole.with_shape(tuple(rng.randint(1, cover) for cover in whole.covers))


def _product(values: object) -> int:
    result = 1
    for value in values:  # type: ignore[attr-defined]
        result *= value
    return result


def slot_by_hand(fragment: Fragment, element: tuple[int, ...], replica: int) -> tuple[int, int]:
    """(thread, register) of an element, digit by digit with divmod."""
    number = {"thread": 0, "register": 0}
    for index, digits in zip(element, fragment.axes, strict=True):
        rest = index
        for digit in digits:
            rest, value = divmod(rest, digit.extent)
            number[digit.owner] += value * digit.stride
        assert rest == 0
    for extent, stride in fragment.replicas:
        replica, value = divmod(replica, extent)
        number["thread"] += value * stride
    return number["thread"], number["register"]


def elements(fragment: Fragment | SharedLayout) -> list[tuple[int, ...]]:
    """All indices inside the shape."""
    return list(product(*(range(extent) for extent in fragment.shape)))


class Expr:
    """A stand-in for an IR expression: it records its text and prints as Python."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _make(self, op: str, other: object) -> Expr:
        return Expr(f"({self.text} {op} {other})")

    def __add__(self, other: object) -> Expr:
        return self._make("+", other)

    def __mul__(self, other: object) -> Expr:
        return self._make("*", other)

    def __floordiv__(self, other: object) -> Expr:
        return self._make("//", other)

    def __mod__(self, other: object) -> Expr:
        return self._make("%", other)

    def __xor__(self, other: object) -> Expr:
        return self._make("^", other)

    def __and__(self, other: object) -> Expr:
        return self._make("&", other)

    def __lt__(self, other: object) -> Expr:
        return self._make("<", other)

    def __str__(self) -> str:
        return self.text

    def at(self, **names: int) -> int:
        """Its value for these names."""
        return eval(self.text, {}, names)
