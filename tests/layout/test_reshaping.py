"""One fragment under several shapes: every shape names the same element of the same thread."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.layout import Fragment, reshaped, seen_as, tables


def elements(layout: Fragment) -> dict[tuple[int, int], int]:
    """(thread, register) -> row-major position, for every place that holds an element."""
    threads, registers = (np.asarray(t) for t in tables(layout))
    copies = threads.reshape(registers.size, -1)
    held: dict[tuple[int, int], int] = {}
    for n, register in enumerate(registers.ravel()):
        for thread in copies[n]:
            assert held.setdefault((int(thread), int(register)), n) == n
    return held


@pytest.mark.parametrize("threads", [1, 32, 96, 128, 256])
@pytest.mark.parametrize(
    "shapes",
    [
        ((8, 96), (8, 3, 32)), ((7, 33), (231,)), ((5, 7), (7, 5)), ((64, 3), (3, 64)),
        ((12, 20), (240,), (2, 6, 20)), ((48, 64), (64, 48)), ((1, 10), (10, 1)), ((6, 1), (6,)),
    ],
    ids=str,
)  # fmt: skip
def test_every_shape_sees_the_same_elements(
    shapes: tuple[tuple[int, ...], ...], threads: int
) -> None:
    first = seen_as(shapes, threads, vector=4)
    assert first.num_threads == threads and first.covers == first.shape
    for shape in shapes[1:]:
        seen = reshaped(first, shape)
        assert seen is not None, (first, shape)
        assert elements(seen) == elements(first)


def test_threads_share_what_can_be_shared() -> None:
    assert seen_as(((8, 96), (8, 3, 32)), 128, vector=4).num_registers == 6
    assert seen_as(((4, 64), (8, 32)), 64, vector=4).num_registers == 4
    assert seen_as(((5, 7), (7, 5)), 32).num_registers == 35


def test_digits_of_one_owner_are_one() -> None:
    layout = Fragment.blocked((64, 3), 1)
    seen = reshaped(layout, (3, 64))
    assert seen is not None and np.array_equal(
        tables(seen)[0], tables(Fragment.blocked((3, 64), 1))[0]
    )
