"""What docs/simulator.md promises of every run and finding, where no other test shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.sim.detection.test_matrix import CLASSES
from tests.sim.programs import Block, at, lanes, load, ref, when
from tests.sim.test_findings import only, run, tma_store_kernel
from tilelab.ir import Var
from tilelab.sim import findings as f
from tilelab.thread import SharedDescriptor
from tilelab.thread import intrinsics as I

NAN = float("nan")
EVERY = {"default", "nan"}


def through_all_memories(target: str) -> Any:
    """Shared memory, a fragment, registers, a product and a reduction on the way."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"),
             R: T.Tensor((64,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c, transpose_B=True)
            T.reduce_sum(c, r, dim=1)
            T.copy(c, C)
            T.copy(r, R)

    return tilelab.compile(main, target=target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_nan_in_the_inputs_is_a_value(target: str) -> None:
    """Validity lies beside the data: a NaN that was given is neither unset nor made here."""
    a = torch.ones(64, 64, dtype=torch.float16)
    a[3], a[7, 5] = NAN, NAN
    c, r = torch.zeros(64, 64), torch.zeros(64)
    report = through_all_memories(target).simulate(a, c, r, checks=EVERY)
    assert report.ok and not report.notes, str(report)
    bad = torch.zeros(64, dtype=torch.bool)
    bad[[3, 7]] = True
    assert torch.equal(c.isnan(), bad[:, None] | bad[None]) and r.isnan().all()


@pytest.mark.expects_findings
def test_what_is_unset_is_found_whatever_it_holds() -> None:
    """The tensor's memory holds ordinary numbers, and so do the registers: no NaN gives it away."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            if tx != 9:
                s[tx] = A[tx]
            B[tx] = s[tx]

    report = tilelab.compile(main).simulate(torch.zeros(64).int(), torch.zeros(64).int())
    assert [(x.code, x.index, x.lane) for x in report.findings] == [("TL2002", (9,), 9)]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.expects_findings
def test_a_finding_prints_and_ends_nothing(
    kind: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    assert not CLASSES[kind][0].simulate(ok=False).ok
    assert capfd.readouterr() == ("", "") and not recwarn.list


def limited(shared: int, threads: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((threads,), "float32"), B: T.Tensor((threads,), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((shared // 4,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            B[tx] = s[tx]

    return tilelab.compile(main, target="sm_90a")


@pytest.mark.parametrize(
    ("shared", "threads", "limiter", "blocks"),
    [(102_400, 128, "shared memory", 2), (4096, 1024, "threads", 2), (128, 32, "block slots", 32)],
)  # fmt: skip
def test_the_launch_says_what_limits_it(
    shared: int, threads: int, limiter: str, blocks: int
) -> None:
    report = limited(shared, threads).simulate(torch.zeros(threads), torch.zeros(threads))
    launch = report.counters[0].launch
    assert (launch.limiters, launch.blocks_per_sm) == ((limiter,), blocks), launch
    assert f"limited by {limiter}" in str(report)


def test_twenty_schedules_are_unlike() -> None:
    """Which of two roles that no barrier orders is first, is seen both ways; each seed's run is
    the same again."""

    @T.prim_func
    def main(N: T.Tensor((1,), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            with T.ws(0):
                if tx == 0:
                    B[0] = T.atomic_add(N[0], 1, return_prev=True)
            with T.ws(1):
                if tx == 128:
                    B[1] = T.atomic_add(N[0], 1, return_prev=True)

    kernel = tilelab.compile(main, target="sm_90a")

    def order(seed: int) -> tuple[int, ...]:
        out = torch.zeros(2, dtype=torch.int32)
        report = kernel.simulate(torch.zeros(1).int(), out, schedule="random", seed=seed)
        assert report.ok, str(report)
        return tuple(out.tolist())

    seen = [order(seed) for seed in range(20)]
    assert set(seen) == {(0, 1), (1, 0)} and [order(seed) for seed in range(20)] == seen


# ---- descriptors and boxes ---------------------------------------------------------------------


def product(start: int = 0, leading: int = 16, rows: int = 64) -> Block:
    b = Block(128)
    s, acc, i = b.shared("S", (rows, 64)), b.local("acc", 32), Var("i", lo=0, hi=63)
    held = SharedDescriptor(ref(s, start // 64, start % 64), leading, 1024, 128)
    b.add(
        lanes(i, 32, b.store(acc, i, 0.0)),
        lanes(i, rows // 2, b.store(s, (i * 2 + b.tx // 64, b.tx % 64), 1.0)),
        b.call(I.FENCE_PROXY_ASYNC), b.call(I.SYNCTHREADS), b.call(I.WARPGROUP_ARRIVE),
        b.call(I.wgmma_ss(64, "f16"), held, held, ref(acc, 0, count=32), True, loc=at(33)),
        b.call(I.WARPGROUP_COMMIT), b.call(I.warpgroup_wait(0)),
    )  # fmt: skip
    return b


@pytest.mark.parametrize(
    ("wrong", "code", "index", "said"),
    [
        ({"start": 4}, f.MISALIGNED, (0, 4), "16 bytes"),
        ({"leading": 24}, f.MISALIGNED, (0, 0), "16 bytes"),
        ({"rows": 32}, f.OUT_OF_BOUNDS, (0, 0), "outside the buffer"),
        ({"start": 64 * 8}, f.OUT_OF_BOUNDS, (8, 0), "outside the buffer"),
    ],
)
@pytest.mark.expects_findings
def test_a_wrong_descriptor(wrong: dict[str, int], code: str, index: Any, said: str) -> None:
    assert run(product()).ok
    found = only(run(product(**wrong)), code)
    assert found.loc.line == 33 and found.buffer == "S" and found.index == index
    assert said in found.message and found.block == (0,) and found.hint


@pytest.mark.expects_findings
def test_a_misaligned_box_and_vector_name_their_element() -> None:
    out = np.zeros((8, 64), np.float16)
    found = only(run(tma_store_kernel(offset=8), out=out), f.MISALIGNED)
    assert found.buffer == "S" and found.index == (0, 8)
    b = Block(32)
    src, s = b.tensor("src", (512,), "float16"), b.shared("S", (512,))
    v, i = b.local("v", 8, "float16"), Var("i", lo=0, hi=15)
    b.add(
        lanes(i, 16, b.store(s, i * 32 + b.tx, load(src, i * 32 + b.tx))),
        b.call(I.SYNCTHREADS),
        when(b.tx < 31, b.copy(ref(v, 0, count=8), ref(s, b.tx * 8 + 4, count=8), 8, loc=at(8))),
    )
    found = only(run(b, src=np.zeros(512, np.float16)), f.MISALIGNED)
    assert (found.buffer, found.index, found.loc.line) == ("S", (4,), 8)


@pytest.mark.expects_findings
def test_a_box_of_an_output_that_nothing_wrote_names_the_first_element() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 192), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            T.copy(A, s)
            T.tma_copy(s, B[0, 32])
            T.tma_store_wait(0, read=False)
            T.sync_threads()
            T.tma_copy(B[0, 64], s, barrier=bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(s, B[0, 128])

    report = tilelab.compile(main, out_idx=[1], target="sm_90a").simulate(torch.ones(64, 64).half())
    found = next(x for x in report.findings if x.code == f.UNINITIALISED)
    assert (found.buffer, found.index) == ("B", (0, 96)) and "TMA" in found.message
