"""Programs as authors of kernels write them, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.kernels import AMPERE, HOPPER
from tests.ops.author_programs import CHECKS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_programs(target: Any, check: Any) -> None:
    torch.manual_seed(0)
    check(target, "cuda")
