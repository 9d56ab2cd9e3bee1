"""What all tests share: golden texts, and how many random cases are drawn.

Runs where only pytest, numpy, torch and cuda-bindings are installed, as tests/gpu must.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

try:
    from hypothesis import settings
except ImportError:  # a machine for tests/gpu alone
    settings = None  # type: ignore[assignment, misc]

GOLDEN = Path(__file__).parent / "golden"

if settings is not None:
    settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
    settings.register_profile("full", max_examples=2000, deadline=None)
    settings.load_profile("full" if os.environ.get("TILELAB_FULL") else "quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest --accept` rewrites the golden texts that differ; `--checked-everything` is told of
    in tests/checked.py."""
    parser.addoption("--accept", action="store_true", help="accept new golden texts")
    parser.addoption(
        "--checked-everything", action="store_true",
        help="simulate every run of the suite under all checks, samples under 20 schedules",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Markers, and the plugin that `--checked-everything` asks for."""
    config.addinivalue_line("markers", "expects_findings: simulates a program that is wrong")
    if config.getoption("--checked-everything"):
        from tests.checked import Checked  # needs the simulator, which tests/gpu does not

        config.pluginmanager.register(Checked(), "checked-everything")


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """What is said once in a process is said once in a test, whichever tests ran before."""
    monkeypatch.setattr("tilelab.logs._told", set())


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` fails unless tests/golden/<name>.txt holds `text`."""
    accept = bool(request.config.getoption("--accept"))

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        text = text if text.endswith("\n") else text + "\n"
        known = path.read_text("utf-8") if path.exists() else ""
        if known == text:
            return
        if accept:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            return
        sides = (known.splitlines(), text.splitlines())
        change = "\n".join(difflib.unified_diff(*sides, f"golden/{name}.txt", "now", lineterm=""))
        pytest.fail(f"{change}\nIf the new text is right: pytest --accept", pytrace=False)

    return check
