"""Times beside a plan: uses of slots are the events of the run, in order, and no slot is loaded
before it is free."""

from __future__ import annotations

from typing import Any

import pytest

from tests import schedules
from tests.attention import flash_attention
from tests.kernels import AMPERE, HOPPER, gemm
from tilelab.kernel import JITKernel
from tilelab.sim import Event
from tilelab.views import ScheduleView, from_json, schedule_views, show

torch = pytest.importorskip("torch")


def compiled(program: Any, target: Any) -> JITKernel:
    return JITKernel(program.function, out_idx=-1, target=target)


def timed(kernel: JITKernel, block: int = 0) -> tuple[list[ScheduleView], tuple[Event, ...]]:
    inputs = kernel.get_profiler().make_inputs()
    report = kernel.simulate(*inputs, timeline_block=block)
    views = schedule_views(
        kernel.trace.pipelines, report.events, source="modelled", block=block,
        clock_hz=report.clock_hz,
    )  # fmt: skip
    return views, report.events


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_uses_of_a_gemm(target: Any, stages: int) -> None:
    kernel = compiled(gemm(256, 256, 512, bk=32, stages=stages), target)
    (view,), events = timed(kernel, block=3)
    assert view.tiles == ("A_shared", "B_shared") and view.slots == stages and view.block == 3
    assert [u.k for u in view.uses] == list(range(16)) and view.total == 16
    schedules.check(view)
    assert all(use.arrived is not None for use in view.uses)
    for k in range(stages, 16):
        assert view.uses[k].issue >= view.uses[k - stages].done or target is AMPERE
    if target is HOPPER:
        waits = [e for e in events if e.kind == "wait" and e.role == "consumer"
                 and e.name in {f"mbarrier[{s}]" for s in range(stages)}]  # fmt: skip
        assert view.waited == pytest.approx(sum(e.end - e.start for e in waits))


def test_attention_has_a_ring_for_each_operand_on_one_clock() -> None:
    views, _ = timed(compiled(flash_attention((1, 512, 2, 64)), HOPPER))
    assert [v.tiles for v in views] == [("K_shared",), ("V_shared",), ("Q_shared",)]
    keys, values, queries = views
    assert len(queries.uses) == 1 and len(keys.uses) == len(values.uses) == 8
    schedules.check(keys)
    schedules.check(values)  # its consumer waits for a use twice, to hold an order
    for k, v in zip(keys.uses, values.uses, strict=True):
        assert k.consume < v.consume  # each iteration multiplies by K, then by V


def test_a_long_loop_shows_its_first_uses_and_sums_all() -> None:
    (view,), _ = timed(compiled(gemm(128, 128, 2048), HOPPER))
    assert view.total == 32 and len(view.uses) == 24
    assert "the first 24 of 32 uses of 3 slots" in view.caption()
    assert view.cycles > view.uses[-1].done


def test_the_view_is_data_text_and_a_small_picture() -> None:
    (view,) = show(compiled(gemm(256, 256, 512), HOPPER), "schedule").views
    assert from_json(view.to_json()) == view
    assert view.to_svg() == from_json(view.to_json()).to_svg()
    assert len(view.to_svg().encode()) < 300_000
    text = view.to_text()
    assert "modelled" in text and "used from" in text
    for word in ("in flight", "lies ready", "in use", "waits"):
        assert word in view.to_svg()


def test_nothing_runs_ahead_nothing_is_shown() -> None:
    assert show(compiled(gemm(128, 128, 128, stages=0), HOPPER), "schedule").views == ()
