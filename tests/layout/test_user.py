"""Layouts that a program writes itself: what their methods give, element by element."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import tilelab.language as T
from tilelab.errors import TileValueError

SWIZZLED = T.Layout((4, 8), lambda i, j: i * 8 + (j ^ i))
SWAPPED = T.Layout((4, 8), lambda i, j: (j, i))
PAIRS = T.Fragment((2, 4), lambda i, j: (i * 2 + j // 2, j % 2))


def places(layout: Any) -> list[list[int]]:
    return [[int(x) for x in layout(*at)] for at in product(*map(range, layout.get_input_shape()))]


@pytest.mark.parametrize("layout", [SWIZZLED, SWAPPED])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_copies_along_an_axis(layout: T.Layout, dim: int) -> None:
    made = layout.repeat(dim, 3)
    extent = layout.shape[dim]
    assert made.get_output_shape() == [3, *layout.get_output_shape()]
    for at in product(*map(range, made.shape)):
        inner = list(at)
        inner[dim] %= extent
        assert made(*at) == [at[dim] // extent, *layout(*inner)]


def test_new_axes_come_first() -> None:
    made = SWIZZLED.expand([2])
    assert made.get_input_shape() == [2, 4, 8]
    assert made(1, 3, 0) == [1, *SWIZZLED(3, 0)]


def test_another_shape_keeps_places() -> None:
    made = SWIZZLED.reshape([2, 16])
    assert places(made) == places(SWIZZLED)
    assert made(1, 9) == SWIZZLED(3, 1)


@pytest.mark.parametrize("layout", [SWIZZLED, SWAPPED])
def test_the_inverse_leads_back(layout: T.Layout) -> None:
    back = layout.inverse()
    for at in product(*map(range, layout.shape)):
        assert tuple(back(*layout(*at))) == at
    assert back.inverse().is_equal(layout)


def test_linear_places() -> None:
    assert SWAPPED.get_linearized_forward_index((1, 2)) == 2 * 4 + 1
    assert repr(SWAPPED) == "Layout((4, 8) -> (8, 4))"


def slots(fragment: T.Fragment) -> list[tuple[int, int]]:
    grid = product(*map(range, fragment.get_input_shape()))
    return [
        (fragment.map_forward_thread(at)[0], fragment.map_forward_index(at)[0]) for at in grid
    ]  # fmt: skip


@pytest.mark.parametrize("on_thread", [False, True])
@pytest.mark.parametrize("last_axis_first", [False, True])
def test_a_fragment_several_times(on_thread: bool, last_axis_first: bool) -> None:
    made = PAIRS.repeat([2, 3], on_thread, last_axis_first)
    assert made.get_input_shape() == [4, 12]
    assert made.get_thread_size() == (24 if on_thread else 4)
    assert made.get_output_shape() == [2 if on_thread else 12]
    for i, j in product(range(4), range(12)):
        a, b = i // 2, j // 4
        number = a * 3 + b if last_axis_first else b * 2 + a
        thread, register = (i % 2) * 2 + j % 4 // 2, j % 2
        expected = (thread + 4 * number, register) if on_thread else (thread, register + 2 * number)
        assert slots(made)[i * 12 + j] == expected


def test_groups_of_threads_with_copies() -> None:
    made = PAIRS.replicate(2)
    assert made.get_thread_size() == 8
    assert made.map_forward_thread((1, 3, 1)) == [7]
    again = made.replicate(2)
    assert again.get_thread_size() == 16
    assert sorted(again.map_forward_thread((1, 3, c))[0] for c in range(4)) == [3, 7, 11, 15]
    assert made.is_equal(made.condense_rep_var())
    assert not made.is_equal(PAIRS)
    assert repr(made) == "Fragment((2, 4) -> 8 threads x 2)"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SWIZZLED.repeat(2, 2),
        lambda: SWIZZLED.repeat(0, 0),
        lambda: SWIZZLED.reshape([3, 16]),
        lambda: SWIZZLED.reshape([4, 8], 2, 1),
        lambda: T.Layout((4,), lambda i: i * 2).inverse(),
        lambda: PAIRS.repeat([2]),
        lambda: PAIRS.repeat([2, -1]),
        lambda: PAIRS.replicate(0),
    ],
)
def test_wrong_arguments(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TileValueError) as caught:
        wrong()
    assert caught.value.code == "TL1301"
