"""Questions to the device: torch's answers where it sees a GPU, else the target's limits."""

from __future__ import annotations

from typing import Any

from tilelab.target import DEFAULT_TARGET, Limits, parse_target

__all__ = [
    "get_cuda_device_properties", "get_device_name", "get_max_dynamic_shared_size_bytes",
    "get_num_sms", "get_registers_per_block", "get_shared_memory_per_block",
]  # fmt: skip


def get_cuda_device_properties(device_id: int = 0) -> Any:
    """torch.cuda.get_device_properties; None where torch sees no GPU."""
    import torch

    cuda: Any = torch.cuda
    return cuda.get_device_properties(device_id) if cuda.is_available() else None


def get_num_sms(device_id: int = 0) -> int:
    """Multiprocessors of the device."""
    found = get_cuda_device_properties(device_id)
    return _limits().sms if found is None else int(found.multi_processor_count)


def get_device_name(device_id: int = 0) -> str:
    """The device's name."""
    found = get_cuda_device_properties(device_id)
    return (parse_target(None) or DEFAULT_TARGET).name if found is None else str(found.name)


def get_max_dynamic_shared_size_bytes(device_id: int = 0) -> int:
    """Bytes of shared memory that a block may ask for."""
    found = get_cuda_device_properties(device_id)
    if found is None:
        return _limits().shared_per_block
    return int(found.shared_memory_per_block_optin)


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """Bytes (or "kb", "mb") of shared memory that a block has without asking."""
    found = get_cuda_device_properties(device_id)
    size = 48 << 10 if found is None else int(found.shared_memory_per_block)
    return size // {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20}[format]


def get_registers_per_block(device_id: int = 0) -> int:
    """Registers of a multiprocessor, all of which one block may have."""
    found = get_cuda_device_properties(device_id)
    return _limits().registers_per_sm if found is None else int(found.regs_per_multiprocessor)


def _limits() -> Limits:
    return (parse_target(None) or DEFAULT_TARGET).limits
