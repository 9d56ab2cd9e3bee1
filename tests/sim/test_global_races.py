"""Races in global memory: those that are found, and what is none."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.sim.test_programs import ints, report_of, zeros
from tilelab.sim import simulate


@T.macro
def _equal_values(A, B, bx):
    for i in T.Parallel(64):
        B[i] = 7


@T.macro
def _own_elements(A, B, bx):
    for i in T.Parallel(64):
        A[bx * 64 + i] = A[bx * 64 + i] + 1


@T.macro
def _atomics(A, B, bx):
    for i in T.Parallel(64):
        T.atomic_add(B[i], 1)


@T.macro
def _ordered_warps(A, B, bx):
    tx = T.get_thread_binding()
    B[bx * 64 + tx] = tx
    T.sync_threads()
    A[bx * 64 + tx] = B[bx * 64 + 63 - tx]


@T.macro
def _blocks_write(A, B, bx):
    for i in T.Parallel(64):
        B[i] = bx


@T.macro
def _blocks_read(A, B, bx):
    for i in T.Parallel(64):
        B[bx * 64 + i] = bx + 1
    for i in T.Parallel(64):
        A[bx * 64 + i] = B[(bx * 64 + i + 64) % 256]


@T.macro
def _blocks_overwrite(A, B, bx):
    for i in T.Parallel(64):
        A[bx * 64 + i] = A[(bx * 64 + i + 64) % 256]


@T.macro
def _threads_write(A, B, bx):
    tx = T.get_thread_binding()
    B[bx] = tx


@T.macro
def _unordered_warps(A, B, bx):
    tx = T.get_thread_binding()
    B[bx * 64 + tx] = tx + 1
    A[bx * 64 + tx] = B[bx * 64 + 63 - tx]


@T.macro
def _last_warp_overwrites(A, B, bx):
    tx = T.get_thread_binding()
    A[bx * 64 + tx] = B[bx]
    if tx == 63:
        B[bx] = 5


@pytest.mark.parametrize(
    "body", [_equal_values, _own_elements, _atomics, _ordered_warps],
    ids=["equal", "own", "atomics", "barrier"],
)  # fmt: skip
def test_no_race_in_global_memory(body):
    report = report_of(body, ints(256), zeros(256), blocks=4)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (_blocks_write, "different values"), (_blocks_read, "in the same launch"),
        (_blocks_overwrite, "in the same launch"), (_threads_write, "different values"),
        (_unordered_warps, "is not ordered after warp"),
        (_last_warp_overwrites, "has read the same element"),
    ],
    ids=["write", "read", "overwrite", "threads", "warps", "last"],
)  # fmt: skip
@pytest.mark.parametrize("max_memory", [1, 3 << 30])  # a block at a time, and all together
def test_races_in_global_memory(body, text, max_memory):
    report = report_of(body, ints(256), zeros(256), blocks=4, max_memory=max_memory)
    assert set(report.codes()) == {"TL2007"}, str(report)
    if max_memory > 1 or body is not _blocks_write:
        assert text in report.findings[0].message


def test_race_of_tma_stores_between_blocks():
    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A[bx, 0, 0], s)
            T.copy(s, B)

    kernel = tilelab.compile(main, target="sm_90a")
    for apart, codes in ((0, ()), (1, ("TL2007",))):
        a = np.ones((2, 64, 64), np.float16)
        a[1, 5, 9:11] += apart
        report = simulate(kernel.program, {"A": a, "B": np.zeros((64, 64), np.float16)})
        assert report.codes() == codes, str(report)
        assert all((x.buffer, x.index) == ("B", (5, 9)) for x in report.findings)
