"""Accesses at constant steps are moved as views: the same elements as index by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelab.sim import regular as module
from tilelab.sim.regular import regular

ROWS, LANES = np.arange(4)[:, None], np.arange(128)[None]
TABLE = np.arange(64 * 256).reshape(64, 256)
UNEVEN = np.where(np.arange(128) < 100, np.arange(128), 127)[None]
SPLIT = (ROWS * 16 + LANES // 8, LANES % 8 * 4 + np.arange(4)[:, None, None])

CASES: dict[str, tuple[tuple[Any, ...], bool | None]] = {
    # indices -> whether all elements differ; None: not regular
    "rows": ((ROWS * 3, LANES), True),
    "two digits of a lane": (SPLIT, True),
    "backwards": ((63 - ROWS, 255 - LANES), True),
    "strided": ((ROWS, LANES * 2 + 1), True),
    "a flat sum": ((ROWS * 0 + LANES * 0 + 5, ROWS * 32 + LANES), False),
    "one row for all": ((np.zeros((1, 1), int), LANES + ROWS * 0), False),
    "scattered": ((ROWS * ROWS, LANES), None),
    "no sum": ((ROWS, (LANES * (ROWS + 1)) % 256), None),
    "uneven": ((ROWS, UNEVEN), None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_view_holds_the_elements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 1)
    indices, distinct = CASES[name]
    shape = np.broadcast_shapes((4, 128), *(i.shape for i in indices))
    found = regular(TABLE, indices, shape)
    if distinct is None:
        assert found is None
        return
    assert found is not None and found.distinct == distinct
    full = tuple(np.broadcast_to(i, shape) for i in indices)
    assert np.array_equal(found.load(TABLE), TABLE[full])
    if distinct:
        own, other, values = TABLE.copy(), TABLE.copy(), -np.arange(128)[None]
        found.store(own, values)
        other[full] = np.broadcast_to(values, shape)
        assert np.array_equal(own, other)


def test_random_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of digits and of irregular parts: whatever is called regular is right."""
    monkeypatch.setattr(module, "FEWEST", 1)
    rng, seen = np.random.default_rng(0), 0
    for _ in range(300):
        shape = tuple(rng.integers(1, 7, 3))
        table = rng.integers(0, 1000, tuple(rng.integers(8, 40, 2)))
        indices: list[Any] = []
        for extent in table.shape:
            kind, index = rng.integers(4), np.zeros(shape, int)
            for axis, n in enumerate(shape):
                line = [np.arange(n), np.arange(n) // 2, np.arange(n) % 2, rng.integers(0, 3, n)]
                part = line[kind] * rng.integers(0, 4)
                index = index + part.reshape([-1 if a == axis else 1 for a in range(3)])
            indices.append(index % extent)
        found = regular(table, indices, shape)
        if found is None:
            continue
        seen += 1
        assert np.array_equal(found.load(table), table[tuple(indices)])
        places = np.ravel_multi_index(tuple(indices), table.shape).reshape(-1)
        assert not found.distinct or len(np.unique(places)) == len(places)
    assert seen > 50


def test_arrays_with_gaps_and_small_accesses_are_left_alone() -> None:
    index = (np.arange(64)[:, None], np.arange(128)[None])
    assert regular(TABLE, index, (64, 128)) is not None
    assert regular(TABLE[:, ::2], index, (64, 128)) is None
    assert regular(TABLE, (ROWS[:1], LANES), (1, 128)) is None
