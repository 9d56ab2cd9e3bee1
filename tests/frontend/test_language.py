"""Names of the language: types, functions, unknown names; the package; `import tilelang`."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import body_text, expect
from tilelab import shim
from tilelab.ir import Call, Cast, Const, Select, Var, walk
from tilelab.thread.mathfn import math_fn

ROOT = Path(__file__).parents[2]


def test_element_types() -> None:
    assert T.float16 == "float16" and T.float16 == "half" and T.float == T.float32
    assert T.float16 == torch.float16 and T.float32 == np.float32 and T.int32 == np.dtype("int32")
    assert T.float16 != torch.float32 and T.dtype(torch.bfloat16) == T.bfloat16
    assert isinstance(T.float16, T.dtype) and T.float16.as_torch() is torch.float16
    assert {T.float16: 1}[T.dtype("half")] == 1
    assert (T.float16.bits, T.float16.bytes, T.float16.itemsize, T.float16.lanes) == (16, 2, 2, 1)
    assert isinstance(T.float32(Var("x")), Cast)
    assert T.int32(3).value == 3
    with expect(TypeError, "TL1101"):
        T.dtype("float99")


def test_scalar_functions() -> None:
    x, i = Var("x", T.float32), Var("i", lo=0, hi=7)
    for name, value in ((n, getattr(T, n)) for n in T.__all__):
        if name in ("exp", "exp2", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "round"):
            made = value(x)
            assert isinstance(made, Call) and math_fn(made.fn), name
    assert T.exp(i).args[0].dtype == "float32"
    assert T.max(i, 3).dtype == "int32" and T.max(2, 5) == 5 and T.min(2.0, 5) == 2.0
    assert T.exp2(3) == 8.0 and T.ceildiv(10, 4) == 3 and T.log2(8) == 3
    assert T.isnan(x).dtype == "bool"
    assert isinstance(T.if_then_else(i < 3, x, 0.0), Select)
    assert T.if_then_else(True, 1, 2) == 1
    assert T.infinity("float16").value == math.inf and (-T.infinity(T.float32)).value == -math.inf
    assert T.max_value("int8").value == 127 and T.min_value("float16").value == -65504.0
    assert T.cast(3, "float16").dtype == "float16"
    assert T.clamp(7, 0, 5) == 5 and T.align_up(5, 4) == 8
    assert [T.truncdiv(a, b) for a, b in ((7, -3), (-7, 3), (-7, -3))] == [-2, -2, 2]
    assert [T.truncmod(a, b) for a, b in ((7, -3), (-7, 3))] == [1, -1]
    assert T.index_to_coordinates(13, (4, 5)) == [2, 3]
    assert isinstance(T.infinity(), Const)


def test_every_table_function_exists_in_thread() -> None:
    x, y = Var("x", T.float32), Var("y", T.float32)
    from tilelab.language.math import FUNCTIONS

    for name, function in FUNCTIONS.items():
        args = (x, y) if function.__code__.co_argcount == 2 else (x,)
        for node in walk(function(*args)):
            if isinstance(node, Call):
                assert math_fn(node.fn).arity == len(node.args), name


def test_unknown_names() -> None:
    with expect(AttributeError, "TL1007", "T.alloc_shared or T.alloc_var"):
        T.alloc_shard  # noqa: B018
    with expect(AttributeError, "TL1005", "not supported by tilelab yet"):
        T.tcgen05_gemm  # noqa: B018
    with expect(AttributeError, "TL1005", "vector types"):
        T.float6_e2m3fnx4  # noqa: B018
    assert not hasattr(T, "nothing_of_the_kind") and getattr(T, "nothing", 3) == 3
    with pytest.raises(ImportError):
        exec("from tilelab.language import no_such_name")


def test_thread_and_block_indices() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(3, threads=(32, 2)):
            A[0] = T.get_thread_binding(1) + T.get_thread_binding(2) + T.get_block_binding()
            A[T.get_lane_idx()] = T.get_warp_idx()
            A[1] = T.get_thread_extent(0) + T.get_block_extent()

    assert body_text(main) == "A[0] = ty + bx\nA[tx] = ty\nA[1] = 35"


def test_wrong_arguments() -> None:
    with expect(ValueError, "TL1434"):
        T.Pipelined(4, num_stages=-1)
    with expect(ValueError, "TL1449"):
        T.vectorized(Var("n"))
    with expect(ValueError, "TL1435"):
        T.Parallel()
    with expect(TypeError, "TL1426"):
        T.StridedTensor((4, 4), (1,))
    with expect(TypeError, "TL1492"):
        T.infinity("int32")


def test_host_helpers() -> None:
    assert tilelab.cdiv(10, 4) == 3
    assert [tilelab.next_power_of_2(n) for n in (0, 1, 2, 3, 17)] == [1, 1, 2, 4, 32]
    assert tilelab.__version__


def test_import_tilelang() -> None:
    shim.install()
    try:
        import tilelang
        import tilelang.language as TL
        from tilelang.errors import TileError

        assert tilelang is tilelab and TL is T and TileError is tilelab.TileError
        assert tilelab.__spec__.name == "tilelab" and T.__spec__.name == "tilelab.language"
        with pytest.raises(ModuleNotFoundError, match=r"tilelang\.nonsense"):
            import tilelang.nonsense
    finally:
        shim.uninstall()
    assert "tilelang" not in sys.modules
    assert tilelab.language is T


def test_import_is_light() -> None:
    code = (
        "import sys, tilelab, tilelab.language; "
        "print([m for m in ('torch', 'IPython', 'matplotlib', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
