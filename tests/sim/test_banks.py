"""Bank conflicts: the simulator against a GPU's counters, and the model against brute force."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.sim.bank_patterns import PATTERNS, program
from tests.sim.programs import Block, lanes, load, ref
from tilelab.ir import Var
from tilelab.layout import swizzled
from tilelab.layout.banks import conflict_degree, ideal_wavefronts, wavefronts
from tilelab.sim import simulate

RECORD = json.loads((Path(__file__).parent.parent / "data" / "banks_h200.json").read_text("utf-8"))
CASES = 1000


@pytest.mark.parametrize("name", PATTERNS)
def test_wavefronts_equal_the_counters_of_a_gpu(name: str) -> None:
    made, seen = program(name), RECORD["patterns"][name]
    arrays = {p.name: np.ones(p.buffer.static_shape, p.buffer.dtype.numpy) for p in made.params}
    report = simulate(made, arrays)
    assert report.ok, str(report)
    total = report.counters[0].total()
    for what in ("read", "written"):
        measured = [access for access in total.accesses if access.space == "shared"]
        measured = [access for access in measured if access.what == what]
        assert sum(a.units for a in measured) == seen[f"wavefronts_{what}"]
        conflicts = sum(a.units - a.ideal for a in measured)
        assert conflicts == seen[f"conflicts_{what}"]


def test_the_record_is_of_a_gpu_and_says_how_it_was_made() -> None:
    assert "H200" in RECORD["device"] and "record_banks.py" in RECORD["command"]
    assert len(RECORD["patterns"]) >= 12 and set(RECORD["patterns"]) == set(PATTERNS)


def by_hand(addresses: list[int], width: int, active: list[bool], load_: bool) -> list[int]:
    """Wavefronts of each phase that has any, from sets of words, one lane after another."""
    step = 32 if width <= 4 else 128 // width
    parts = [list(range(first, first + step)) for first in range(0, 32, step)]

    def agree(bit: int) -> bool:
        return all(
            not active[i] or not active[i ^ bit] or addresses[i] == addresses[i ^ bit]
            for i in range(32)
        )

    if load_ and width > 4 and (agree(1) or agree(2)):
        parts = [parts[k] + parts[k + 1] for k in range(0, len(parts), 2)]
    found: list[int] = []
    for part in parts:
        words = {(addresses[i] + b) // 4 for i in part if active[i] for b in range(width)}
        found.append(max((sum(w % 32 == bank for w in words) for bank in range(32)), default=0))
    return [n for n in found if n]


def random_case(rng: random.Random) -> tuple[list[int], int, list[bool]]:
    """Addresses of 32 lanes in a random layout: (addresses, width, active lanes)."""
    bits = rng.choice((8, 16, 32))
    size, width = bits // 8, rng.choice((1, 2, 4, 8, 16))
    width = max(width, size)
    rows, swizzle = 64, rng.choice((0, 32, 64, 128))
    per_row = (swizzle or rng.choice((32, 64, 128))) // size * rng.choice((1, 2))
    pitch = per_row * size + (rng.choice((0, 16, 32)) if not swizzle else 0)
    row_step, column_step, group = rng.choice((0, 1, 1, 2, 8)), rng.choice((0, 0, 1, 2)), 2 ** (
        rng.randrange(6)
    )  # fmt: skip
    layout = swizzled((rows, per_row), bits, swizzle) if swizzle else None
    addresses: list[int] = []
    for lane in range(32):
        part = rng.randrange(32) if rng.random() < 0.05 else lane // group
        row, unit = part * row_step % rows, (lane % group + part * column_step)
        column = unit * width // size % per_row
        if layout is None:
            addresses.append(row * pitch + column * size)
        else:
            addresses.append(int(layout.byte_offset_of((row, column))))
    active = [rng.random() < 0.8 for _ in range(32)] if rng.random() < 0.4 else [True] * 32
    if rng.random() < 0.2:
        active = [lane % 2 == 0 for lane in range(32)]
    return addresses, width, active


def test_random_cases_equal_brute_force() -> None:
    rng = random.Random(4)
    merged = 0
    for _ in range(CASES):
        addresses, width, active = random_case(rng)
        addresses = [a // width * width for a in addresses]
        for is_load in (False, True):
            want = by_hand(addresses, width, active, is_load)
            case = (addresses, width, active)
            assert wavefronts(*case, load=is_load) == sum(want), case
            assert ideal_wavefronts(*case, load=is_load) == len(want), case
            assert conflict_degree(*case, load=is_load) == max(want, default=0), case
        merged += by_hand(*case, True) != by_hand(*case, False)
    assert merged > CASES // 50  # the rule of merged phases is met often enough to be tested


@pytest.mark.expects_findings
@pytest.mark.parametrize("seed", range(30))
def test_the_simulator_counts_what_brute_force_does(seed: int) -> None:
    """Random units of a vector read, through thread IR."""
    rng = random.Random(seed)
    count, step, group = (
        rng.choice((1, 2, 4)),
        rng.choice((0, 1, 2, 3, 4, 8)),
        rng.choice((1, 2, 4)),
    )
    b = Block(64)
    src, s, v = b.tensor("src", (4096,)), b.shared("S", (4096,), "float32"), b.local("v", count)
    i = Var("i", lo=0, hi=63)
    b.add(lanes(i, 64, b.store(s, i * 64 + b.tx, load(src, i * 64 + b.tx))))
    from_lane = b.tx // group * step % (4096 // count)
    b.add(b.copy(ref(v, 0, count=count), ref(s, from_lane * count, count=count), count))
    report = simulate(b.program(), {"src": np.zeros(4096, np.float32)}, checks=False)
    (access,) = [a for a in report.total().accesses if a.what == "read" and a.space == "shared"]
    want = 0
    for warp in range(2):
        addresses = [(32 * warp + k) // group * step * count * 4 for k in range(32)]
        want += sum(by_hand(addresses, 4 * count, [True] * 32, True))
    assert access.units == want and not access.estimated
