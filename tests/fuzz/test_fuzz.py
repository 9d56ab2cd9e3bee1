"""Drawn programs are right on both feature sets, and their CUDA text compiles.

`make check` draws more. A failure shows the seed and the shrunken program as runnable text;
`python -m tests.fuzz FAMILY SEED 1` draws it again.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz import host
from tests.fuzz.choices import Choices, shrink
from tests.fuzz.run import FAMILIES, TARGETS, examine, report, smallest
from tests.thread.nvrtc import available

FULL = bool(os.environ.get("TILELAB_FULL"))
DRAWS = 150 if FULL else 8


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_drawn_programs_are_right(family: str, target: str) -> None:
    for seed in range(DRAWS):
        nvrtc = available and (FULL or seed == 0)
        made, verdict = examine(family, seed, target, nvrtc)
        if not verdict.good:
            small = smallest(family, made, target, verdict, nvrtc)
            pytest.fail(report(family, small, target, seed), pytrace=False)


@pytest.mark.skipif(not host.available, reason="needs g++ and a CUDA toolkit in CUDA_HOME")
@pytest.mark.parametrize("family", ["threads", "flow"])
def test_the_text_itself_is_right(family: str) -> None:
    """The CUDA text without assembly, run on this machine's CPU."""
    for seed in range(2):
        _, verdict = examine(family, seed, "sm_80", on_cpu=True)
        assert verdict.good, f"{family}, seed {seed}: {verdict}"


def test_a_draw_can_be_replayed() -> None:
    for family, draw in FAMILIES.items():
        first = Choices(1)
        text = draw(first).text()
        assert draw(Choices(replay=first.made)).text() == text, family


def test_shrinking_keeps_what_fails() -> None:
    small = shrink([7, 3, 90, 5, 4], lambda made: any(n >= 20 for n in made))
    assert small == [20] or small == [22]
