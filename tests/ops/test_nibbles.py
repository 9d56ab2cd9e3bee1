"""4-bit integers as 16-bit floats: exact for every byte, and two at a time where they can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilelab
from tests.kernels import AMPERE, HOPPER
from tests.ops.nibble_programs import CASES, inputs
from tilelab.runtime.sass import disassemble, instructions

cases = pytest.mark.parametrize("name", CASES)
dtypes = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])


@cases
@dtypes
@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_every_byte(name: str, dtype: str, target: Any) -> None:
    make, want, paired = CASES[name]
    kernel = tilelab.compile(make(dtype), out_idx=[-1], target=target)
    report = kernel.simulate(inputs(name))
    assert report.ok, str(report)
    got = kernel(inputs(name)).reshape(-1)
    assert torch.equal(got, want("cpu").to(getattr(torch, dtype)))
    assert ("nibbles" in kernel.get_kernel_source()) == paired
    said = any("by pairs" in note.text for _, note in kernel.trace.notes())
    assert said == paired


def _opcodes(kernel: Any) -> list[str]:
    return [i.opcode.split(".")[0] for i in instructions(disassemble(kernel.cubin.image))]


@dtypes
def test_machine_code(dtype: str) -> None:
    """For a pair: one permutation, one logical operation, one subtraction."""
    make, _, _ = CASES["minus_8"]
    kernel = tilelab.compile(make(dtype), out_idx=[-1], target=HOPPER)
    opcodes = _opcodes(kernel)
    pairs = 512 // 32 // 2
    assert opcodes.count("PRMT") <= pairs + 1
    assert opcodes.count("LOP3") <= pairs + 4
    assert sum(opcodes.count(o) for o in ("HADD2", "HFMA2")) <= pairs + 1
    assert opcodes.count("I2F") == 0 and opcodes.count("I2FP") == 0
    assert not np.intersect1d(opcodes, ["LDL", "STL"]).size
