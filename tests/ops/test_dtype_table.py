"""Every operation over every element type, as docs/dtypes.md says it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.dtype_maths import CHECKS
from tests.ops.dtype_table import TARGETS, row, written


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("operation", CHECKS)
def test_row(operation: str, target: Any) -> None:
    assert row(operation, target) == written()[operation]


def test_the_page_has_no_other_rows() -> None:
    assert list(written()) == list(CHECKS)
