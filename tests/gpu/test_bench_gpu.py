"""A hand-written kernel beside tilelab's: built, launched on the problem's tensors and right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tilelab.bench.foreign import ForeignKernel
from tilelab.bench.problems import PROBLEMS, relative_error
from tilelab.bench.reference import load

pytestmark = pytest.mark.gpu

DESCRIPTION = {
    "program": "rmsnorm", "entry": "by_rows", "grid": ["M"], "block": [32],
    "defines": {"WIDTH": "N"},
    "arguments": [{"tensor": "X"}, {"tensor": "Y"}, {"float32": "1 / N"}, {"zeros": 4}],
}  # fmt: skip
SOURCE = """#include <cuda_fp16.h>
extern "C" __global__ void by_rows(const half* x, half* y, float share, int* zero) {
  x += blockIdx.x * WIDTH, y += blockIdx.x * WIDTH;
  float sum = *zero;
  for (int i = threadIdx.x; i < WIDTH; i += 32) sum += __half2float(x[i]) * __half2float(x[i]);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  float scale = rsqrtf(sum * share + 1e-6f);
  for (int i = threadIdx.x; i < WIDTH; i += 32) y[i] = __float2half(__half2float(x[i]) * scale);
}
"""


def test_a_described_kernel_computes_the_problem(tmp_path: Path) -> None:
    (tmp_path / "norm.json").write_text(json.dumps(DESCRIPTION))
    (tmp_path / "norm.cu").write_text(SOURCE)
    (reference,) = load(tmp_path, PROBLEMS)
    problem = PROBLEMS["rmsnorm"]
    spec = {"program": "rmsnorm", "sizes": (70, 1000), "config": {"threads": 128}}
    kernel = ForeignKernel(reference, problem, spec)
    for _ in range(3):
        inputs = problem.inputs(spec)
        got = kernel(*inputs)
        torch.cuda.synchronize()
        assert relative_error(got, problem.reference(spec, *inputs)) < 1e-3
