"""The measured schedule on a GPU: the stamped build computes the same, and its times are a
schedule: no slot is loaded before it is free, none is used before it was asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests import schedules
from tests.attention import flash_attention
from tests.kernels import AMPERE, HOPPER, gemm
from tilelab.widgets.times import measured

pytestmark = pytest.mark.gpu
PROGRAMS: dict[str, Any] = {
    "gemm": lambda: gemm(2048, 2048, 2048),
    "two consumers": lambda: gemm(2048, 2048, 2048, bn=256, threads=256, stages=2),
    "attention": lambda: flash_attention((1, 1024, 8, 64)),
}


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_stamped_build_computes_the_same(name: str, target: Any) -> None:
    torch.manual_seed(0)
    kernel, stamped = (
        tilelab.compile(PROGRAMS[name](), target=target, out_idx=-1, pass_configs=configs)
        for configs in ({}, {"tl.stamp_schedule": 1})
    )
    inputs = kernel.get_profiler().make_inputs()
    assert torch.equal(kernel(*inputs), stamped(*inputs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_measured_times_are_a_schedule(name: str) -> None:
    kernel = tilelab.compile(PROGRAMS[name](), target=HOPPER, out_idx=-1)
    for view in measured(kernel, block=2):
        print(view.to_text())
        assert view.source == "measured" and view.block == 2 and view.total >= 1
        assert 0 < view.waited < view.cycles
        schedules.check(view)


def test_a_block_that_is_not_there_is_named() -> None:
    kernel = tilelab.compile(gemm(256, 256, 512), target=HOPPER, out_idx=-1)
    with pytest.raises(tilelab.errors.TileError, match="set no stamp"):
        measured(kernel, block=10_000)
