"""Exercise 01's formula against what the compiler really asks for."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from judge.exercise import load_exercise

EXERCISE = load_exercise("01")


def _checks() -> Any:
    spec = importlib.util.spec_from_file_location("checks_01", EXERCISE.folder / "checks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tile", "stages", "expected"),
    [((128, 128, 64), 3, 98_304), ((128, 128, 64), 2, 65_536), ((64, 128, 32), 4, 49_152),
     ((64, 64, 64), 0, 16_384)],
)  # fmt: skip
def test_formula_equals_compile(tile: tuple[int, int, int], stages: int, expected: int) -> None:
    """Bytes by the reference, by a real compile, and by hand."""
    checks = _checks()
    assert checks.compiled_bytes(*tile, stages) == expected
    assert checks.budget(*tile, 16, stages, 228 * 1024)["total_bytes"] == expected
