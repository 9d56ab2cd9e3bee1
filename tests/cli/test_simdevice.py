"""Programs for CUDA on a machine without: where tensors lie, what torch.cuda says, and that all
of it is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tilelab.commands.simdevice import simulated_device
from tilelab.errors import TileNotSupported
from tilelab.target import SM80, SM90A

torch = pytest.importorskip("torch")


@pytest.fixture
def device() -> Iterator[None]:
    with simulated_device(SM90A):
        yield


MAKERS: dict[str, Any] = {
    "randn": lambda: torch.randn(2, 2, device="cuda"),
    "half": lambda: torch.randn(2, 2, device="cuda", dtype=torch.float16),
    "cuda()": lambda: torch.zeros(3).cuda(),
    "cuda(0)": lambda: torch.zeros(3).cuda(0),
    "to": lambda: torch.zeros(3).to("cuda:0"),
    "to device": lambda: torch.zeros(3).to(torch.device("cuda"), torch.float16),
    "empty_like": lambda: torch.empty_like(torch.zeros(3), device="cuda"),
    "tensor": lambda: torch.tensor([1, 2], device=torch.device("cuda", 0)),
    "as_tensor": lambda: torch.as_tensor([1.0], device="cuda"),
    "arange": lambda: torch.arange(4, device="cuda"),
    "full": lambda: torch.full((2,), 1.0, device="cuda"),
    "randint": lambda: torch.randint(0, 3, (2,), device="cuda"),
    "rand_like": lambda: torch.rand_like(torch.zeros(2), device="cuda"),
    "module": lambda: torch.nn.Linear(2, 2).cuda().weight,
    "module to": lambda: torch.nn.Linear(2, 2, device="cuda").to("cuda").weight,
    "generator": lambda: torch.randn(
        2, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda"
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_cuda_tensors_lie_on_the_cpu(make: Any, device: None) -> None:
    made = make()
    assert made.device.type == "cpu" and made.is_cuda


def test_torch_describes_the_targets_chip() -> None:
    for target in (SM90A, SM80):
        with simulated_device(target):
            assert torch.cuda.is_available() and torch.cuda.device_count() == 1
            assert torch.cuda.get_device_capability() == target.capability
            told = torch.cuda.get_device_properties(0)
            assert told.multi_processor_count == target.limits.sms
            assert told.shared_memory_per_block_optin == target.limits.shared_per_block
            assert target.name in torch.cuda.get_device_name()


def test_waiting_and_streams_do_nothing(device: None) -> None:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        stop.record()
        stop.synchronize()
        assert start.elapsed_time(stop) >= 0
    with pytest.raises(TileNotSupported, match="TL1708"):
        torch.cuda.CUDAGraph()


def test_everything_is_taken_back() -> None:
    names = ("is_available", "synchronize", "Event", "get_device_properties")
    before = [getattr(torch.cuda, name) for name in names] + [torch.Generator]
    with simulated_device(SM90A):
        pass
    assert [getattr(torch.cuda, name) for name in names] + [torch.Generator] == before
    assert not torch.zeros(1).is_cuda
