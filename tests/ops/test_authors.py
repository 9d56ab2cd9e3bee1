"""Programs as authors of kernels write them, in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.author_programs import CHECKS
from tests.thread.nvrtc import available

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_programs(target: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are right, and NVRTC takes the CUDA text where it is installed."""
    made: list[Any] = []
    plain = tilelab.compile

    def compile_and_keep(*args: Any, **options: Any) -> Any:
        made.append(plain(*args, **options))
        return made[-1]

    monkeypatch.setattr(tilelab, "compile", compile_and_keep)
    torch.manual_seed(0)
    check(target, "cpu")
    assert made
    if available:
        assert all(kernel.cubin for kernel in made)


def test_copies_of_other_extents() -> None:
    with pytest.raises(ValueError, match="TL1503: copy of a 8x2 tile of A into a 8x3 tile of B"):

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float16"), B: T.Tensor((8, 8), "float16")):
            with T.Kernel(1, threads=32):
                T.copy(A[:, :2], B[:, :3])
