"""Shared memory that speed asks for yields to what the program needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER
from tilelab.errors import SharedMemoryOverflow
from tilelab.passes.shared_extent import DYNAMIC_ALIGNMENT
from tilelab.sim import simulate
from tilelab.target import SM90A

ROWS, DEPTH, STEP, STEPS = 128, 128, 64, 4
AGAIN = "compiled again without"
TILES = 2 * (2 * ROWS * DEPTH + 2 * DEPTH * STEP)  # bytes: the early tile and the ring, two slots


def _kernel(spare: int, **switches: Any) -> Any:
    """C = A @ B, column sums of C in S: A is loaded before the loop. `spare`: bytes of shared
    memory that are left when A has two slots."""
    rest = (SM90A.limits.shared_per_block - DYNAMIC_ALIGNMENT - TILES - spare) // 4

    @T.prim_func
    def kernel(
        A: T.Tensor((4 * ROWS, DEPTH), "float16"), B: T.Tensor((DEPTH, STEP * STEPS), "float16"),
        S: T.Tensor((4, STEPS, STEP), "float32"),
    ):  # fmt: skip
        with T.Kernel(4, threads=128) as by:
            a = T.alloc_shared((ROWS, DEPTH), "float16")
            b = T.alloc_shared((DEPTH, STEP), "float16")
            more = T.alloc_shared((rest,), "float32")
            c = T.alloc_fragment((ROWS, STEP), "float32")
            total = T.alloc_fragment((STEP,), "float32")
            T.copy(A[by * ROWS, 0], a)
            T.clear(more)
            for n in T.Pipelined(STEPS, num_stages=2):
                T.copy(B[0, n * STEP], b)
                T.clear(c)
                T.gemm(a, b, c)
                T.reduce_sum(c, total, dim=0)
                for j in T.Parallel(STEP):
                    S[by, n, j] = total[j] + more[j]

    configs = {f"tl.{k}": v for k, v in switches.items()}
    return tilelab.compile(kernel, target=HOPPER, pass_configs=configs)


def _notes(kernel: Any) -> str:
    return "\n".join(note.text for _, note in kernel.trace.notes())


@pytest.mark.parametrize(("spare", "again"), [(16384, False), (0, True)])
def test_wishes_yield(spare: int, again: bool) -> None:
    """The scratch of the sum across warps is not known when A gets its second slot."""
    kernel = _kernel(spare, persistent=True)
    assert (AGAIN in _notes(kernel)) is again
    assert ("in 2 slot(s)" in _notes(kernel)) is not again
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4 * ROWS, DEPTH)).astype(np.float16)
    b = rng.standard_normal((DEPTH, STEP * STEPS)).astype(np.float16)
    s = np.full((4, STEPS, STEP), np.nan, np.float32)
    report = simulate(kernel.program, {"A": a, "B": b, "S": s}, resident_blocks=2)
    assert report.ok, report
    want = (a.astype(np.float32) @ b.astype(np.float32)).reshape(4, ROWS, STEPS, STEP).sum(1)
    assert np.allclose(s, want, rtol=1e-3, atol=5e-2)


def test_what_the_program_itself_needs_is_still_an_error() -> None:
    with pytest.raises(SharedMemoryOverflow):
        _kernel(-2 * ROWS * DEPTH - 8192)
