"""Tensors of more than 2**31 elements in the simulator; tests/gpu runs the same programs."""

from __future__ import annotations

from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops import index_programs
from tests.ops.large_programs import check_flat, check_matrix
from tilelab.runtime.simulated import Policy, simulating


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("check", [check_flat, check_matrix])
def test_large_tensors(target: Any, check: Any) -> None:
    """Without checks: their marks would take as much memory as the tensors do."""
    with simulating(Policy(checks=False)):
        check(target, "cpu")


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("body", index_programs.BODIES, ids=lambda b: b.__name__)
def test_offsets_have_64_bits(target: Any, dtype: str, body: Any) -> None:
    """In every way of reaching an element, whether extents are constants or come with the call:
    products that number elements are taken in 64 bits."""
    for shape in (index_programs.LARGE, T.dynamic("M, N")):
        made = tilelab.compile(index_programs.kernel(body, shape, dtype), target=target)
        found = [o for o in index_programs.offsets(made.get_kernel_source()) if "*" in o]
        assert found or "CUtensorMap" in made.get_kernel_source()
        assert [o for o in found if "i64" not in o] == []
