"""Loops over tiles with a tail on the GPU: every form, also where tensors begin between vectors;
what lies around the output stays as it was."""

from __future__ import annotations

import pytest
import torch

import tilelab
from tests.ops.tail_programs import FORMS, Shape, tensors

CASES = [(name, dtype, "sm_90a") for name in FORMS for dtype in ("float32", "float16", "bfloat16")]
CASES += [(name, "float32", "sm_80") for name in FORMS]


@pytest.mark.parametrize(("name", "dtype", "arch"), CASES)
def test_fixed_size(name: str, dtype: str, arch: str) -> None:
    """A tail within a vector, in few blocks and in many."""
    form = FORMS[name]
    for n in (1003, 70_001):
        s = Shape(n, n * 7 // 10, 512, 64, dtype)
        a, b, c = tensors(form, s, "cuda")
        want = form.want(a, b, c, s)
        tilelab.compile(form.make(s), target={"kind": "cuda", "arch": arch})(a, b, c)
        assert torch.equal(c, want), n


@pytest.mark.parametrize(("name", "dtype", "arch"), [c for c in CASES if not FORMS[c[0]].static])
def test_dynamic_size(name: str, dtype: str, arch: str) -> None:
    """One kernel for all sizes: the variant of whole vectors and the general one."""
    form = FORMS[name]
    made = form.make(Shape(7, 5, 512, 64, dtype, dynamic=True))
    kernel = tilelab.compile(made, target={"kind": "cuda", "arch": arch})
    for n in (7, 256, 1003, 4096, 70_001):
        s = Shape(n, 5, 512, 64, dtype)
        a, b, c = tensors(form, s, "cuda")
        want = form.want(a, b, c, s)
        kernel(a, b, c)
        assert torch.equal(c, want), n


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_base_between_vectors(shift: int) -> None:
    """Tensors that begin anywhere take the version that asks for each element; nothing outside of
    the output is written."""
    s = Shape(10_003, 10_003, 512, 64)
    form = FORMS["guard"]
    a, b, _ = tensors(form, s, "cuda", shift)
    around = torch.full((s.N + 64,), 7.0, device="cuda")
    c = around[shift : shift + s.N]
    tilelab.compile(form.make(s), target="sm_90a")(a, b, c)
    assert torch.equal(c, a + b)
    assert (around[:shift] == 7).all() and (around[shift + s.N :] == 7).all()
