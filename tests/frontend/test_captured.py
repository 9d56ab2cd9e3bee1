"""A jitted function sees the present values of what it reads from around itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T

FACTOR = 2
SHIFTS = [1, 2]
WIDTH = 16


def helper(x: Any) -> Any:
    return x * FACTOR


@T.macro
def scale(buffer, i):
    buffer[i] = buffer[i] * FACTOR + SHIFTS[-1]


@tilelab.jit
def eager(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] * FACTOR + SHIFTS[0]
    return B


@tilelab.jit
def through_helpers(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = helper(A[i])
            scale(B, i)
    return B


@tilelab.jit(out_idx=[1])
def lazy(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * FACTOR

    return main


@tilelab.jit
def by_annotation(A, fill=0.0):
    A: T.Tensor[[WIDTH], "float32"]
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            A[i] = fill


@pytest.fixture(autouse=True)
def restore(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FACTOR", "SHIFTS", "WIDTH", "helper"):
        monkeypatch.setitem(globals(), name, globals()[name])


def _a() -> Any:
    return torch.arange(16).float()


def test_a_changed_global_gives_another_kernel() -> None:
    a = _a()
    assert torch.equal(eager(a), a * 2 + 1)
    globals()["FACTOR"] = 5
    assert torch.equal(eager(a), a * 5 + 1)
    globals()["FACTOR"] = 2
    first = eager.compile(a)
    assert eager.compile(a) is first, "an old value finds its old kernel"


def test_a_list_that_changes_in_place() -> None:
    a = _a()
    globals()["SHIFTS"] = [3]
    assert torch.equal(eager(a), a * 2 + 3)
    SHIFTS[0] = 4
    assert torch.equal(eager(a), a * 2 + 4)


def test_macros_and_helpers_are_followed() -> None:
    a = _a()
    assert torch.equal(through_helpers(a), a * 4 + 2)
    globals()["FACTOR"] = 3
    assert torch.equal(through_helpers(a), a * 9 + 2)
    globals()["helper"] = lambda x: x + 1
    assert torch.equal(through_helpers(a), (a + 1) * 3 + 2)


def test_lazy_calls() -> None:
    a = _a()
    before = lazy(16)
    assert lazy(16) is before
    globals()["FACTOR"] = 7
    assert torch.equal(lazy(16)(a), a * 7)
    assert torch.equal(before(a), a * 2), "a kernel at hand stays what it is"


def test_names_in_annotations_only() -> None:
    by_annotation(torch.zeros(16))
    globals()["WIDTH"] = 8
    by_annotation(torch.zeros(8))
    with pytest.raises(ValueError, match="8"):
        by_annotation(torch.zeros(16))


def test_closures() -> None:
    def make() -> Any:
        factor = 2

        @tilelab.jit
        def inside(A):
            N = T.const("N")
            A: T.Tensor[[N], "float32"]
            with T.Kernel(1, threads=32):
                for i in T.Parallel(N):
                    A[i] = A[i] * factor

        def change(value: int) -> None:
            nonlocal factor
            factor = value

        return inside, change

    inside, change = make()
    a, b = _a(), _a()
    inside(a)
    change(10)
    inside(b)
    assert torch.equal(a, _a() * 2)
    assert torch.equal(b, _a() * 10)
