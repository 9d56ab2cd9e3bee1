"""Programs that draws found to be compiled wrongly, or refused although they are right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.fuzz.run import TARGETS

targets = pytest.mark.parametrize("target", TARGETS)


def run(program: Any, target: str, *tensors: Any) -> None:
    """Simulate under all checks; a finding is an error."""
    tilelab.compile(program, target=target)(*tensors)


@targets
def test_a_sum_whose_rows_spread_over_a_larger_tile(target: str) -> None:
    """The sum's own layout differs from what the larger loop asks of its result."""

    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), Out: T.Tensor((8, 8, 48), "float32")):
        with T.Kernel(1, threads=256):
            tile = T.alloc_fragment((8, 8), "float32")
            total = T.alloc_fragment((8,), "float32")
            wide = T.alloc_fragment((8, 8, 48), "float32")
            T.copy(A, tile)
            T.reduce_sum(tile, total, dim=1)
            for i, j, k in T.Parallel(8, 8, 48):
                wide[i, j, k] = total[i]
            T.copy(wide, Out)

    a, out = torch.arange(64.0).reshape(8, 8), torch.zeros(8, 8, 48)
    run(main, target, a, out)
    assert torch.equal(out, a.sum(1)[:, None, None].expand(8, 8, 48))


@targets
def test_literals_that_their_operand_cannot_hold(target: str) -> None:
    """A number takes the other operand's type where that holds it, else one of its own: -1 of an
    unsigned type would be its largest number, and 1.5 of an integer 1."""

    @T.prim_func
    def main(
        U: T.Tensor((32,), "uint8"), K: T.Tensor((32,), "int32"), Out: T.Tensor((8, 32), "float32"),
        F: T.Tensor((2, 32), "uint8"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                Out[0, i] = T.max(K[i], 1.5)
                Out[1, i] = T.max(U[i], -1)
                Out[2, i] = T.min(U[i], 300)
                Out[3, i] = T.if_then_else(U[i] > -1, 1, 0)
                Out[4, i] = U[i] - 300
                Out[5, i] = T.clamp(K[i], 0.5, 2.5)
                Out[6, i] = T.cast(-5, "uint64") % 51
                Out[7, i] = T.cast(U[i], "int8") + 200
            T.fill(F[0, 0:32], -3)
            for i in T.Parallel(32):
                F[1, i] = -3

    u, k = torch.arange(100, 132), torch.arange(-16, 16, dtype=torch.int32)
    out, filled = torch.zeros(8, 32), torch.zeros(2, 32, dtype=torch.uint8)
    run(main, target, u.to(torch.uint8), k, out, filled)
    want = [
        k.clamp(min=1.5), u, u, torch.ones(32), u - 300, k.double().clamp(0.5, 2.5),
        torch.full((32,), (2**64 - 5) % 51), u.to(torch.int8).int() + 200,
    ]  # fmt: skip
    assert torch.equal(out.double(), torch.stack([w.double() for w in want]))
    assert bool((filled == 253).all())


@targets
def test_points_of_several_threads_that_overwrite_what_they_read(target: str) -> None:
    """A loop of fewer points than threads: no copy of a point reads what another has written."""

    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), Out: T.Tensor((2, 16), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16,), "int32")
            f = T.alloc_fragment((16,), "int32")
            T.copy(A, s)
            for i in T.Parallel(16):
                if s[i] > 3:
                    s[i] = i
                else:
                    s[i] = s[i] + 7
            for i in T.Parallel(16):
                f[i] = s[i] * 2
                s[i] = f[i] + 1
            for j, i in T.Parallel(2, 16):
                Out[j, i] = T.if_then_else(j == 0, f[i], s[i])

    a, out = torch.arange(16, dtype=torch.int32) % 8, torch.zeros(2, 16, dtype=torch.int32)
    run(main, target, a, out)
    once = torch.where(a > 3, torch.arange(16), a + 7)
    assert torch.equal(out, torch.stack([2 * once, 2 * once + 1]).int())


@targets
def test_the_first_row_of_a_fragment(target: str) -> None:
    """A loop over the columns alone reads a row that some threads hold."""

    @T.prim_func
    def main(A: T.Tensor((7, 32), "int32"), Out: T.Tensor((3, 32), "int32")):
        with T.Kernel(1, threads=32):
            f, g = T.alloc_fragment((7, 32), "int32"), T.alloc_fragment((32,), "int32")
            T.copy(A, f)
            for i in T.Parallel(32):
                g[i] = f[0, i] * 2
            T.copy(g, Out[0, 0:32])
            for i in T.Parallel(32):
                Out[1, i] = f[5, i] + f[0, i]
            for i in T.Parallel(7):
                Out[2, i] = f[i, 0]

    a, out = torch.arange(224, dtype=torch.int32).reshape(7, 32), torch.zeros(3, 32).int()
    run(main, target, a, out)
    want = torch.stack([a[0] * 2, a[5] + a[0], torch.zeros(32).int()])
    want[2, :7] = a[:, 0]
    assert torch.equal(out, want)


@targets
def test_a_break_leaves_out_the_barriers_behind_it(target: str) -> None:
    """The inner loop is entered anew while threads still read what its first statement writes."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), Out: T.Tensor((3, 64), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            for r in T.serial(3):
                for k in T.serial(4):
                    for i in T.Parallel(64):
                        s[i] = A[i] + r + k
                    for i in T.Parallel(64):
                        Out[r, i] = s[63 - i]
                    if k > r:
                        break
                    T.sync_threads()

    a, out = torch.arange(64, dtype=torch.int32), torch.zeros(3, 64, dtype=torch.int32)
    run(main, target, a, out)
    assert torch.equal(out, a.flip(0) + torch.tensor([[1], [3], [5]], dtype=torch.int32))
