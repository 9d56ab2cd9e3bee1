"""A build that spills says which tile sizes would not."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelab
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
