"""T.transpose, T.any_of, T.all_of, T.print, checks and limits in the simulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.small_programs import CHECKS, PRINTED, asserting, printing
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("number", range(len(CHECKS)))
def test_programs(target: Any, number: int) -> None:
    torch.manual_seed(0)
    CHECKS[number](target, "cpu")


@pytest.mark.parametrize("at", [(8, 0), (0, 36), (-9, 0)])
def test_copies_that_begin_past_the_end(at: tuple[int, int]) -> None:
    """Nothing of such a tile exists, whatever it is: a copy clips tails, and this is a mistake."""
    with pytest.raises(IndexError, match=r"TL1107: the slice .* exceeds axis [01] of A"):

        @T.prim_func
        def main(A: T.Tensor((8, 36), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((4, 4), "float32")
                T.copy(A[at[0], at[1]], s)
                T.copy(s, A[4, 33])


@target
def test_print(target: Any, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = printing(target)
    kernel(torch.arange(6).half().view(2, 3))
    assert capsys.readouterr().out == PRINTED
    assert "printf(" in kernel.get_kernel_source()


def test_prints_are_in_the_report() -> None:
    kernel = printing(HOPPER)
    report = kernel.simulate(torch.arange(6).half().view(2, 3))
    assert [str(line) for line in report.printed] == PRINTED.splitlines()
    first = report.printed[0]
    assert (first.block, first.thread, first.loc is not None) == ((1,), (40,), True)
    said = [line["text"] for line in json.loads(report.to_json())["printed"]]
    assert said == [line.text for line in report.printed]


@target
@pytest.mark.expects_findings
def test_asserts(target: Any) -> None:
    kernel = asserting(target)
    a = torch.arange(64, dtype=torch.int32)
    assert torch.equal(kernel(a), a)
    a[40] = -1
    with pytest.raises(TileError, match="negative, not 5") as caught:
        kernel(a)
    assert "TL2020" in str(caught.value) and "block (1,), warp 0, lane 8" in str(caught.value)
    a[40], a[0] = 1, 100
    with pytest.raises(TileError, match=r"assertion failed: too large\n"):
        kernel(a)


def test_a_check_that_is_known_now() -> None:
    T.device_assert(1 < 2)
    with pytest.raises(AssertionError, match="never"):
        T.device_assert(1 > 2, "never")


def _error(program: Callable[[Any, Any], Any]) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 16), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((8, 16), "float32")
                f = T.alloc_fragment((8, 16), "float32")
                T.copy(A, s)
                program(s, f)

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    found = _error(lambda s, f: T.transpose(s, f))
    assert found.code == "TL1526"
    assert found.message == "transpose of s (8x16) into f (8x16)"
    assert "into itself" in _error(lambda s, f: T.transpose(s[:, 0:8], s[:, 8:16])).message
    assert _error(lambda s, f: T.any_of(f)).code == "TL1535"
    assert _error(lambda s, f: T.print(np.zeros(3))).code == "TL1534"
    assert _error(lambda s, f: T.print([1])).code == "TL1534"
    assert _error(lambda s, f: T.infinity("float8_e4m3fn")).code == "TL1492"
