"""Every operation over every element type, as docs/dtypes.md says it: on the simulator, and as
text that NVRTC takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelab
from tests.ops.dtype_maths import CHECKS
from tests.ops.dtype_table import TARGETS, row, written
from tests.thread.nvrtc import available
from tilelab.runtime import nvrtc


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that the test makes."""
    made: list[Any] = []
    real: Callable[..., Any] = tilelab.compile

    def recording(*args: Any, **kwargs: Any) -> Any:
        made.append(real(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(tilelab, "compile", recording)
    return made


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("operation", CHECKS)
def test_row(operation: str, target: Any, compiled: list[Any]) -> None:
    assert row(operation, target) == written()[operation]
    assert compiled
    if not available:
        return
    text = _as_one(dict.fromkeys(k.get_kernel_source(kernel_only=False) for k in compiled))
    assert nvrtc.compile_cubin(text, compiled[0].target.arch).image


def test_the_page_has_no_other_rows() -> None:
    assert list(written()) == list(CHECKS)


def _as_one(sources: dict[str, None]) -> str:
    """Sources as one, each in a namespace of its own: headers are read once."""
    headers: dict[str, None] = {}
    parts: list[str] = []
    for number, source in enumerate(sources):
        lines = source.replace('extern "C" ', "").splitlines()
        headers.update(dict.fromkeys(line for line in lines if line.startswith("#include")))
        own = [line for line in lines if not line.startswith("#include")]
        parts += [f"namespace kernel_{number} {{", *own, "}"]
    return "\n".join([*headers, *parts])
