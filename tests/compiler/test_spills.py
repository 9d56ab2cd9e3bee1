"""A build that spills says which tile sizes would not; products in flight are not serialised."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, gemm


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=["ampere", "hopper"])
def test_the_warning_names_what_fits(target: Any) -> None:
    """128x256 sums are 256 registers for each of 128 threads; what is named does not spill."""
    tiles = {"bm": 128, "bn": 256, "bk": 32, "stages": 2}
    kernel = tilelab.compile(gemm(512, 512, 512, **tiles, threads=128), target=target)
    with pytest.warns(RuntimeWarning) as caught:
        _ = kernel.cubin
    texts = [str(w.message) for w in caught]
    codes = {m[1] for t in texts if (m := re.search(r"kernel: (\w+):", t))}
    assert "spill" in codes and (target is AMPERE or "C7511" in codes)
    for text in texts:
        assert "fragments take 256 registers of a thread, 215 fit" in text
        assert "128x128 instead of 128x256 for C_local would; so would 256 threads" in text
    for fits in ({"bn": 128}, {"threads": 256}):
        function = gemm(512, 512, 512, **{**tiles, "threads": 128, **fits})
        better = tilelab.compile(function, target=target)
        assert not any(r.spills for r in better.resources.values())


@pytest.mark.parametrize("stages", [3, 4])
@pytest.mark.parametrize("begins", ["zeros", "values"])
def test_sums_that_begin_before_the_loop_stay_out_of_it(stages: int, begins: str) -> None:
    """With an extent known at run time the first product cannot overwrite them."""
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def product(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            if begins == "zeros":
                T.clear(sums)
            else:
                T.copy(C[by * 128, bx * 128], sums)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=stages):
                T.copy(A[by * 128, ko * 64], A_shared)
                T.copy(B[ko * 64, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, sums)
            T.copy(sums, C[by * 128, bx * 128])

    kernel = tilelab.compile(product, target=HOPPER)
    assert "warpgroup_wait<1>" in kernel.get_kernel_source()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel.cubin
