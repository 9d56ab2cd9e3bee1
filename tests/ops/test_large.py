"""Tensors of more than 2**31 elements in the simulator; tests/gpu runs the same programs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.large_programs import check_flat, check_matrix
from tilelab.runtime.simulated import Policy, simulating


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("check", [check_flat, check_matrix])
def test_large_tensors(target: Any, check: Any) -> None:
    """Without checks: their marks would take as much memory as the tensors do."""
    with simulating(Policy(checks=False)):
        check(target, "cpu")
