"""Programs whose tiles make small, odd or very wide TMA boxes, and what they must compute."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

STEPS = 8
SHAPES = ((32,), (24,), (64,), (320,), (512,), (264,), (4, 8), (2, 16), (3, 40), (2, 320), (16, 8))
"""Tiles of 16-bit elements: slots of less than 128 bytes, and rows that no single box holds."""


def passing(shape: tuple[int, ...], stages: int) -> Any:
    """C[k] = 2 * A[k], each tile by way of a slot in shared memory."""

    @T.prim_func
    def main(A: T.Tensor((STEPS, *shape), "float16"), C: T.Tensor((STEPS, *shape), "float32")):
        with T.Kernel(1, threads=128) as _:
            tile = T.alloc_shared(shape, "float16")
            mine = T.alloc_fragment(shape, "float32")
            for k in T.Pipelined(STEPS, num_stages=stages):
                if len(shape) == 1:
                    T.copy(A[k, 0 : shape[0]], tile)
                else:
                    T.copy(A[k, 0 : shape[0], 0 : shape[1]], tile)
                T.copy(tile, mine)
                if len(shape) == 1:
                    for i in T.Parallel(shape[0]):
                        C[k, i] = mine[i] * 2
                else:
                    for i, j in T.Parallel(*shape):
                        C[k, i, j] = mine[i, j] * 2

    return main


def check_passing(shape: tuple[int, ...], stages: int, target: Any, device: str = "cpu") -> Any:
    """Run it; the compiled kernel."""
    kernel = tilelab.compile(passing(shape, stages), out_idx=[1], target=target)
    torch.manual_seed(0)
    x = torch.randn(STEPS, *shape).half().to(device)
    assert torch.equal(kernel(x), x.float() * 2)
    return kernel


def decayed(rows: int, m: int, n: int, block: int, stages: int) -> Any:
    """State = (X * exp2(Last - Decay) * Step)^T @ B over blocks of rows: vectors of a few bytes
    travel with the tiles, and the transposed, scaled tile multiplies from registers."""
    half, single = "float16", "float32"

    @T.prim_func
    def main(
        X: T.Tensor((rows, m), half), B: T.Tensor((rows, n), half), Step: T.Tensor((rows,), half),
        Decay: T.Tensor((rows,), half), State: T.Tensor((m, n), single),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            x, b = T.alloc_shared((block, m), half), T.alloc_shared((block, n), half)
            step, decay = T.alloc_shared((block,), half), T.alloc_shared((block,), half)
            mine = T.alloc_fragment((block, m), half)
            turned = T.alloc_fragment((m, block), half)
            state = T.alloc_fragment((m, n), single)
            scale = T.alloc_fragment((block,), single)
            last = T.alloc_fragment((1,), single)
            last[0] = Decay[rows - 1]
            T.clear(state)
            for k in T.Pipelined(rows // block, num_stages=stages):
                T.copy(X[k * block, 0], x)
                T.copy(Decay[k * block], decay)
                T.copy(Step[k * block], step)
                T.copy(B[k * block, 0], b)
                for i in T.Parallel(block):
                    scale[i] = T.exp2(last[0] - T.cast(decay[i], single)) * step[i]
                T.copy(x, mine)
                for i, j in T.Parallel(m, block):
                    turned[i, j] = mine[j, i] * scale[j]
                T.gemm(turned, b, state)
            T.copy(state, State)

    return main


def check_decayed(block: int, stages: int, target: Any, device: str = "cpu") -> Any:
    """Run it; the compiled kernel. The scaled operand is rounded to float16 once, where one that
    lies between two of them may go either way."""
    rows, m, n = 128, 64, 48
    kernel = tilelab.compile(decayed(rows, m, n, block, stages), out_idx=[4], target=target)
    torch.manual_seed(0)
    x, b, step, decay = (
        torch.randn(*shape).half() for shape in ((rows, m), (rows, n), (rows,), (rows,))
    )
    scale = torch.exp2(decay[-1].double() - decay.double()) * step.double()
    wide = x.double() * scale[:, None]
    want = wide.T @ b.double()
    bound = wide.abs().T @ b.double().abs() * 2.0**-11 * 1.01 + 1e-4
    got = kernel(*(t.to(device) for t in (x, b, step, decay))).cpu().double()
    worst = float(((got - want).abs() / bound).max())
    assert worst <= 1, f"{worst} times what rounding the operand explains"
    return kernel
