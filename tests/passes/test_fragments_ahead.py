"""Fragments of mma.sync a step of K ahead: results, structure, and where it must not be."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, gemm
from tilelab.runtime import nvrtc, sass
from tilelab.sim import simulate
from tilelab.target import SM80

AHEAD = "fragments come a step of K before their use"
NUMPY = {"float16": np.float16, "int8": np.int8}


def _compiled(function: Any, **switches: Any) -> Any:
    configs = {f"tl.{k}": v for k, v in switches.items()}
    return tilelab.compile(function, target=AMPERE, pass_configs=configs)


def _notes(kernel: Any) -> str:
    return "\n".join(note.text for _, note in kernel.trace.notes())


def _check(
    kernel: Any, m: int, n: int, k: int, ta: bool = False, tb: bool = False, dtype: str = "float16",
    out: str = "float16",
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    c = np.full((m, n), 99, out)
    left, right = (a.T if ta else a).astype(NUMPY[dtype]), (b.T if tb else b).astype(NUMPY[dtype])
    inputs = {"A": left.copy(), "B": right.copy(), "C": c}
    report = simulate(kernel.program, inputs)
    assert report.ok, report
    assert np.array_equal(c, (a @ b).astype(out))


@pytest.mark.parametrize(
    "how",
    [
        {"bk": 32}, {"bk": 64, "stages": 2}, {"bk": 32, "stages": 4}, {"bk": 32, "ta": True},
        {"bk": 32, "tb": True}, {"bk": 64, "bn": 24}, {"bk": 32, "threads": 256, "bm": 128},
    ],
)  # fmt: skip
def test_results(how: dict[str, Any]) -> None:
    tiles: dict[str, Any] = {"bm": 64, "bn": 64, **how}
    m, n, k = 2 * tiles["bm"] - 8, 2 * tiles["bn"] - 8, 3 * tiles["bk"] - 8
    kernel = _compiled(gemm(m, n, k, **tiles))
    assert AHEAD in _notes(kernel)
    _check(kernel, m, n, k, how.get("ta", False), how.get("tb", False))


def test_sizes_known_at_the_call() -> None:
    m, n, k = (T.dynamic(name) for name in "MNK")
    kernel = _compiled(gemm(m, n, k, bm=64, bn=64, bk=32))
    assert AHEAD in _notes(kernel)
    for sizes in [(72, 64, 40), (8, 8, 8), (64, 64, 0)]:
        _check(kernel, *sizes)


def test_a_loop_that_is_entered_again() -> None:
    """The last fragments of one run are read before the next run's copies overwrite their slot."""
    M, N, K = 64, 64, 96

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((M, N), "float")
            T.clear(c)
            for _again in T.serial(2):
                for k in T.Pipelined(K // 32, num_stages=3):
                    T.copy(A[0, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C)

    made = _compiled(kernel)
    assert AHEAD in _notes(made)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((M, K), (K, N)))
    for schedule in ("late", "eager", "random"):
        c = np.full((M, N), np.nan, np.float32)
        report = simulate(made.program, {"A": a, "B": b, "C": c}, schedule=schedule)
        assert report.ok, report
        assert np.array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))


def test_where_it_is_not() -> None:
    """An odd number of steps, sums that fill the registers, and the switches."""
    plain = {"bm": 64, "bn": 64, "bk": 32}
    for kernel in (
        _compiled(gemm(64, 64, 96, bm=64, bn=64, bk=48)),
        _compiled(gemm(128, 256, 64, bm=128, bn=256, bk=32)),
        _compiled(gemm(64, 64, 96, **plain), fragments_ahead=False),
        _compiled(gemm(64, 64, 96, **plain), plain_pipeline=True),
    ):
        assert AHEAD not in _notes(kernel)


@pytest.mark.parametrize("tiles", [(128, 128, 64, 3, 128), (128, 128, 32, 4, 128),
                                   (128, 256, 32, 3, 256)])  # fmt: skip
def test_machine_code(tiles: tuple[int, ...]) -> None:
    """No spills, and products go on behind the loop's only barrier: ldmatrix of the next tile
    stands among them."""
    names = ("bm", "bn", "bk", "stages", "threads")
    kernel = _compiled(gemm(1024, 1024, 1024, **dict(zip(names, tiles, strict=True))))
    cubin = nvrtc.compile_cubin(kernel.get_kernel_source(), SM80.arch)
    assert not any(r.spills for r in cubin.resources.values()), cubin.resources
    code = re.findall(r"\b(HMMA|LDSM|BAR|LDGSTS)\b", sass.disassemble(cubin.image))
    barrier = len(code) - 1 - code[::-1].index("BAR")
    behind = code[barrier:]
    assert behind.count("HMMA") > behind.index("LDSM") > 0
