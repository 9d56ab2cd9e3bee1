"""Each synchronisation that the compiler inserts is needed: without it the simulator reports.

Where it does not, `UNSEEN` says why the compiler inserts it all the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.sync_programs import OPTIONS, PROGRAMS, TARGETS, arrays, compiled
from tilelab.ir import walk
from tilelab.ir.rewrite import rewrite
from tilelab.sim import simulate
from tilelab.thread import Comment, Invoke

# What has no effect but an order (register budgets, fences of the C++ compiler: no order).
ORDERS = (
    "syncthreads", "syncwarp", "named_barrier", "mbarrier", "fence_proxy", "cp_async_wait",
    "cp_async_commit", "tma_store_commit", "tma_store_wait", "warpgroup_arrive",
    "warpgroup_commit", "warpgroup_wait",
)  # fmt: skip

ENDS_TOGETHER = (
    "wgmma's four parts end together in the simulator; the PTX ISA promises a warp the end of "
    "what it asked for alone, and ordinary writes of other warps follow here"
)
SAME_THREADS = (
    "every element goes to the thread that it comes from; the compiler orders whole buffers"
)
NO_COPY_ARRIVES = "only threads arrive at these barriers; a T.tma_copy anywhere would need it"
COVERED = "another one follows before the reader; where it stands, the compiler cannot know that"
FENCED_JUST_BEFORE = (
    "the product issued just before has fenced, and nothing writes registers in between; a gemm is "
    "lowered without knowing what stands before it"
)
OVERWRITES = (
    "the product overwrites its accumulator and reads no other register; the PTX ISA asks for the "
    "fence all the same, because threads read those registers before"
)
SAME_PHASE_TWICE = (
    "overlap-gemms waits for one phase twice, on purpose: each holds the assembler to the order of "
    "the statements around it, and any one of the two is enough to know that the tile has come"
)
NOT_MODELLED = (
    "reads by threads and a TMA refill of the same bytes: an mbarrier orders them in the memory "
    "model; on an H200 a slow ldmatrix was overtaken without the fence (measured)"
)
ENDS_HERE = (
    "the rest of the split loop runs once in this grid, and no later use waits for what its only "
    "run, or the product behind it, frees or commits; with more runs it would"
)

UNSEEN: dict[tuple[str, str, str, str], str] = {
    ("gemm-0", "sm_90a", "syncthreads", "A_shared is still being read"): ENDS_TOGETHER,
    ("attention-0", "sm_90a", "syncthreads", "k is still being read"): ENDS_TOGETHER,
    ("nested-1", "sm_90a", "syncthreads", "a is still being read"): ENDS_TOGETHER,
    ("nested-2", "sm_90a", "syncthreads", "the tiles of the loop's last run"): ENDS_TOGETHER,
    ("attention-0", "sm_90a", "fence_proxy_async", "make ordinary writes visible"): COVERED,
    ("attention-0", "sm_90a", "warpgroup_arrive", "order earlier register"): OVERWRITES,
    ("attention-2", "sm_80", "cp_async_commit", ""): ENDS_HERE,
    ("attention-2", "sm_90a", "warpgroup_arrive", "order earlier register"): FENCED_JUST_BEFORE,
    ("attention-2", "sm_90a", "mbarrier_wait", "the slot's tiles have arrived"): SAME_PHASE_TWICE,
    ("attention-2", "sm_90a", "mbarrier_arrive", "the slot may be refilled"): ENDS_HERE,
    ("dequant-0", "sm_90a", "syncthreads", "a is still being read"): ENDS_TOGETHER,
    ("dequant-0", "sm_90a", "fence_proxy_async", "make ordinary writes visible"): COVERED,
    ("dequant-2", "sm_90a", "named_barrier_sync", "b is still being read"): ENDS_TOGETHER,
    ("dequant-2", "sm_90a", "fence_proxy_async", "what threads read of the slot"): NOT_MODELLED,
    ("dequant-2", "sm_90a", "fence_proxy_async", "make ordinary writes visible"): COVERED,
    ("tma-store", "sm_80", "syncthreads", "s "): SAME_THREADS,
    ("tma-store", "sm_90a", "syncthreads", "s "): SAME_THREADS,
    ("by-hand", "sm_80", "syncthreads", "barriers are initialised"): COVERED,
    ("by-hand", "sm_90a", "syncthreads", "barriers are initialised"): COVERED,
    ("by-hand", "sm_80", "named_barrier_sync", "s is written by other threads"): SAME_THREADS,
    ("by-hand", "sm_90a", "named_barrier_sync", "s is written by other threads"): SAME_THREADS,
    ("by-hand", "sm_90a", "fence_proxy_async", "make ordinary writes visible"): COVERED,
    ("by-hand", "sm_90a", "mbarrier_init_fence", "make them known"): NO_COPY_ARRIVES,
}
"""(program, target, instruction, how its reason begins) -> why it stands there unseen."""

CASES = [(name, target) for name in PROGRAMS for target in TARGETS]


def _without(kernel: Any, victim: Invoke) -> Any:
    return rewrite(kernel.program, lambda n: Comment("") if n is victim else None)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_each_synchronisation_is_needed(name: str, target: str) -> None:
    kernel, options = compiled(name, target), OPTIONS.get(name, {})
    assert simulate(kernel.program, arrays(kernel), **options).ok
    nodes = [n for n in walk(kernel.program) if isinstance(n, Invoke)]
    orders = [n for n in nodes if n.intrinsic.name.startswith(ORDERS)]
    assert orders
    unseen: list[str] = []
    for victim in orders:
        if simulate(_without(kernel, victim), arrays(kernel), **options).ok:
            known = (
                n == name and t == target and i == victim.intrinsic.name
                and victim.reason.startswith(why)
                for n, t, i, why in UNSEEN
            )  # fmt: skip
            if not any(known):
                unseen.append(f"{victim.intrinsic.name}: {victim.reason}")
    assert not unseen


@pytest.mark.parametrize(("name", "target"), CASES)
def test_no_schedule_gives_a_finding(name: str, target: str) -> None:
    kernel = compiled(name, target)
    for seed in range(5):
        options = {**OPTIONS.get(name, {}), "schedule": "random", "seed": seed}
        report = simulate(kernel.program, arrays(kernel), **options)
        assert report.ok, f"seed {seed}: {report}"
