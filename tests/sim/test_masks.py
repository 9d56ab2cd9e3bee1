"""Votes, matches and shuffles of parts of a warp: what their masks name, and nobody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T

LANES = 32
KINDS = ("any", "all", "ballot", "match_any", "match_all", "xor", "down", "sync")


def acts(kind: str) -> Any:
    """One instruction of the lanes that a mask names."""

    @T.macro
    def act(A, B, bx, tx, mask):
        if kind == "any":
            B[bx, tx] = T.cast(T.any_sync(A[bx, tx] > 6, mask), "int32")
        elif kind == "all":
            B[bx, tx] = T.cast(T.all_sync(A[bx, tx] > 0, mask), "int32")
        elif kind == "ballot":
            B[bx, tx] = T.cast(T.ballot_sync(A[bx, tx] > 3, mask) >> T.cast(16, "uint32"), "int32")
        elif kind == "match_any":
            B[bx, tx] = T.cast(T.match_any_sync(A[bx, tx], mask), "int32")
        elif kind == "match_all":
            B[bx, tx] = T.cast(T.match_all_sync(A[bx, tx] // 4, mask), "int32")
        elif kind == "xor":
            B[bx, tx] = T.shfl_xor(A[bx, tx], 3, 32, mask)
        elif kind == "down":
            B[bx, tx] = T.shfl_down(A[bx, tx], 1, 16, mask)
        else:
            B[bx, tx] = T.shfl_sync(A[bx, tx], 2, 16, mask)

    return act


def halves(kind: str, branch: bool) -> Any:
    """Each half of a warp by itself, in a branch that only the upper one takes or side by side."""
    act = acts(kind)

    @T.prim_func
    def main(A: T.Tensor((1, LANES), "int32"), B: T.Tensor((1, LANES), "int32")):
        with T.Kernel(1, threads=LANES) as bx:
            tx = T.get_thread_binding()
            B[bx, tx] = -1
            if tx >= (16 if branch else 0):
                act(A, B, bx, tx, T.if_then_else(tx < 16, 0xFFFF, 0xFFFF0000))

    return main


def wanted(kind: str, a: np.ndarray) -> np.ndarray:
    """The same lane by lane, for lanes of one half."""
    out = np.zeros(LANES, np.int64)
    for lane in range(LANES):
        first = lane // 16 * 16
        mates = range(first, first + 16)
        alike = sum(1 << m for m in mates if a[m] == a[lane])
        named = sum(1 << m for m in mates)
        out[lane] = {
            "any": any(a[m] > 6 for m in mates),
            "all": all(a[m] > 0 for m in mates),
            "ballot": sum(1 << m for m in mates if a[m] > 3) >> 16,
            "match_any": alike,
            "match_all": named if len({a[m] // 4 for m in mates}) == 1 else 0,
            "xor": a[lane ^ 3],
            "down": a[lane + 1 if lane + 1 in mates else lane],
            "sync": a[first + 2],
        }[kind]
    return out.astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("branch", [False, True], ids=["beside", "branch"])
@pytest.mark.parametrize("kind", KINDS)
def test_halves_of_a_warp(kind: str, branch: bool) -> None:
    a = np.array([*range(16), *[5] * 15, 4], np.int32)
    out = torch.zeros(LANES, dtype=torch.int32)
    report = tilelab.compile(halves(kind, branch)).simulate(torch.from_numpy(a[None]), out[None])
    assert report.ok, str(report)
    want = wanted(kind, a)
    if branch:
        want[:16] = -1
    np.testing.assert_array_equal(out.numpy(), want)


BY_HAND = {"tl.disable_thread_storage_sync": True}


def both_sides(parts: int) -> Any:
    """The lanes of each warp wait for each other from the sides of branches by value."""

    @T.prim_func
    def main(A: T.Tensor((4, 48), "int32"), B: T.Tensor((4, 48), "int32")):
        with T.Kernel(4, threads=48) as bx:
            s = T.alloc_shared((48,), "int32")
            tx = T.get_thread_binding()
            s[tx] = -1
            if A[bx, tx] % parts == 0:
                s[tx] = A[bx, tx]
                T.sync_warp()
                B[bx, tx] = s[tx ^ 1]
            elif A[bx, tx] % parts == 1:
                s[tx] = A[bx, tx] + 1000
                T.sync_warp()
                B[bx, tx] = s[tx ^ 1]
            else:
                s[tx] = A[bx, tx] + 2000
                T.sync_warp()
                B[bx, tx] = s[tx ^ 1]

    return main


@pytest.mark.parametrize("schedule", ["late", "eager", "random"])
@pytest.mark.parametrize("parts", [2, 3])
def test_a_warp_meets_from_the_sides_of_a_branch(parts: int, schedule: str) -> None:
    a = torch.randint(0, 500, (4, 48), generator=torch.Generator().manual_seed(1)).int()
    out = torch.zeros_like(a)
    kernel = tilelab.compile(both_sides(parts), pass_configs=BY_HAND)
    report = kernel.simulate(a, out, schedule=schedule)
    assert report.ok, str(report)
    stored = a + 1000 * (a % parts)
    assert torch.equal(out, stored.reshape(4, 24, 2).flip(-1).reshape(4, 48))


def exchanged(kind: str) -> Any:
    """Each side of a branch runs its own instruction, with a mask that names lanes of both."""
    act = acts(kind)

    @T.prim_func
    def main(A: T.Tensor((3, LANES), "int32"), B: T.Tensor((3, LANES), "int32")):
        with T.Kernel(3, threads=LANES) as bx:
            tx = T.get_thread_binding()
            if (tx + bx) % 3 == 0:
                act(A, B, bx, tx, T.if_then_else(tx < 16, 0xFFFF, 0xFFFF0000))
            else:
                act(A, B, bx, tx, T.if_then_else(tx < 16, 0xFFFF, 0xFFFF0000))

    return main


@pytest.mark.parametrize("schedule", ["late", "random"])
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_exchange_values_from_the_sides_of_a_branch(kind: str, schedule: str) -> None:
    a = np.array([[*range(16), *[5] * 15, 4], [7] * LANES, list(range(LANES))], np.int32)
    out = torch.zeros(3, LANES, dtype=torch.int32)
    report = tilelab.compile(exchanged(kind)).simulate(torch.from_numpy(a), out, schedule=schedule)
    assert report.ok, str(report)
    np.testing.assert_array_equal(out.numpy(), [wanted(kind, row) for row in a])


@pytest.mark.expects_findings
def test_unlike_exchanges_do_not_meet() -> None:
    @T.prim_func
    def main(A: T.Tensor((LANES,), "int32"), B: T.Tensor((LANES,), "int32")):
        with T.Kernel(1, threads=LANES):
            tx = T.get_thread_binding()
            if tx < 16:
                B[tx] = T.shfl_xor(A[tx], 1)
                B[tx] += T.shfl_down(A[tx], 1)
            else:
                B[tx] = T.shfl_down(A[tx], 1)
                B[tx] += T.shfl_xor(A[tx], 1)

    a = torch.zeros(LANES, dtype=torch.int32)
    report = tilelab.compile(main).simulate(a, a.clone())
    assert report.codes() == ("TL2009",) and "mask names" in report.findings[0].message


@pytest.mark.parametrize("threads", [16, 48])
def test_a_mask_may_name_lanes_that_the_block_does_not_have(threads: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((threads,), "int32"), B: T.Tensor((threads,), "int32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((threads,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_warp()
            B[tx] = s[tx ^ 1]

    a = torch.arange(threads, dtype=torch.int32)
    out = torch.zeros_like(a)
    report = tilelab.compile(main, pass_configs=BY_HAND).simulate(a, out)
    assert report.ok and torch.equal(out, a ^ 1), str(report)


@pytest.mark.expects_findings
def test_lanes_that_are_only_on_their_way_out_are_not_gone() -> None:
    """Nothing orders the end of lanes that skip the last branch before the others' barrier."""

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            if tx < 16:
                T.sync_warp()
                B[tx] = A[tx]

    report = tilelab.compile(main).simulate(torch.zeros(32).int(), torch.zeros(32).int())
    assert report.codes() == ("TL2009",)
