"""Small names and layouts on a GPU: the programs of tests/ops/small_programs.py and
layout_programs.py; printing and trapping in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.kernels import AMPERE, HOPPER
from tests.ops.layout_programs import MODES, check_elements, check_gemm
from tests.ops.small_programs import CHECKS, PRINTED

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("number", range(len(CHECKS)))
def test_programs(target: Any, number: int) -> None:
    torch.manual_seed(0)
    CHECKS[number](target, "cuda")


@target
@pytest.mark.parametrize("mode", MODES)
def test_layouts(target: Any, mode: str) -> None:
    for stages in (0, 2):
        check_gemm(target, "cuda", mode, stages)
    check_elements(target, "cuda")


def _alone(text: str) -> subprocess.CompletedProcess[str]:
    head = (
        "import torch\nfrom tests.kernels import HOPPER\n"
        "from tests.ops.small_programs import asserting, printing\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + text], capture_output=True, text=True, check=False
    )


def test_print() -> None:
    done = _alone(
        "printing(HOPPER)(torch.arange(6).half().view(2, 3).cuda())\ntorch.cuda.synchronize()"
    )
    assert sorted(done.stdout.splitlines()) == sorted(PRINTED.splitlines()), done.stderr


def test_asserts_trap() -> None:
    good = _alone("asserting(HOPPER)(torch.arange(64).int().cuda())\ntorch.cuda.synchronize()")
    assert good.returncode == 0, good.stderr
    bad = _alone("asserting(HOPPER)(torch.arange(64).int().cuda() - 1)\ntorch.cuda.synchronize()")
    assert bad.returncode != 0
    assert "assertion failed: negative, not 5 (small_programs.py, line " in bad.stdout
