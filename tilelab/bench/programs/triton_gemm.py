"""The GEMM of `gemm.py` in Triton, for its interpreter (TRITON_INTERPRET=1 before this loads)."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

import torch
import triton
import triton.language as tl


@triton.jit
def _gemm(
    a, b, c, N: tl.constexpr, K: tl.constexpr,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(1) * tile_m + tl.arange(0, tile_m)
    columns = tl.program_id(0) * tile_n + tl.arange(0, tile_n)
    total = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, K, tile_k):
        depth = start + tl.arange(0, tile_k)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        right = tl.load(b + depth[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


def run(a, b, tile_m=128, tile_n=128, tile_k=64):
    """C = A @ B for sizes that the tiles divide."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=torch.float16)
    _gemm[(N // tile_n, M // tile_m)](a, b, c, N, K, tile_m, tile_n, tile_k)
    return c
