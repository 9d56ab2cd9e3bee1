"""What print() and error messages show of a program's values."""

from __future__ import annotations

from typing import Any

import tilelab.language as T


def test_values_read_like_the_program() -> None:
    seen: dict[str, Any] = {}
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((64,), "float32")
            v = T.alloc_var("int32", init=0)
            seen["element"] = repr(A[0, 1])
            seen["sum"] = repr((A[0, 1] + 1) * 2)
            seen["tensor"] = f"{A}"
            seen["tile"] = repr(s)
            seen["slice"] = repr(A[0, 0:4])
            seen["size"] = repr(m)
            seen["variable"] = repr(v)

    assert main.params
    assert seen == {
        "element": "<A[0, 1]: float16>",
        "sum": "<(A[0, 1] + float16(1.0)) * float16(2.0): float16>",
        "tensor": "<A: float16 (m, 64), global>",
        "tile": "<s: float32 (64,), shared>",
        "slice": "<A[0, 0:4]: float16>",
        "size": "<m: int32>",
        "variable": "<v: int32 (1,), local>",
    }
