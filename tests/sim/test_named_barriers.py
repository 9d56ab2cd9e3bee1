"""Named barriers whose numbers are computed: compiled where some are left for roles, told in
sentences where threads wait for ever."""

from __future__ import annotations

from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER
from tests.sim.detection.barriers import named_barriers_crossed
from tilelab.errors import TileValueError


def roles(bounded: bool, exchange: bool) -> Any:
    """Two roles that meet at a barrier whose number is data; whether its range shows, and whether
    threads of a role exchange values before."""

    @T.prim_func
    def main(
        N: T.Tensor((1,), "int32"), A: T.Tensor((2, 128), "int32"), B: T.Tensor((2, 128), "int32")
    ):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 128), "int32")
            tx = T.get_thread_binding()
            number = N[0] % 4 + 1 if bounded else N[0]
            with T.ws(0):
                if exchange:
                    s[0, tx] = A[0, tx]
                B[0, tx] = s[0, 127 - tx] if exchange else A[0, tx]
                T.sync_threads(number, 256)
            with T.ws(1):
                if exchange:
                    s[1, tx - 128] = A[1, tx - 128]
                B[1, tx - 128] = s[1, 255 - tx] if exchange else A[1, tx - 128]
                T.sync_threads(number, 256)

    return main


@pytest.mark.parametrize(("bounded", "exchange"), [(True, True), (False, False)])
def test_roles_meet_at_a_barrier_out_of_data(bounded: bool, exchange: bool) -> None:
    import torch

    kernel = tilelab.compile(roles(bounded, exchange), target=HOPPER)
    rows = torch.arange(256, dtype=torch.int32).reshape(2, 128)
    out = torch.zeros_like(rows)
    report = kernel.simulate(torch.tensor([6], dtype=torch.int32), rows, out)
    assert report.ok, str(report)
    assert bool((out == (rows.flip(1) if exchange else rows)).all())


def test_roles_without_a_barrier_left_are_told() -> None:
    with pytest.raises(TileValueError, match="128 threads of a role wait") as raised:
        tilelab.compile(roles(bounded=False, exchange=True), target=HOPPER)
    assert raised.value.code == "TL1758" and raised.value.loc is not None
    assert "whose range shows" in str(raised.value)


def test_several_threads_wait() -> None:
    message = named_barriers_crossed.simulate(ok=False).findings[0].message
    assert "threads 0 to 127 wait at" in message and "waits" not in message
