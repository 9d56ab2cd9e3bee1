"""double-buffer: products that run while threads write the next operand; where it must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER
from tilelab.passes import double_buffer
from tilelab.sim import simulate

TILE, STEP = 64, 64
TURNS = "two places"


def _kernel(
    steps: int, columns: int = 1, stages: int = 2, form: str = "copy", threads: int = 256,
    **switches: Any,
) -> Any:  # fmt: skip
    """C = A @ B.T where B is int8 and threads make it float16 in shared memory."""
    M, N, K = 128, TILE * columns, STEP * steps

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "int8"), C: T.Tensor((M, N), "float")
    ):
        with T.Kernel(columns, threads=threads) as col:
            a = T.alloc_shared((M, STEP), "float16")
            codes = T.alloc_shared((TILE, STEP), "int8")
            local = T.alloc_fragment((TILE, STEP), "float16")
            b = T.alloc_shared((TILE, STEP), "float16")
            acc = T.alloc_fragment((M, TILE), "float")
            T.clear(acc)
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(A[0, k * STEP], a)
                T.copy(B[col * TILE, k * STEP], codes)
                if form == "loop":
                    for i, j in T.Parallel(TILE, STEP):
                        b[i, j] = T.cast(codes[i, j], "float16")
                else:
                    for i, j in T.Parallel(TILE, STEP):
                        local[i, j] = T.cast(codes[i, j], "float16")
                    T.copy(local, b)
                T.gemm(a, b, acc, transpose_B=True)
                if form == "scaled":
                    for i, j in T.Parallel(M, TILE):
                        acc[i, j] = acc[i, j] * 0.5
            T.copy(acc, C[0, col * TILE])

    configs = {f"tl.{k}": v for k, v in switches.items()}
    return tilelab.compile(kernel, out_idx=[2], target=HOPPER, pass_configs=configs)


def _notes(kernel: Any) -> str:
    return "\n".join(note.text for _, note in kernel.trace.notes())


def _check(kernel: Any, steps: int, columns: int = 1, **how: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((128, STEP * steps)).astype(np.float16)
    b = rng.integers(-8, 8, (TILE * columns, STEP * steps), dtype=np.int8)
    c = np.full((128, TILE * columns), np.nan, np.float32)
    report = simulate(kernel.program, {"A": a, "B": b, "C": c}, **how)
    assert report.ok, report
    assert np.allclose(c, a.astype(np.float32) @ b.T.astype(np.float32), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("form", ["copy", "loop"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_product_runs_while_the_next_operand_is_written(form: str, steps: int) -> None:
    kernel = _kernel(steps, form=form)
    assert TURNS in _notes(kernel)
    text = kernel.get_kernel_source()
    loop = text[text.index("for (int k") : text.index("// producer")]
    assert loop.count("named_barrier_sync(1, 256)") <= 1 + (steps == 1)
    _check(kernel, steps)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_block_that_takes_several_tiles(steps: int) -> None:
    """The places of the last iteration are free before the next tile's first is written."""
    kernel = _kernel(steps, columns=5, persistent=True)
    assert TURNS in _notes(kernel)
    for schedule in ("late", "eager", "random"):
        _check(kernel, steps, columns=5, resident_blocks=2, schedule=schedule)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_loop_that_another_one_enters_again(steps: int) -> None:
    """As for a block's tiles, the last place has been read before the next run writes its first."""
    M, N, runs = 128, TILE, 3

    @T.prim_func
    def kernel(
        A: T.Tensor((M, 2 * STEP), "float16"), X: T.Tensor((2 * STEP, N), "float16"),
        B: T.Tensor((N, STEP * steps), "int8"), C: T.Tensor((M, N), "float"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((M, STEP), "float16")
            x = T.alloc_shared((STEP, N), "float16")
            fixed = T.alloc_shared((M, STEP), "float16")
            b = T.alloc_shared((N, STEP), "float16")
            acc = T.alloc_fragment((M, N), "float")
            T.copy(A[0, 0], fixed)
            T.clear(acc)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * STEP], a)
                T.copy(X[k * STEP, 0], x)
                T.gemm(a, x, acc)
            for _run in T.serial(runs):
                for k in T.serial(steps):
                    for i, j in T.Parallel(N, STEP):
                        b[i, j] = T.cast(B[i, k * STEP + j], "float16")
                    T.gemm(fixed, b, acc, transpose_B=True)
            T.copy(acc, C)

    made = tilelab.compile(kernel, target=HOPPER)
    assert TURNS in _notes(made)
    rng = np.random.default_rng(0)
    a, x = (rng.integers(-4, 5, s).astype(np.float16) for s in ((M, 2 * STEP), (2 * STEP, N)))
    b = rng.integers(-4, 5, (N, STEP * steps), dtype=np.int8)
    want = a.astype(np.float32) @ x.astype(np.float32)
    for k in range(0, STEP * steps, STEP):
        want += runs * (a[:, :STEP].astype(np.float32) @ b[:, k : k + STEP].T.astype(np.float32))
    for schedule in ("late", "eager", "random"):
        c = np.full((M, N), np.nan, np.float32)
        report = simulate(made.program, {"A": a, "X": x, "B": b, "C": c}, schedule=schedule)
        assert report.ok, report
        assert np.array_equal(c, want)


def test_one_warpgroup() -> None:
    kernel = _kernel(4, stages=3, threads=128)
    assert TURNS in _notes(kernel)
    _check(kernel, 4)


def test_where_it_must_not() -> None:
    """A result that is wanted each time, a ring of one slot, and the switches."""
    for kernel in (
        _kernel(3, form="scaled"), _kernel(3, stages=1), _kernel(3, double_buffer=False),
        _kernel(3, plain_pipeline=True), _kernel(3, enable_aggressive_shared_memory_merge=True),
    ):  # fmt: skip
        assert TURNS not in _notes(kernel)
    _check(_kernel(3, stages=1), 3)


@pytest.mark.expects_findings
def test_its_barriers_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without those that the pass adds, the simulator finds races."""
    monkeypatch.setattr(double_buffer, "SYNCTHREADS", double_buffer.FENCE_PROXY_ASYNC)
    kernel = _kernel(5)
    with pytest.raises(AssertionError, match="findings"):
        _check(kernel, 5)
