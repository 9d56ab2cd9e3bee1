"""Bank conflicts: fixed points, and a slow reading of the model on random accesses."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelab.errors import TileValueError
from tilelab.layout import atoms, swizzled
from tilelab.layout.banks import (
    conflict_degree,
    ideal_wavefronts,
    lane_groups,
    phase_degrees,
    phases,
    wavefronts,
)

from .strategies import PROFILE

LANES = np.arange(32)


def by_hand(addresses: list[int], width: int, active: list[bool]) -> list[int]:
    """Wavefronts of each phase, with sets."""
    step = 32 if width <= 4 else 128 // width
    result = []
    for start in range(0, len(addresses), step):
        words = set()
        for a, on in list(zip(addresses, active, strict=True))[start : start + step]:
            words |= {(a + b) // 4 for b in range(width)} if on else set()
        banks = [w % 32 for w in words]
        result.append(max((banks.count(b) for b in banks), default=0))
    return result


@PROFILE
@given(st.integers(0, 10**9))
def test_random_accesses(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.choice((1, 2, 4, 8, 16))
    lanes = rng.choice((8, 16, 32, 32, 32))
    reach = rng.choice((8, 64, 1024))
    addresses = [[rng.randrange(reach) * width for _ in range(lanes)] for _ in range(3)]
    active = [[rng.random() < 0.8 for _ in range(lanes)] for _ in range(3)]
    expected = [by_hand(a, width, m) for a, m in zip(addresses, active, strict=True)]
    assert phase_degrees(addresses, width, active).tolist() == expected
    assert wavefronts(addresses, width, active).tolist() == [sum(e) for e in expected]
    ideal = [sum(d > 0 for d in e) for e in expected]
    assert ideal_wavefronts(addresses, width, active).tolist() == ideal
    assert conflict_degree(addresses, width, active).tolist() == [max(e) for e in expected]
    groups = lane_groups(addresses[0], width, active[0])
    assert len(groups) == sum(expected[0])
    pairs = [addresses[0][lane & ~1] for lane in range(lanes)]  # neighbours agree: a load's merge
    for load in (False, True):
        drawn = lane_groups(pairs, width, active[0], load=load)
        assert len(drawn) == wavefronts(pairs, width, active[0], load=load)
    served = sorted(lane for group in groups for lane in group)
    assert served == [lane for lane in range(lanes) if active[0][lane]]
    for group in groups:
        part = [addresses[0][lane] for lane in group]
        assert max(by_hand(part, width, [True] * len(part))) == 1


def test_columns_of_f32() -> None:
    assert conflict_degree(LANES * 32 * 4, 4) == 32 == wavefronts(LANES * 32 * 4, 4)
    assert conflict_degree(LANES * 33 * 4, 4) == 1
    assert conflict_degree(LANES * 0, 4) == 1  # broadcast
    assert conflict_degree(LANES * 2, 2) == 1  # two lanes a word
    assert (wavefronts(LANES * 16, 16), ideal_wavefronts(LANES * 16, 16)) == (4, 4)
    assert (wavefronts(LANES * 8, 8), ideal_wavefronts(LANES * 8, 8)) == (2, 2)
    assert wavefronts(LANES, 4, np.zeros(32, bool)) == 0 == conflict_degree(LANES, 4, LANES < 0)


@pytest.mark.parametrize(("width", "ways"), [(128, 8), (64, 4), (32, 2)])
def test_eight_rows_of_sixteen_bytes(width: int, ways: int) -> None:
    row = np.arange(8)
    layout = swizzled((8, width // 2), 16, width)
    for chunk in range(width // 16):
        assert conflict_degree(row * width + chunk * 16, 16) == ways
        assert conflict_degree(layout.byte_offset_of((row, np.full(8, chunk * 8))), 16) == 1


def test_many_accesses_at_once() -> None:
    # All ldmatrix.x4 fetches of A from a swizzled 64x64 tile: free of conflicts.
    layout = swizzled((64, 64), 16)
    row, chunk = atoms.ldmatrix_x4(LANES)
    slab, step = (part[..., None] for part in np.indices((4, 4)))
    addresses = layout.byte_offset_of((row + 16 * slab, (chunk + 2 * step) * 8))
    assert wavefronts(addresses, 16).shape == (4, 4)
    assert (conflict_degree(addresses, 16) == 1).all()


def test_phases() -> None:
    assert [len(phases(w)) for w in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]
    assert phases(16, 8) == [range(0, 8)]
    with pytest.raises(TileValueError):
        phases(3)
