"""4-bit integers as 16-bit floats in every spelling, with what each gives for all 256 bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab.language as T

BYTES = 256
NUMBERS = 2 * BYTES


def _bytes(device: str) -> Any:
    return torch.arange(BYTES, device=device).to(torch.uint8)


def _halves(device: str, high_first: bool = False) -> Any:
    b = _bytes(device).int()
    parts = (b >> 4, b & 15) if high_first else (b & 15, b >> 4)
    return torch.stack(parts, -1).reshape(-1)


def shifted(dtype: str, offset: int, high_first: bool = False) -> Any:
    """Shifts and masks of bytes, as the benchmark's kernel has them."""

    @T.prim_func
    def main(Q: T.Tensor((BYTES,), "uint8"), Y: T.Tensor((NUMBERS,), dtype)):
        with T.Kernel(1, threads=32):
            q, y = T.alloc_fragment((BYTES,), "uint8"), T.alloc_fragment((NUMBERS,), dtype)
            T.copy(Q, q)
            for j in T.Parallel(NUMBERS):
                shift = T.cast(((1 - j % 2) if high_first else j % 2) * 4, "uint8")
                code = T.cast((q[j // 2] >> shift) & T.cast(15, "uint8"), "int32") + offset
                y[j] = T.cast(code, dtype)
            T.copy(y, Y)

    return main


def signed(dtype: str) -> Any:
    """Two's complement by hand, straight from memory."""

    @T.prim_func
    def main(Q: T.Tensor((BYTES,), "uint8"), Y: T.Tensor((NUMBERS,), dtype)):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(NUMBERS):
                code = (T.cast(Q[j // 2], "int32") >> (j % 2 * 4)) & 15
                Y[j] = T.cast((code ^ 8) - 8, dtype) * T.cast(2, dtype)

    return main


def packed(dtype: str, kind: str) -> Any:
    """A packed tensor, through shared memory."""

    @T.prim_func
    def main(Q: T.Tensor((4, NUMBERS // 4), kind), Y: T.Tensor((4, NUMBERS // 4), dtype)):
        with T.Kernel(1, threads=32):
            q = T.alloc_shared((4, NUMBERS // 4), kind)
            y = T.alloc_fragment((4, NUMBERS // 4), dtype)
            T.copy(Q, q)
            for i, j in T.Parallel(4, NUMBERS // 4):
                y[i, j] = T.cast(q[i, j], dtype)
            T.copy(y, Y)

    return main


def own(dtype: str) -> Any:
    """Each thread's own bytes, in arrays of its own."""

    @T.prim_func
    def main(Q: T.Tensor((BYTES,), "uint8"), Y: T.Tensor((NUMBERS,), dtype)):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            q, y = T.alloc_local((4,), "uint8"), T.alloc_local((8,), dtype)
            for i in T.vectorized(4):
                q[i] = Q[tx * 4 + i]
            for i in T.vectorized(8):
                y[i] = T.cast(
                    (q[i // 2] >> T.cast(i % 2 * 4, "uint8")) & T.cast(15, "uint8"), dtype
                )
            for i in T.vectorized(8):
                Y[tx * 8 + i] = y[i]

    return main


def uneven(dtype: str) -> Any:
    """Numbers that are no linear function of the code: not by pairs."""

    @T.prim_func
    def main(Q: T.Tensor((BYTES,), "uint8"), Y: T.Tensor((NUMBERS,), dtype)):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(NUMBERS):
                code = (T.cast(Q[j // 2], "int32") >> (j % 2 * 4)) & 15
                Y[j] = T.cast(code * code, dtype)

    return main


Want = Callable[[str], Any]
Case = tuple[Callable[[str], Any], Want, bool]
"""(dtype -> program, device -> its integers, whether the conversion is by pairs)."""


def _signed(device: str) -> Any:
    return (_halves(device) ^ 8) - 8


CASES: dict[str, Case] = {
    "plain": (lambda d: shifted(d, 0), _halves, True),
    "minus_8": (lambda d: shifted(d, -8), lambda device: _halves(device) - 8, True),
    "plus_17": (lambda d: shifted(d, 17), lambda device: _halves(device) + 17, True),
    "high_first": (
        lambda d: shifted(d, -8, True), lambda device: _halves(device, True) - 8, True,
    ),
    "signed": (signed, lambda device: _signed(device) * 2, True),
    "int4": (lambda d: packed(d, "int4"), _signed, True),
    "uint4": (lambda d: packed(d, "uint4"), _halves, True),
    "own": (own, _halves, True),
    "uneven": (uneven, lambda device: _halves(device) ** 2, False),
}  # fmt: skip


def inputs(name: str, device: str = "cpu") -> Any:
    """All bytes, in the shape that the case's tensor has."""
    return _bytes(device).reshape(4, -1) if name in ("int4", "uint4") else _bytes(device)
