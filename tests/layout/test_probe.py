"""Maps given as functions: digits where there are some, a table otherwise."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelab.errors import TileValueError
from tilelab.layout import Fragment, TableFragment, atoms, equivalent, from_function, tables

from .strategies import PROFILE, Expr, elements, random_fragment


@PROFILE
@given(st.integers(0, 10**9))
def test_digits_are_found_again(seed: int) -> None:
    fragment = random_fragment(random.Random(seed), limit=300)
    copies = fragment.replication

    def slot(*args: int) -> tuple[int, int]:
        element, replica = (args[:-1], args[-1]) if copies > 1 else (args, 0)
        return fragment.thread_of(element, replica), fragment.register_of(element)

    found = from_function(fragment.shape, slot, fragment.num_threads, copies)
    assert equivalent(fragment, found)
    assert found.num_threads == fragment.num_threads
    if not fragment.is_padded:
        assert isinstance(found, Fragment) and found.normalized() == fragment.normalized()


def test_padded_tops_are_found() -> None:
    for shape in ((100,), (100, 100), (5, 176), (3, 5, 7)):
        wanted = Fragment.blocked(shape, 128, 4)
        if wanted.replication > 1:
            continue
        found = from_function(shape, lambda *e, w=wanted: (w.thread_of(e), w.register_of(e)), 128)
        assert isinstance(found, Fragment) and equivalent(found, wanted)


def test_written_as_a_user_would() -> None:
    found = from_function((16, 8), lambda i, j: (i % 8 * 4 + j // 2, j % 2 + i // 8 * 2))
    assert isinstance(found, Fragment) and equivalent(found, atoms.mma_c())
    single = from_function((16,), lambda i: (i, 0) if i < 8 else (i - 8, 1))
    assert isinstance(single, Fragment) and single.num_threads == 8
    copied = from_function((4,), lambda i, c: (i + 4 * c, 0), replicate=3)
    assert isinstance(copied, Fragment) and copied.replicas == ((3, 4),)
    assert from_function((), lambda: (0, 0)).num_threads == 1


def test_table() -> None:
    table = from_function((8, 8), lambda i, j: (i ^ j, j))
    assert isinstance(table, TableFragment)
    for i, j in elements(Fragment.blocked((8, 8), 1)):
        assert (table.thread_of((i, j)), table.register_of((i, j))) == (i ^ j, j)
        assert table.element_of(i ^ j, j) == (i, j) and table.in_bounds(i ^ j, j) is True
    assert not table.is_padded and table.contiguous() == 1
    with pytest.raises(TileValueError, match="expression"):
        table.thread_of((Expr("i"), 0))
    assert table == from_function((8, 8), lambda i, j: (i ^ j, j))
    assert len({table, from_function((8, 8), lambda i, j: (i ^ j, j))}) == 1
    assert "8x8 over 8 threads" in str(table) and "t1r1" in table.describe()
    threads, registers = tables(table)
    assert threads.shape == (8, 8, 1) and registers.shape == (8, 8)
    assert not equivalent(table, Fragment.blocked((8, 8), 8))


def test_table_with_holes_and_copies() -> None:
    table = from_function((4,), lambda i, c: (2 * i + 8 * c, 0), 32, replicate=2)
    assert isinstance(table, TableFragment) and table.is_padded and table.num_threads == 32
    assert table.element_of(10, 0) == (1,) and table.element_of(11, 0) == (4,)
    inside = table.in_bounds(np.arange(32), np.zeros(32, int))
    assert inside.sum() == 8
    pairs = from_function((8,), lambda i: (i // 2 * 2, i % 2))
    assert isinstance(pairs, TableFragment) and pairs.contiguous() == 2


def test_wrong_maps() -> None:
    for shape, fn, copies in (
        ((4,), lambda i: (0, i // 2), 1),  # two elements in a slot
        ((4,), lambda i: (i - 1, 0), 1),
        ((4,), lambda i: (i / 2, 0), 1),
        ((4,), lambda i: i, 1),
        ((4,), lambda i, c: (i + 4 * c, c), 2),
        ((4,), lambda i, c: (i, 0), 2),
        ((0,), lambda i: (i, 0), 1),
    ):
        with pytest.raises(TileValueError):
            from_function(shape, fn, None, copies)
    with pytest.raises(TileValueError):
        from_function((8,), lambda i: (i, 0), 4)
