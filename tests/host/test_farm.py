"""Kernels built in worker processes: the same machine code, launched with this one's variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tilelab.autotuner.farm import BuildFailed, Farm, can_fork
from tilelab.errors import TileError
from tilelab.kernel import JITKernel
from tilelab.runtime.module import LoadedKernel
from tilelab.runtime.shipping import pack, unpack

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are not started by forking here")

CONFIGS = [
    {"block": 64},
    {"block": 128},
    {"block": 1 << 20},
]  # the last needs 4 MiB of shared memory


def shifted(block: int) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def add_scalar(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32"), x: T.float32):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            tile = T.alloc_shared((block,), "float32")
            T.copy(A[bx * block : (bx + 1) * block], tile)
            for i in T.Parallel(block):
                C[bx * block + i] = tile[i] + x

    return add_scalar


def make(config: dict[str, int]) -> JITKernel:
    """As the tuner makes kernels: traced here, lowered when somebody looks."""
    kernel: JITKernel = tilelab.jit(out_idx=1)(shifted).compile(**config)
    return kernel


@pytest.fixture
def farm() -> Iterator[Farm]:
    found = Farm(make, CONFIGS, workers=2)
    yield found
    found.close()


def test_workers_compile_what_this_process_would(farm: Farm) -> None:
    for number, config in enumerate(CONFIGS[:2]):
        kernel, own = farm.kernel(config, number, 120), make(config)
        assert kernel.cubin.image == own.cubin.image
        assert kernel.get_kernel_source() == own.get_kernel_source()


def test_a_config_that_cannot_be_built_says_why(farm: Farm) -> None:
    with pytest.raises(TileError) as here:
        _ = make(CONFIGS[2]).cubin
    with pytest.raises(BuildFailed) as there:
        farm.kernel(CONFIGS[2], 2, 120)
    assert str(there.value).partition(":")[0] == here.value.code


def test_a_launch_refers_to_the_variables_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sender, receiver = make(CONFIGS[0]), make(CONFIGS[0])
    shipment = sender.ship()
    monkeypatch.setattr(JITKernel, "_lower", lambda *_: pytest.fail("it was lowered again"))
    receiver.receive(shipment)
    variant = unpack(receiver.prim_func, shipment)
    (kernel,) = variant.program.kernels
    assert set(map(id, kernel.scalars)) == set(map(id, receiver.signature.variables))
    fake: Any = type("Function", (), {"handle": 0})()
    launched = LoadedKernel(kernel, fake, receiver.signature, 0, resident=1)
    assert launched.grid((130, 1.0)) == (3, 1, 1)
    again = pack(receiver.prim_func, shipment.target, shipment.aligned, variant)
    assert again.program == shipment.program
