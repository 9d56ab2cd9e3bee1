"""A race is told to be the compiler's where the compiler alone orders accesses, and never else; a
product that is not waited for is one finding."""

from __future__ import annotations

from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER
from tests.sim.detection import arrivals, copies, rings, roles, slots, warps
from tests.sim.detection.matrix import Entry
from tilelab.ir import walk
from tilelab.ir.rewrite import rewrite
from tilelab.sim import findings as f
from tilelab.sim import simulate
from tilelab.thread import Comment, Invoke


def product() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(4):
                T.copy(A, a)
                T.gemm(a, a, c)
            T.copy(c, C)

    return main


def test_a_barrier_that_the_compiler_forgot_is_its_fault() -> None:
    kernel = tilelab.compile(product(), target=HOPPER)
    assert not kernel.program.by_hand
    inputs = {"A": kernel.get_profiler().make_inputs()[0].numpy()}
    barriers = [
        n for n in walk(kernel.program)
        if isinstance(n, Invoke) and n.intrinsic.name == "syncthreads"
    ]  # fmt: skip
    program = rewrite(kernel.program, lambda n: Comment("") if n in barriers else None)
    inputs["C"] = kernel.get_profiler().make_inputs()[1].numpy()
    hints = {found.hint for found in simulate(program, inputs).findings if found.code == f.RACE}
    assert f.INSERTED_HINT in hints


@pytest.mark.parametrize(
    "entry",
    [
        arrivals.copied_into_a_slot_that_is_not_free,
        copies.own_wait_but_no_barrier,
        rings.released_while_one_product_may_run,
        roles.operand_written_by_threads_into_wgmma,
        slots.wrong_slot_released,
        warps.vector_reads_of_neighbours,
    ],
    ids=lambda e: e.name,
)
def test_no_race_of_a_program_that_waits_itself_is(entry: Entry) -> None:
    assert entry.kernel(ok=False).program.by_hand
    for seed in range(4):
        report = entry.simulate(ok=False, schedule="random", seed=seed)
        assert report.findings
        assert all(found.hint != f.INSERTED_HINT for found in report.findings)


@pytest.mark.parametrize(
    "entry", [copies.product_read_in_flight, copies.one_product_too_many_left], ids=lambda e: e.name
)
def test_a_product_in_flight_is_one_finding(entry: Entry) -> None:
    assert entry.simulate(ok=False).codes() == (f.MISSING_WAIT,)
