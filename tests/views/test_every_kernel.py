"""The budget and the timeline of every kernel of the repository equal its compiled code: bytes of
every buffer, loads and bytes of an iteration, waits and arrivals at every ring."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from tests.repository import BENCH, EXERCISES, KERNELS, REFUSING
from tilelab.ir import Binary, Buffer, Const, Expr, For, If, LoopKind, Node, Seq, walk
from tilelab.ir.core import child_fields
from tilelab.kernel import JITKernel
from tilelab.passes.evaluated import evaluated
from tilelab.passes.plan import PipelinePlan
from tilelab.thread.nodes import Invoke, Ref, TensorMap, ThreadKernel
from tilelab.views import PipelineView, memory_view, pipeline_view

pytest.importorskip("IPython")
EVERY = pytest.mark.parametrize("name", KERNELS)
KNOWN: dict[str, list[JITKernel]] = {}


def kernels(name: str) -> list[JITKernel]:
    if name not in KNOWN:
        KNOWN[name] = KERNELS[name]()
    return KNOWN[name]


def test_the_list_is_complete() -> None:
    """A program or an exercise with a kernel that is added is added there too."""
    from tests.repository import ROOT

    programs = (ROOT / "tilelab/bench/programs").glob("*.py")
    assert {p.stem for p in programs if "@T.prim_func" in p.read_text()} == set(BENCH)
    solutions = (p for p in (ROOT / "exercises").glob("*/solution.py"))
    assert {p.parent.name for p in solutions if "T.Kernel" in p.read_text()} == set(EXERCISES)


@EVERY
def test_budget_equals_the_compiled_kernel(name: str) -> None:
    for kernel in kernels(name):
        for part in kernel.program.kernels:
            view = memory_view(part, kernel.trace.target, plans=kernel.trace.pipelines)
            assert view.dynamic_bytes == part.dynamic_bytes
            assert view.static_bytes == part.static_bytes
            rows = {(r.name, r.offset, r.dynamic): r.num_bytes for r in view.rows}
            for slot in part.shared:
                key = (slot.buffer.root.name, slot.offset, slot.dynamic)
                assert rows[key] == slot.num_bytes
            covered = {
                b
                for r in view.rows
                if r.dynamic
                for b in range(r.offset // 16, -(-(r.offset + r.num_bytes) // 16))
            }
            assert len(covered) * 16 >= part.dynamic_bytes  # no byte is left unexplained
            text = kernel.get_kernel_source()
            assert ("buf_dyn_shmem[]" in text) == any(
                k.dynamic_bytes for k in kernel.program.kernels
            )


@EVERY
def test_timeline_equals_the_compiled_kernel(name: str) -> None:
    for kernel in kernels(name):
        for plan in kernel.trace.pipelines:
            (part,) = [k for k in kernel.program.kernels if plan.kernel in ("", k.name)]
            CHECKS[plan.mechanism](part, plan, pipeline_view(plan))


def test_the_cases_make_kernels() -> None:
    cases = [name for name in KERNELS if name.startswith("case")]
    without = [name for name in cases if not kernels(name)]
    assert all(name[len("case ") :][:3] in REFUSING for name in without), without


def test_enough_kernels_have_a_pipeline() -> None:
    piped = {n for n in KERNELS for k in kernels(n) if k.trace.pipelines}
    assert len(piped) >= 10


# -- reading the code --------------------------------------------------------------------------


def times(node: Node, factor: int = 1) -> Iterator[tuple[Invoke, int]]:
    """Every instruction below a node, and how often one pass through its loops runs it."""
    if isinstance(node, Invoke):
        yield node, factor
        return
    if isinstance(node, For) and isinstance(node.extent, Const):
        factor *= int(node.extent.value)
    for field in child_fields(type(node)):
        value = getattr(node, field)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Node):
                yield from times(child, factor)


def loops_of(part: ThreadKernel, plan: PipelinePlan) -> list[For]:
    """The loops that the planned one became: the roles' copies of it, and what masks parted."""
    found = [n for n in walk(part) if isinstance(n, For) and n.loc == plan.loc]
    return [n for n in found if n.kind is LoopKind.SERIAL]


def tile(node: Invoke) -> Buffer | None:
    """The shared tile that a copy fills."""
    for operand in node.operands:
        if isinstance(operand, Ref) and operand.buffer.scope.name == "SHARED":
            return operand.buffer
    return None


def moved(node: Invoke) -> int:
    """Bytes of one TMA load."""
    (box,) = [o for o in node.operands if isinstance(o, TensorMap)]
    return prod(box.box) * box.tensor.dtype.bits // 8


def inside(loop: For, prefix: str) -> list[tuple[Invoke, int]]:
    return [(n, k) for n, k in times(loop.body) if n.intrinsic.name.startswith(prefix)]


