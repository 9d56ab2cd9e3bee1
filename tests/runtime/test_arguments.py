"""Binding of arguments: every wrong input is an error that names the parameter and both values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from tilelab import dtypes
from tilelab.errors import TileError, TileTypeError, TileValueError
from tilelab.ir import Buffer, ScalarParam, Scope, TensorParam, Var
from tilelab.runtime.arguments import Signature, misaligned
from tilelab.runtime.tensors import TensorFacts, facts_of, numpy_view
from tilelab.thread.nodes import Alignment


def tensor(name: str, shape: tuple[Any, ...], dtype: str = "float16", strides: Any = None) -> Any:
    return TensorParam(Buffer(name, shape, dtypes.as_dtype(dtype), Scope.GLOBAL, strides))


def size(name: str, dtype: Any = dtypes.INT32) -> Var:
    return Var(name, dtype, lo=0, role="size")


M, N, K = size("M"), size("N"), size("K")


def gemm(outputs: tuple[int, ...] = (2,)) -> Signature:
    params = (tensor("A", (M, K)), tensor("B", (K, N)), tensor("C", (M, N)))
    return Signature("gemm", params, (M, N, K), outputs)


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.float16)


def refused(signature: Signature, *args: Any) -> TileError:
    with pytest.raises(TileError) as caught:
        signature.bind(args)
    return caught.value


def test_sizes_are_solved() -> None:
    binding = gemm().bind((half(3, 5), half(5, 7)))
    assert binding.sizes == (3, 7, 5) and binding.device == "cpu"
    assert gemm().shape_of(2, (3, 7, 5)) == (3, 7)
    assert gemm().strides_of(2, (3, 7, 5)) == (7, 1)


def test_numpy_arrays_bind_too() -> None:
    binding = gemm().bind((np.zeros((3, 5), np.float16), np.zeros((5, 7), np.float16)))
    assert binding.sizes == (3, 7, 5)


def test_count() -> None:
    error = refused(gemm(), half(3, 5))
    assert isinstance(error, ValueError) and error.code == "TL1611"
    assert "expected 2 inputs, but 1 are provided" in error.message
    assert "A, B" in error.hint and "C is allocated" in error.hint
    assert "out_idx=[-1]" in refused(gemm(outputs=()), half(3, 5), half(5, 7)).hint


def test_no_tensor() -> None:
    error = refused(gemm(), half(3, 5), [1, 2])
    assert isinstance(error, TileTypeError) and error.code == "TL1612"
    assert "argument B of gemm is a tensor, got a list" in error.message
    assert "got None" in refused(gemm(), half(3, 5), None).message


def test_dtype() -> None:
    error = refused(gemm(), half(3, 5), torch.zeros(5, 7))
    assert isinstance(error, TypeError) and error.code == "TL1613"
    assert "argument B of gemm has dtype float32, expected float16" in error.message
    assert "B.to(torch.float16)" in error.hint


def test_rank() -> None:
    error = refused(gemm(), half(3, 5), half(5))
    assert isinstance(error, ValueError) and error.code == "TL1614"
    assert "argument B of gemm has 1 axes (5,), expected 2: (K, N)" in error.message


def test_sizes_that_disagree() -> None:
    error = refused(gemm(), half(3, 5), half(6, 7))
    assert error.code == "TL1616"
    assert "disagree on K: it is 5 from axis 1 of A, and 6 from axis 0 of B" in error.message


def test_static_shape() -> None:
    signature = Signature("copy", (tensor("A", (4, 8)), tensor("B", (4, 8))))
    error = refused(signature, half(4, 8), half(4, 9))
    assert error.code == "TL1615"
    assert "argument B of copy has shape (4, 9), expected (4, 8)" in error.message


def test_strides() -> None:
    error = refused(gemm(), half(5, 3).T, half(5, 7))
    assert error.code == "TL1617" and "A.contiguous()" in error.hint
    assert "argument A of gemm has strides (1, 3), expected contiguous strides (5, 1)" in (
        error.message
    )


def test_strides_of_axes_that_are_never_stepped_do_not_matter() -> None:
    one_row = torch.zeros(4, 10, dtype=torch.float16)[:1, :5]
    gemm().bind((one_row, half(5, 7)))
    gemm().bind((half(5, 0).T, half(5, 7)))


def test_declared_strides() -> None:
    pitch = size("pitch")
    signature = Signature("row", (tensor("A", (M, 8), strides=(pitch, 1)),), (M, pitch))
    wide = half(3, 20)[:, :8]
    assert signature.bind((wide,)).sizes == (3, 20)
    error = refused(signature, half(8, 3).T)
    assert error.code == "TL1617" and "is declared with the strides (pitch, 1)" in error.hint


def test_gradients_end_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Said once for each tensor, and not where torch records nothing."""
    a, b = half(3, 5).requires_grad_(), half(5, 7)
    signature = Signature("ends_here", (tensor("A", (M, K)), tensor("B", (K, N))), (M, N, K), ())
    with torch.no_grad():
        signature.bind((a, b))
    assert capsys.readouterr().err == ""
    for _ in range(2):
        signature.bind((a, b))
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ends_here: A requires a gradient" in said


def test_linear_sizes() -> None:
    n = size("n")
    signature = Signature("pack", (tensor("A", (2 * n + 1,)),), (n,))
    assert signature.bind((half(9),)).sizes == (4,)
    error = refused(signature, half(8))
    assert error.code == "TL1616" and "axis 0 of A is 8" in error.message


def test_linear_sizes_after_others_are_known() -> None:
    n, m = size("n"), size("m")
    params = (tensor("A", (n + 3 * m,)), tensor("B", (m,)))
    assert Signature("two", params, (n, m)).bind((half(20), half(5))).sizes == (5, 5)


