"""The planned schedule: what it may not do, and how it reads."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.views import from_json, pipeline_view
from tilelab.views.pipeline import schedule

from .samples import plan


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 6))
def test_schedule_keeps_its_rules(trips: int, slots: int, ahead: int) -> None:
    prefetch = min(ahead, slots)
    found = schedule(trips, slots, prefetch)
    assert [i.k for i in found] == list(range(trips))
    for before, after in itertools.pairwise(found):
        assert after.issue > before.issue and after.consume >= before.done
    for it in found:
        assert it.slot == it.k % slots
        assert it.issue < it.consume < it.done
        assert it.consume >= prefetch
        if it.k >= slots:
            assert it.issue >= found[it.k - slots].done  # the slot is free
    before_first = [i for i in found if i.issue < found[0].consume]
    assert not found or len(before_first) >= min(prefetch, trips)


def test_three_stages_of_the_gemm() -> None:
    view = pipeline_view(plan())
    text = view.to_text()
    assert "slot 0  L0  ·   C0  L3" in text
    assert view.iterations[3].slot == 0 and view.iterations[3].issue == view.iterations[0].done
    assert view.steps == 18
    assert view.bytes_in_flight() == 65_536
    for part in ("TMA", "wgmma", "240", "128-255", "32,768", "arrived by"):
        assert part in text


@pytest.mark.parametrize(
    ("mechanism", "trips", "stages", "prefetch"),
    [("tma", 16, 3, 2), ("cp.async", 4, 4, 3), ("sync", 4, 1, 0), ("tma", None, 3, 2),
     ("tma", 1000, 4, 3), ("tma", 1, 2, 1), ("cp.async", 0, 2, 1)],
)  # fmt: skip
def test_every_plan_draws(mechanism: str, trips: int | None, stages: int, prefetch: int) -> None:
    view = pipeline_view(plan(mechanism, trips, stages, prefetch))
    picture = view.to_svg()
    root = ElementTree.fromstring(picture)
    assert len(picture) < 60_000
    assert root.get("role") == "img"
    assert from_json(view.to_json()) == view
    assert view.to_text()
    assert picture == pipeline_view(plan(mechanism, trips, stages, prefetch)).to_svg()


def test_a_long_loop_shows_its_beginning_and_end() -> None:
    view = pipeline_view(plan(trips=1000))
    shown = [i.k for i in view.iterations]
    assert shown[0] == 0 and shown[-1] == 999 and len(shown) < 30
    assert list(view.shown_steps()).count(None) == 1


def test_an_unknown_end_is_not_drawn() -> None:
    view = pipeline_view(plan(trips=None))
    assert list(view.shown_steps())[-1] is None
    assert "drain" not in view.to_svg()
    assert "run-time number" in view.to_text()
