"""Scalar functions: every CUDA form compiles, and the numpy meaning is the function."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.thread.nvrtc import compile_cuda, needs_nvrtc
from tilelab.dtypes import as_dtype
from tilelab.errors import TileError
from tilelab.target import SM80
from tilelab.thread.intrinsics import helper_texts
from tilelab.thread.mathfn import MATH, MathFn, math_fn

FLOATS = [as_dtype(n) for n in ("float16", "bfloat16", "float32", "float64")]
INTEGERS = [as_dtype(n) for n in ("int32", "int64")]


def _forms() -> list[tuple[MathFn, object]]:
    out = []
    for fn in MATH.values():
        small = FLOATS[:3] if fn.f32 else []
        wide = FLOATS[3:] if fn.f64 else []
        whole = INTEGERS if fn.integer else []
        out += [(fn, dtype) for dtype in [*small, *wide, *whole]]
    return out


@needs_nvrtc
def test_every_form_compiles():
    helpers = "\n".join(helper_texts((), [h for m in MATH.values() for h in m.helpers]))
    lines = ["#include <cuda_fp16.h>", "#include <cuda_bf16.h>", f"namespace tl {{\n{helpers}\n}}"]
    for i, (fn, dtype) in enumerate(_forms()):
        result = "bool" if fn.boolean else dtype.cuda
        text = fn.text(dtype, [f"in[{k}]" for k in range(fn.arity)])
        lines.append(
            f'extern "C" __global__ void f{i}({result}* out, const {dtype.cuda}* in) '
            f"{{ *out = {text}; }}"
        )
    sass, _ = compile_cuda("\n".join(lines), SM80)
    assert sass.count(".section\t.text.f") == len(_forms())


REFERENCE = {
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "rsqrt": lambda x: 1 / math.sqrt(x),
    "exp2": lambda x: 2.0**x, "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
    "abs": abs, "min": min, "max": max, "fma": lambda a, b, c: a * b + c,
    "nearbyint": round, "rint": round, "__exp10f": lambda x: 10.0**x, "__powf": math.pow,
    "__fdividef": lambda a, b: a / b, "__exp2f": lambda x: 2.0**x,
    "ldexp": lambda x, n: x * 2.0 ** int(n),
}  # fmt: skip
SHIFT = {"acosh": 1.0}
"""What is added to arguments drawn from 0.1 to 0.95, for functions of another domain."""
EXACT = [m for m in MATH.values() if m.name.startswith("ieee_")]
"""Held to exact fractions in each rounding, in tests/ops/test_names.py."""


@pytest.mark.parametrize(
    "fn", [m for m in MATH.values() if m.f32 and m not in EXACT], ids=lambda m: m.name
)
def test_meaning_of_float_functions(fn):
    name = fn.name.strip("_").removesuffix("f") if fn.name.startswith("__") else fn.name
    reference = REFERENCE.get(fn.name) or getattr(math, name)
    rng = np.random.default_rng(5)
    low = SHIFT.get(fn.name, 0.0) + 0.1
    args = [rng.uniform(low, low + 0.85, 40).astype(np.float32) for _ in range(fn.arity)]
    got = fn.value(as_dtype("float32"), args)
    want = [reference(*(float(a[i]) for a in args)) for i in range(40)]
    if fn.boolean:
        assert got.dtype == np.bool_ and got.tolist() == want
    else:
        np.testing.assert_allclose(got, want, rtol=2e-6)


def test_small_floats_are_computed_in_float32_and_rounded_once():
    x = np.array([0.1, 3.3, -2.7], np.float16)
    got = math_fn("exp").value(as_dtype("float16"), [x])
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.exp(x.astype(np.float32)).astype(np.float16))


def test_rounding_ties_and_not_a_number():
    halves = np.array([0.5, 1.5, 2.5, -0.5, -2.5], np.float32)
    f32 = as_dtype("float32")
    assert math_fn("round").value(f32, [halves]).tolist() == [1, 2, 3, -1, -3]
    assert math_fn("rint").value(f32, [halves]).tolist() == [0, 2, 2, 0, -2]
    pair = [np.array([np.nan, 1], np.float32), np.array([2, np.nan], np.float32)]
    assert math_fn("max").value(f32, pair).tolist() == [2, 1]


def test_integer_functions():
    i32 = as_dtype("int32")
    a, b = np.array([-7, 12], np.int32), np.array([3, -5], np.int32)
    assert math_fn("min").value(i32, [a, b]).tolist() == [-7, -5]
    assert math_fn("popcount").value(i32, [a]).tolist() == [30, 2]
    assert math_fn("bitwise_xor").value(i32, [a, b]).tolist() == [-7 ^ 3, 12 ^ -5]


def test_errors_name_the_function():
    with pytest.raises(TileError, match="expo"):
        math_fn("expo")
    with pytest.raises(TileError, match="sin"):
        math_fn("sin").text(as_dtype("int32"), ["x"])
    with pytest.raises(TileError, match="pow takes 2"):
        math_fn("pow").text(as_dtype("float32"), ["x"])
