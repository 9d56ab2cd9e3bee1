"""The GEMM of `gemm.py` in Triton: tuned on a GPU, or plain for its interpreter on a CPU
(TRITON_INTERPRET=1 before this loads)."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

import torch
import triton
import triton.language as tl

PANEL = 8  # rows of tiles whose operands stay in L2 together


@triton.jit
def _gemm(
    a, b, c, M, N: tl.constexpr, K: tl.constexpr, panel: tl.constexpr,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr,
):  # fmt: skip
    rows_of_tiles, columns_of_tiles = tl.cdiv(M, tile_m), tl.cdiv(N, tile_n)
    number, size = tl.program_id(0), panel * columns_of_tiles
    first = number // size * panel
    height = min(rows_of_tiles - first, panel)
    row, column = first + number % size % height, number % size // height
    rows = row * tile_m + tl.arange(0, tile_m)
    columns = column * tile_n + tl.arange(0, tile_n)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    total = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, K, tile_k):
        depth = start + tl.arange(0, tile_k)
        left_inside = (rows[:, None] < M) & (depth[None, :] < K)
        right_inside = (depth[:, None] < K) & (columns[None, :] < N)
        left = tl.load(a + rows[:, None] * K + depth[None, :], mask=left_inside, other=0)
        right = tl.load(b + depth[:, None] * N + columns[None, :], mask=right_inside, other=0)
        total = tl.dot(left, right, total)
    place = c + rows[:, None] * N + columns[None, :]
    tl.store(place, total.to(c.dtype.element_ty), mask=inside)


def run(a, b, tile_m=128, tile_n=128, tile_k=64):
    """C = A @ B with one configuration: no launch is timed, as the interpreter needs it."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)
    _gemm[grid](a, b, c, M, N, K, PANEL, tile_m, tile_n, tile_k)
    return c


_TILES = ((128, 256, 64, 3, 8), (128, 128, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 128, 4, 4))


def tuned(spec):
    """The best of four configurations (tiles, stages, warps), found at the first call."""
    del spec
    configs = [
        triton.Config({"tile_m": m, "tile_n": n, "tile_k": k}, num_stages=s, num_warps=w)
        for m, n, k, s, w in _TILES
    ]
    kernel = triton.autotune(configs, key=["M", "N", "K"])(_gemm)

    def multiply(a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), dtype=a.dtype, device=a.device)

        def grid(chosen):
            return (triton.cdiv(M, chosen["tile_m"]) * triton.cdiv(N, chosen["tile_n"]),)

        kernel[grid](a, b, c, M, N, K, PANEL)
        return c

    return multiply
