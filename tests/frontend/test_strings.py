"""Annotations kept as strings (`from __future__ import annotations`)."""

from __future__ import annotations

import tilelab.language as T


def test_a_name_that_only_the_annotation_uses() -> None:
    rows = 16

    @T.prim_func
    def main(A: T.Tensor((rows, 4), "float32"), n: T.int32):
        with T.Kernel(1):
            A[n, 0] = 1.0

    assert main.function.params[0].buffer.shape == (16, 4)
