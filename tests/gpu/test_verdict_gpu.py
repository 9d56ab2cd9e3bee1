"""The simulator's verdict is the GPU's: right programs give the same bits on both.

The programs are the right twins of the detection matrix and those of the synchronisation tests;
their faulty twins are not run on a GPU, where what they do is undefined.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests.sim import test_masks as masks
from tests.sim.detection.matrix import Entry
from tests.sim.detection.test_matrix import ENTRIES
from tests.sim.sync_programs import PROGRAMS, arrays, compiled

pytestmark = pytest.mark.gpu

ORDER_OF_SUMS = {
    "races-split_k_without_atomics": "blocks add in the order in which they come",
    "races-sum_without_atomics": "blocks add in the order in which they come",
}
ROUNDING = (
    "gemm",
    "persistent",
    "dequant",
    "decode",
    "attention",
    "nested",
    "by-hand",
    "uninitialised-gemm",
    "reductions",
    "scans",
    "rows",
)
"""Programs whose sums the tensor core or the lanes take in another order than numpy."""


def _both(kernel: Any, inputs: list[Any]) -> list[tuple[Any, Any]]:
    """Every tensor after a run on the simulator, and after one on the GPU."""
    there = [x.cuda() if torch.is_tensor(x) else x for x in inputs]
    here = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    results = [kernel(*here), kernel(*there)]
    torch.cuda.synchronize()
    pairs = [(a, b.cpu()) for a, b in zip(here, there, strict=True) if torch.is_tensor(a)]
    if torch.is_tensor(results[0]):
        pairs.append((results[0], results[1].cpu()))
    return pairs


def _compare(name: str, pairs: list[tuple[Any, Any]]) -> None:
    for simulated, measured in pairs:
        if name in ORDER_OF_SUMS or name.startswith(ROUNDING):
            torch.testing.assert_close(
                measured.float(), simulated.float(), rtol=2e-3, atol=2e-2, equal_nan=True
            )
        else:
            assert torch.equal(measured, simulated)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_right_twins(entry: Entry) -> None:
    kernel = entry.kernel(ok=True)
    if entry.name == "races-last_block_by_a_plain_counter":
        pytest.skip("which block comes first is open on a GPU")
    _compare(entry.name, _both(kernel, entry.arguments(kernel)))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_synchronised_programs(name: str) -> None:
    kernel = compiled(name, "sm_90a")
    _compare(name, _both(kernel, [torch.from_numpy(a) for a in arrays(kernel).values()]))


@pytest.mark.parametrize("kind", masks.KINDS)
def test_lanes_that_exchange_values_from_the_sides_of_a_branch(kind: str) -> None:
    kernel = tilelab.compile(masks.exchanged(kind))
    a = torch.randint(0, 9, (3, masks.LANES), generator=torch.Generator().manual_seed(2)).int()
    _compare(kind, _both(kernel, [a, torch.zeros_like(a)]))


@pytest.mark.parametrize("parts", [2, 3])
def test_a_warp_that_meets_from_the_sides_of_a_branch(parts: int) -> None:
    kernel = tilelab.compile(masks.both_sides(parts), pass_configs=masks.BY_HAND)
    a = torch.randint(0, 500, (4, 48), generator=torch.Generator().manual_seed(1)).int()
    _compare("sides", _both(kernel, [a, torch.zeros_like(a)]))
