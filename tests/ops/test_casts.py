"""Conversions of every encoding in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.cast_programs import PAIRS, check_cast


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_every_encoding(target: Any, source: str, to: str) -> None:
    check_cast(target, "cpu", source, to)
