"""Tests of this folder need a GPU; elsewhere they are skipped. Runs with pytest alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelab.runtime import driver

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here `gpu`, and skip it where there is none."""
    found = driver.find()
    for item in items:
        if _HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.gpu)
        if found is None:
            _, problem = driver.library_problem()
            item.add_marker(pytest.mark.skip(reason=problem or "the driver finds no GPU"))
