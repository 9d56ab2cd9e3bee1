"""Instruction records on a real GPU: the tests that the simulator passes, with the same numpy
formulas, run on the chip from the same thread IR. So meanings are checked against hardware."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.sim import test_instructions as instructions
from tests.sim.programs import Block, ampere_gemm, hopper_gemm
from tests.sim.test_gemm import gemm_arrays
from tests.sim.test_instructions import (  # noqa: F401  (run here, on the GPU)
    test_cp_async_and_zero_fill,
    test_ldmatrix_and_stmatrix,
    test_mma_sync,
    test_quad_transpose,
    test_shuffles,
    test_tma_load_and_store,
    test_wgmma_rs_takes_a_from_registers,
    test_wgmma_ss_reads_what_the_descriptor_says,
)
from tilelab.codegen import emit
from tilelab.runtime import driver, nvrtc
from tilelab.runtime.arguments import Signature
from tilelab.runtime.launch import Launcher
from tilelab.runtime.module import Variant
from tilelab.thread import Program


def launch(program: Program, arrays: dict[str, np.ndarray]) -> None:
    """Run a program on the GPU; numpy arrays by name change in place."""

    def build(device: int, aligned: bool) -> Variant:
        arch = driver.device_info(device).target.arch
        cubin = nvrtc.compile_cubin(emit(program).text, arch)
        return Variant(program, cubin, tuple(k.name for k in program.kernels))

    signature = Signature(program.name, program.params, program.sizes, program.outputs)
    tensors = [_to_gpu(arrays[p.name]) for p in program.params]
    Launcher(signature, build).run(signature.bind(tuple(tensors)), 0)
    torch.cuda.synchronize()
    for param, tensor in zip(program.params, tensors, strict=True):
        array = arrays[param.name]
        bits = (
            tensor.view(torch.int16).cpu().numpy() if array.itemsize == 2 else tensor.cpu().numpy()
        )
        array[...] = bits.view(array.dtype)


def _to_gpu(array: np.ndarray) -> torch.Tensor:
    if array.itemsize != 2:
        return torch.from_numpy(array.copy()).cuda()
    kind = torch.float16 if array.dtype == np.float16 else torch.bfloat16
    return torch.from_numpy(array.view(np.int16).copy()).cuda().view(kind)


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the simulator's tests run their programs here."""

    def run(b: Block, /, **arrays: np.ndarray) -> None:
        launch(b.program(), arrays)

    monkeypatch.setattr(instructions, "run", run)


@pytest.mark.parametrize("make", [hopper_gemm, ampere_gemm])
def test_handwritten_gemm(make) -> None:
    arrays, expected = gemm_arrays(256, 384, 512)
    launch(make(256, 384, 512), arrays)
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-4, atol=1e-2)