def check_tma(part: ThreadKernel, plan: PipelinePlan, view: PipelineView) -> None:
    slots = {b.buffer: b.versions for b in view.buffers}
    planned = sum(o.num_bytes for o in view.ops if o.side == "produce")
    loops = loops_of(part, plan)
    producing = [n for n in loops if inside(n, "tma_load")]
    assert producing, "no loop of the code loads"
    for loop in producing:
        loads = [
            (n, k)
            for n, k in inside(loop, "tma_load")
            if (b := tile(n)) is not None and b.root.name in slots
        ]
        assert sum(moved(n) * k for n, k in loads) == planned
        assert len({tile(n).root.name for n, _ in loads}) == len(slots)  # type: ignore[union-attr]
        # One wait for a free slot and one announcement of bytes a ring and iteration.
        fulls = [b for b in view.barriers if b.name.startswith("full") and named(b.name, slots)]
        assert sum(k for _, k in inside(loop, "mbarrier_wait")) == len(fulls)
        announced = [int(n.operands[1].value) for n, _ in inside(loop, "mbarrier_expect_tx")]
        assert sorted(announced) == sorted(b.expected_bytes for b in fulls)
        for barrier in fulls:
            assert barrier.count == view.slots
    consuming = [n for n in loops if not inside(n, "tma_load") and inside(n, "mbarrier_wait")]
    assert consuming
    for loop in consuming:
        rings = [b for b in view.barriers if b.name.startswith("full") and named(b.name, slots)]
        waited = {id(n.operands[0].buffer) for n, _ in inside(loop, "mbarrier_wait")}
        assert len(waited) == len(rings)
    for buffer, versions in slots.items():
        (slot,) = [s for s in part.shared if s.buffer.root.name == buffer]
        each = next(b.bytes_per_version for b in view.buffers if b.buffer == buffer)
        assert slot.num_bytes == versions * each


def named(barrier: str, slots: dict[str, int]) -> bool:
    """Whether a barrier is of the loop's own rings (a tile loaded before the loop has one too)."""
    tiles = barrier.partition(" ")[2]
    return not tiles or tiles.split(", ")[0] in slots


def check_cp_async(part: ThreadKernel, plan: PipelinePlan, view: PipelineView) -> None:
    names = {b.buffer for b in view.buffers}
    # What is no multiple of 4 bytes goes through registers, and the plan says so.
    planned = sum(o.num_bytes for o in view.ops if o.engine == "cp.async")
    loops = [n for n in loops_of(part, plan) if inside(n, "cp_async_wait")]
    assert loops
    threads = {part.thread_vars[0]: np.arange(part.num_threads)}
    every = np.ones(part.num_threads, bool)
    # Where the slots hold all iterations, the copies stand before the loop.
    ahead = plan.trip_count is not None and view.slots > 1 and plan.trip_count < view.slots
    for loop in loops:
        copies = [
            (n, k)
            for n, k in by_thread(loop.body, part, threads, every)
            if n.intrinsic.name in COPIES and (b := tile(n)) is not None and b.root.name in names
        ]
        size = sum(width(n) * k for n, k in copies)
        assert size == (0 if ahead else planned)
        assert sum(k for _, k in inside(loop, "cp_async_wait")) >= 1
        assert sum(k for _, k in inside(loop, "cp_async_commit")) >= 1
    for buffer in view.buffers:
        (slot,) = [s for s in part.shared if s.buffer.root.name == buffer.buffer]
        assert slot.num_bytes == buffer.versions * buffer.bytes_per_version


def by_thread(
    node: Node, part: ThreadKernel, known: dict[Any, np.ndarray], mask: np.ndarray
) -> Iterator[tuple[Invoke, int]]:
    """Every instruction below a node, and how often all threads together run it: branches on the
    thread's own number and on counted loops are counted out, others are taken."""
    if isinstance(node, Invoke):
        yield node, int(mask.sum())
    elif isinstance(node, If):
        taken = holds(node.cond, known, mask)
        yield from by_thread(node.then, part, known, mask & taken)
        if node.orelse is not None:
            yield from by_thread(node.orelse, part, known, mask & ~taken)
    elif isinstance(node, For) and isinstance(node.extent, Const):
        for value in range(int(node.extent.value)):
            yield from by_thread(node.body, part, {**known, node.var: np.asarray(value)}, mask)
    elif isinstance(node, Seq):
        for child in node.body:
            yield from by_thread(child, part, known, mask)


def holds(cond: Expr, known: dict[Any, np.ndarray], every: np.ndarray) -> np.ndarray:
    """Of which threads a condition `a < b` holds; of all where something else decides."""
    everywhere = np.ones(every.shape, bool)
    if not (isinstance(cond, Binary) and cond.op == "<"):
        return everywhere
    a, b = (evaluated(side, known.get) for side in (cond.a, cond.b))
    return everywhere if a is None or b is None else np.broadcast_to(a < b, every.shape)


COPIES = tuple(f"cp_async{kind}_{n}" for kind in ("", "_zfill") for n in (4, 8, 16))


def width(node: Invoke) -> int:
    """Bytes of one cp.async, which its record's name ends in."""
    return int(node.intrinsic.name.rpartition("_")[2])


def check_sync(part: ThreadKernel, plan: PipelinePlan, view: PipelineView) -> None:
    assert view.slots == 1 and not view.barriers
    for loop in loops_of(part, plan):
        assert not inside(loop, "mbarrier_wait")


CHECKS: dict[str, Any] = {"tma": check_tma, "cp.async": check_cp_async, "sync": check_sync}
