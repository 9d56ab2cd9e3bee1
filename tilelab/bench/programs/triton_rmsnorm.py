"""RMSNorm of rows in Triton: a program a row, read once."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

import torch
import triton
import triton.language as tl


@triton.jit
def _rmsnorm(x, y, N: tl.constexpr, width: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, width)
    value = tl.load(x + row * N + columns, mask=columns < N, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / N + 1e-6)
    result = value * scale
    tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=columns < N)


def tuned(spec):
    """Y = RMSNorm(X) with the row's number of threads."""
    warps = spec["config"]["threads"] // 32

    def run(x):
        y = torch.empty_like(x)
        M, N = x.shape
        _rmsnorm[(M,)](x, y, N, triton.next_power_of_2(N), num_warps=warps)
        return y

    return run