def test_a_derived_axis_is_checked() -> None:
    n = size("n")
    params = (tensor("A", (n,)), tensor("B", (2 * n,)))
    signature = Signature("double", params, (n,))
    signature.bind((half(4), half(8)))
    error = refused(signature, half(4), half(9))
    assert error.code in ("TL1615", "TL1616") and "B" in error.message
    error = refused(signature, half(4), half(10))
    assert error.code in ("TL1615", "TL1616") and "10" in str(error)


def test_a_size_that_no_input_gives() -> None:
    with pytest.raises(TileValueError, match="size N of lost cannot be found") as caught:
        Signature("lost", (tensor("A", (M,)), tensor("C", (N,))), (M, N), (1,))
    assert caught.value.code == "TL1622"


def test_a_size_can_come_from_a_number() -> None:
    count = Var("count", role="scalar")
    params = (tensor("A", (M,)), ScalarParam(count), tensor("C", (count, M)))
    signature = Signature("grow", params, (M,), (2,))
    binding = signature.bind((half(4), 3))
    assert signature.shape_of(2, signature.numbers(binding)) == (3, 4)


def test_a_size_too_large_for_its_type() -> None:
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.float16), (1 << 31,), (2,))
    error = refused(Signature("long", (tensor("A", (M,)),), (M,)), huge)
    assert error.code == "TL1620" and "int64" in error.hint
    wide = size("M", dtypes.INT64)
    assert Signature("long", (tensor("A", (wide,)),), (wide,)).bind((huge,)).sizes == (1 << 31,)


def test_numbers() -> None:
    count, factor = Var("n", role="scalar"), Var("x", dtypes.FLOAT32, role="scalar")
    signature = Signature("scale", (ScalarParam(count), ScalarParam(factor)))
    assert signature.bind((3, 2)).values == (3, 2.0)
    assert signature.bind((np.int64(3), torch.tensor(0.5))).values == (3, 0.5)
    error = refused(signature, 1.5, 2.0)
    assert error.code == "TL1612" and "argument n of scale is a number of type int32" in str(error)
    error = refused(signature, 1 << 31, 2.0)
    assert error.code == "TL1620" and "2147483648" in error.message
    assert refused(signature, "3", 2.0).code == "TL1612"


def test_bytes_and_truth_values_are_taken_for_one_another() -> None:
    signature = Signature("mask", (tensor("A", (4,), "bool"),))
    signature.bind((torch.zeros(4, dtype=torch.uint8),))
    signature.bind((torch.zeros(4, dtype=torch.bool),))
    assert refused(signature, torch.zeros(4, dtype=torch.int16)).code == "TL1613"


def test_out_idx() -> None:
    assert gemm((-1,)).outputs == (2,) and gemm((-1,)).inputs == (0, 1)
    fixed = Signature("f", [tensor(x, (4,)) for x in "ABC"], (), (2, 0))
    assert fixed.outputs == (2, 0) and fixed.inputs == (1,)
    for wrong in ((3,), (-4,), (1, 1), (2, -1)):
        with pytest.raises(TileValueError) as caught:
            gemm(wrong)
        assert caught.value.code == "TL1621"


def test_mixed_devices() -> None:
    class OnGpu:
        """A tensor that says it lies on a GPU: enough for the checks."""

        dtype, shape, device = torch.float16, (5, 7), "cuda:0"

        def stride(self) -> tuple[int, int]:
            return (7, 1)

        def data_ptr(self) -> int:
            return 1 << 20

    error = refused(gemm(), half(3, 5), OnGpu())
    assert error.code == "TL1618"
    assert "A on cpu, B on cuda:0" in error.message and 'B.to("cpu")' in error.hint


def facts(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> dict[str, TensorFacts]:
    return {"A": TensorFacts("float16", shape, strides, "cuda:0", pointer)}


def test_alignment() -> None:
    need = (Alignment(tensor("A", (M, K)).buffer, 16),)
    assert misaligned(need, facts(4096, (3, 8), (8, 1))) is None
    short = str(misaligned(need, facts(4096, (1, 7), (7, 1))))  # one row, no whole run
    assert "rows of argument A are 14 bytes long" in short
    assert misaligned(need, facts(4096, (1, 8), (7, 1))) is None  # one row is never stepped
    assert "2 bytes past a multiple of 16" in str(misaligned(need, facts(4098, (3, 8), (8, 1))))
    assert misaligned(need, facts(4096, (3, 1), (1, 1))) is not None  # rows one element apart
    rows = str(misaligned(need, facts(4096, (3, 7), (7, 1))))
    assert "rows of argument A lie 14 bytes apart" in rows


@pytest.mark.parametrize("dtype", sorted(n for n, d in dtypes.DTYPES.items() if d.bits >= 8))
def test_numpy_views_share_memory(dtype: str) -> None:
    kind = dtypes.as_dtype(dtype)
    torch_type = getattr(torch, dtype)
    values = torch.zeros(2, 3).to(torch_type)
    view = numpy_view(values, kind)
    assert view.dtype == kind.numpy and view.shape == (2, 3)
    view[1, 2] = 1
    assert float(values[1, 2].to(torch.float32)) == 1.0
    assert facts_of(values).dtype == dtype


def test_numpy_views_of_strided_tensors() -> None:
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4).to(torch.bfloat16)
    view = numpy_view(base.T, dtypes.BFLOAT16)
    assert view.shape == (4, 3) and float(view[3, 1]) == 7.0
    view[0, 0] = ml_dtypes.bfloat16(5)
    assert float(base[0, 0]) == 5.0


def test_facts_of_numpy() -> None:
    array = np.zeros((4, 6), np.float32)[:, ::2]
    found = facts_of(array)
    assert found.shape == (4, 3) and found.strides == (6, 2) and found.device == "cpu"
