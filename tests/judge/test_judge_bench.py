"""What the benchmark does against slow moments of chip and host: with events and measurements
that stand in for a chip's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from judge import bench
from judge.exercise import load_exercise

TASK = load_exercise("03").kernel_task


@pytest.fixture
def chip(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call: whether the chip came by its start before the host had queued it."""
    late: list[bool] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None: ...

        def query(self) -> bool:
            return late.pop(0)

        def elapsed_time(self, other: Any) -> float:
            return 0.05

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return late


class _Flush:
    times = 0

    def zero_(self) -> None:
        self.times += 1


def test_a_late_host_is_not_counted(chip: list[bool]) -> None:
    """The round is asked for again, behind twice as many flushes; not for ever."""
    flush = _Flush()
    timer = bench.Timer(flush)
    for late, flushes in ((False, 1), (True, 1), (True, 2), (False, 4)):
        chip.append(late)
        before = flush.times
        assert timer.microseconds(lambda: None, []) == pytest.approx(50)
        assert flush.times - before == flushes
        assert timer.host_was_late() == late
        assert not timer.host_was_late()
    for _ in range(9):
        chip.append(True)
        timer.microseconds(lambda: None, [])
        timer.host_was_late()
    assert timer.flushes == bench.MOST_FLUSHES and not timer.host_was_late()


@pytest.mark.parametrize(
    ("ratios", "best", "asked"),
    [
        ([0.97], 0.97, 1),
        ([0.70, 0.97], 0.97, 2),
        ([0.70, 0.75, 0.72, 9.9], 0.75, bench.TRIES),
        ([0.83, 0.84, 0.82], 0.84, bench.TRIES),
    ],
)
def test_the_best_of_three_counts(
    ratios: list[float], best: float, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel below its target is measured again with other values, one that reaches it is not."""
    left: Iterator[float] = iter(ratios)
    seeds: list[int] = []

    def measured(task: Any, kernel: Any, seed: int) -> dict[str, Any]:
        seeds.append(seed)
        return {"ratio": next(left)}

    monkeypatch.setattr(bench, "_measured", measured)
    assert bench.measure(TASK, None, 7)["ratio"] == best
    assert len(set(seeds)) == asked


def test_a_wrong_output_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([{"ratio": 0.1}, {"code": "WRONG_VALUES"}])
    monkeypatch.setattr(bench, "_measured", lambda *_: next(found))
    assert bench.measure(TASK, None, 7) == {"code": "WRONG_VALUES"}
