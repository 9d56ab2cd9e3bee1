"""Stamps of a schedule: what they tell equals what the simulator's own events tell, the kernel
computes the same, and a build without the option is untouched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import tilelab
from tests.attention import flash_attention
from tests.kernels import AMPERE, HOPPER, gemm
from tilelab.errors import TileError
from tilelab.ir import walk
from tilelab.kernel import JITKernel
from tilelab.runtime import nvrtc, stamps
from tilelab.sim import Event
from tilelab.thread.intrinsics.stamp import BITS, LIMIT
from tilelab.thread.nodes import Invoke
from tilelab.views import schedule_views

torch = pytest.importorskip("torch")
PROGRAMS: dict[str, Any] = {
    "gemm": lambda: gemm(256, 256, 512),
    "two consumers": lambda: gemm(256, 256, 512, bn=256, threads=256, stages=2),
    "attention": lambda: flash_attention((1, 256, 2, 64)),
}
TARGETS = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


def compiled(program: Any, target: Any, block: int | None = None) -> JITKernel:
    configs = {} if block is None else {"tl.stamp_schedule": block}
    return tilelab.compile(program, target=target, out_idx=-1, pass_configs=configs)


def of_first_threads(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Without those of a role's later warpgroups: its first thread stamps for all."""
    return tuple(e for e in events if e.role.partition(" ")[2] in ("", "0"))


def raw(kernel: JITKernel, events: tuple[Event, ...]) -> list[list[int]]:
    """The rows that a GPU would have written, had it taken the simulator's times: an encoding of
    the events that is independent of the reader under test."""
    sites = kernel.trace.stamps
    rows: dict[int, list[tuple[float, int, int]]] = {}
    for event in events:
        told = (event.role.removesuffix(" 0"), event.kind, event.name.partition("[")[0], event.loc)
        places = {  # of two copies of a loop, either stands for both
            s.edge: (number, s) for number, s in reversed([*enumerate(sites)])
            if told == (s.role, s.kind, s.name, s.loc)
        }  # fmt: skip
        for edge, (number, site) in places.items():
            clock = event.start if edge == "start" else event.end
            rows.setdefault(site.row, []).append((clock, number, event.stage or 0))
    made = [
        [(round(c * 100) + 1) << 2 * BITS | n << BITS | w
         for c, n, w in sorted(rows.get(row, []), key=lambda r: r[0])]
        for row in range(max(s.row for s in sites) + 1)
    ]  # fmt: skip
    # The thread of row 0 stamps a role's row too, and counts on there.
    before = [[], *[[0] * len(made[0])] * (len(made) - 1)]
    return [
        [*b, *row, *[0] * (LIMIT - len(b) - len(row))] for b, row in zip(before, made, strict=True)
    ]


@TARGETS
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_findings_are_those_of_the_plain_build(name: str, target: Any) -> None:
    plain, stamped = (compiled(PROGRAMS[name](), target, b) for b in (None, 1))
    torch.manual_seed(0)
    inputs = plain.get_profiler().make_inputs()
    one, two = plain.simulate(*inputs), stamped.simulate(*inputs)
    assert not two.findings and torch.equal(one.outputs[0], two.outputs[0])
    waits, again = ([(e.name, e.role, e.stage) for e in r.events if e.kind == "wait"]
                    for r in (one, two))  # fmt: skip
    assert waits == again


@TARGETS
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_wait_is_stamped_on_both_sides_and_it_compiles(name: str, target: Any) -> None:
    kernel = compiled(PROGRAMS[name](), target, 0)
    calls = Counter(n.intrinsic.name for n in walk(kernel.program) if isinstance(n, Invoke))
    sites = kernel.trace.stamps
    assert calls["stamp"] == len(sites)
    waits = sum(s.kind == "wait" and s.edge == "start" for s in sites)
    assert waits == sum(
        n for key, n in calls.items()
        if key in ("mbarrier_wait", "syncthreads") or key.startswith("cp_async_wait")
    )  # fmt: skip
    assert waits == sum(s.kind == "wait" and s.edge == "end" for s in sites)
    assert nvrtc.compile_cubin(kernel.get_kernel_source(), kernel.target.arch).image


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_schedule_read_from_stamps_is_the_one_of_the_events(name: str) -> None:
    kernel = compiled(PROGRAMS[name](), HOPPER, 0)
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    events = of_first_threads(report.events)
    found = stamps.events_of(raw(kernel, events), kernel.trace.stamps)
    known: dict[str, Any] = {"block": 0, "clock_hz": report.clock_hz}
    plans = kernel.trace.pipelines
    want = schedule_views(plans, events, source="modelled", **known)
    got = schedule_views(plans, found, source="measured", **known)
    assert [v.tiles for v in got] == [v.tiles for v in want]
    for mine, theirs in zip(got, want, strict=True):
        assert mine.total == theirs.total and mine.slots == theirs.slots
        for a, b in zip(mine.uses, theirs.uses, strict=True):
            assert (a.k, a.slot, a.arrived) == (b.k, b.slot, None)
            assert a.consume / 100 == pytest.approx(b.consume, abs=0.02)
            assert a.issue / 100 == pytest.approx(b.issue, abs=0.02)
            assert a.waited / 100 == pytest.approx(b.waited, abs=0.02)


def test_a_full_row_ends_the_schedule_for_all() -> None:
    kernel = compiled(gemm(256, 256, 512), HOPPER, 0)
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    rows = raw(kernel, report.events)
    written = [[v for v in row if v] for row in rows]
    last = written[1][-1]
    rows[1] = [v or last for v in rows[1]]
    found = stamps.events_of(rows, kernel.trace.stamps)
    first = min(row[0] >> 2 * BITS for row in written)
    assert max(e.end for e in found) <= (last >> 2 * BITS) - first


@pytest.mark.parametrize("block", [-1, "0", True, 1.5])
def test_a_wrong_block_is_named(block: Any) -> None:
    with pytest.raises(TileError, match="is no number of a block"):
        compiled(gemm(256, 256, 512), HOPPER, block)


def test_without_a_gpu_it_says_what_to_do_instead() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    from tilelab.widgets.times import measured

    with pytest.raises(TileError, match="modelled times"):
        measured(compiled(gemm(256, 256, 512), HOPPER))
