"""Golden texts of whole kernels, beside a numeric check of the same kernels elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER, build
from tilelab.ir.printer import to_text

CASES: dict[str, dict[str, Any]] = {
    "seed": {},
    "tails": {"M": 1000, "N": 1000, "K": 500},
    "small": {"M": 33, "N": 47, "K": 29, "bm": 32, "bn": 32, "bk": 32, "stages": 2},
    "no_stages": {"M": 256, "N": 256, "K": 256, "stages": 0},
    "relu_swizzle": {"relu": True, "swizzle": 4},
}


@pytest.mark.parametrize("target", ["hopper", "ampere"])
@pytest.mark.parametrize("name", list(CASES))
def test_kernel_text(golden: Callable[[str, str], None], name: str, target: str) -> None:
    config = {"M": 1024, "N": 1024, "K": 1024, **CASES[name]}
    sizes = [config.pop(k) for k in "MNK"]
    kernel = build(*sizes, target=HOPPER if target == "hopper" else AMPERE, **config)
    source = kernel.get_kernel_source()
    golden(f"kernel_{name}_{target}", source[source.index('extern "C"') :])


def test_passes_of_the_seed(golden: Callable[[str, str], None]) -> None:
    """The program after every pass that changed it."""
    kernel = build(1024, 1024, 1024, target=HOPPER)
    parts = [f"==== {s.name}\n{to_text(s.after)}" for s in kernel.trace.steps if s.changed]
    golden("passes_seed_hopper", "\n".join(parts))
