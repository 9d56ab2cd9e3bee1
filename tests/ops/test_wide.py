"""Wide accesses of elementwise loops: the results, and 16-byte instructions where rows allow."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests.kernels import AMPERE, HOPPER
from tests.ops.wide_programs import CASES, WIDE
from tilelab.runtime.sass import disassemble, instructions

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("name", CASES)
def test_result(target: Any, name: str) -> None:
    torch.manual_seed(0)
    program, inputs, want = CASES[name]("cpu")
    kernel = tilelab.compile(program, out_idx=[-1], target=target)
    report = kernel.simulate(*inputs)
    assert report.ok, str(report)
    got = kernel(*inputs)
    assert torch.allclose(got.float(), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str) -> None:
    """Loads and stores of 16 bytes; no register array in local memory."""
    program, _, _ = CASES[name]("cpu")
    kernel = tilelab.compile(program, out_idx=[-1], target=HOPPER)
    opcodes = [i.opcode for i in instructions(disassemble(kernel.cubin.image))]
    for base, least in zip(("LDG", "STG"), WIDE[name], strict=True):
        wide = sum(o.startswith(base) and ".128" in o for o in opcodes)
        assert wide >= least if least else wide == 0, (base, wide)
    assert not any(o.startswith(("LDL", "STL")) for o in opcodes)
    if name == "small_integers_half":
        assert not any(o.startswith("I2F") for o in opcodes)
