"""T.reshape and T.view on a GPU: the programs of tests/ops/view_programs.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.kernels import AMPERE, HOPPER
from tests.ops.view_programs import PROGRAMS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program: Any, target: dict[str, str]) -> None:
    torch.manual_seed(0)
    program("cuda", target)
