"""Loops of threads that fill a tile band by band: vectors, and a barrier only where bands meet."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER


def unpacked(step: int) -> Any:
    """Each thread unpacks 4 bytes of a row of 16 at a time; `step`: rows from band to band, of
    which a band has 32."""

    @T.prim_func
    def main(B: T.Tensor((128, 16), "uint8"), Y: T.Tensor((128, 32), "float16")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            packed = T.alloc_shared((128, 16), "uint8")
            tile = T.alloc_shared((128, 32), "float16")
            held, made = T.alloc_local((4,), "uint8"), T.alloc_local((8,), "float16")
            T.copy(B, packed)
            T.clear(tile)
            for i in T.serial(4):
                for v in T.vectorized(4):
                    held[v] = packed[i * step + (t * 4 + v) // 16, (t * 4 + v) % 16]
                for v in T.serial(8):
                    made[v] = T.cast((held[v // 2] >> (v % 2 * 4)) & 15, "float16")
                for v in T.vectorized(8):
                    tile[i * step + (t * 8 + v) // 32, (t * 8 + v) % 32] = made[v]
            T.copy(tile, Y)

    return main


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("step", [32, 16])
def test_bands(step: int, target: Any) -> None:
    packed = torch.randint(0, 256, (128, 16), dtype=torch.uint8)
    want = torch.stack([packed & 15, packed >> 4], -1).reshape(128, 32).half()
    want[3 * step + 32 :] = 0
    kernel = tilelab.compile(unpacked(step), out_idx=[-1], target=target)
    report = kernel.simulate(packed)
    assert report.ok, str(report)
    assert torch.equal(kernel(packed), want)
    text = kernel.get_kernel_source()
    loop = text[text.index("i < 4") :]
    assert "uint4*>" in loop and "reinterpret_cast<u32*>(packed_run)" in loop
    assert ("__syncthreads" in loop[: loop.index("made[v")]) == (step == 16)
