"""jit and compile: styles, caches and keys; with a kernel that records instead of compiling."""

import importlib
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.frontend.helpers import expect
from tilelab import pass_config
from tilelab.ir import Function


class RecordingKernel:
    """Stands for JITKernel: keeps what it was made from, and its calls."""

    made: list["RecordingKernel"]

    def __init__(self, function: Function, **options: Any) -> None:
        self.function, self.options = function, options
        RecordingKernel.made.append(self)

    def __call__(self, *args: Any) -> Any:
        return ("ran", self.function.name, args)

    def checked(self) -> "RecordingKernel":
        return self

    def get_kernel_source(self) -> str:
        return f"// {self.function.name}"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[RecordingKernel]:
    RecordingKernel.made = []
    monkeypatch.setattr(importlib.import_module("tilelab.jit"), "JITKernel", RecordingKernel)
    return RecordingKernel.made


def make_factory(**options: Any):
    @tilelab.jit(**options)
    def factory(n, op="add", *rest, **more):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                A[0] = n if op == "add" else 0

        return main

    return factory


def test_lazy_calls_and_their_keys(kernels: list[RecordingKernel]) -> None:
    factory = make_factory(out_idx=[-1], target="sm_80", pass_configs={"tl.enable_fast_math": True})
    assert factory.mode == "auto" and factory.out_idx == [-1]
    first = factory(8)
    assert factory.mode == "lazy"
    assert factory(8) is first and factory(n=8) is first and factory(8, "add") is first
    assert factory(8, op="mul") is not first
    assert factory(8, extra=1) is not first
    assert factory.compile(8) is first and factory.get_kernel_source(8) == "// main"
    assert first.options["out_idx"] == [-1] and first.options["target"] == "sm_80"
    assert first.options["pass_configs"] == {"tl.enable_fast_math": True}
    assert len(kernels) == 3


def test_lists_are_frozen_and_tensors_refused() -> None:
    @tilelab.jit
    def factory(shape, table=None):
        @T.prim_func
        def main(A: T.Tensor(shape, "float32")):
            with T.Kernel(1):
                A[0, 0] = 1.0

        return main

    assert factory([4, 4]) is factory([4, 4])
    assert factory([4, 4], {"a": [1]}) is factory([4, 4], {"a": [1]})
    assert factory([4, 4]) is not factory([4, 8])

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    with expect(TypeError, "TL1495"):
        factory([4, 4], Unhashable())


def test_par_compile(kernels: list[RecordingKernel]) -> None:
    factory = make_factory()
    made = factory.par_compile([{"n": 4}, (8,)])
    assert [k.function.params[0].buffer.shape for k in made] == [(4,), (8,)]
    programs = [factory.get_tir(16), factory.get_tir(32)]
    both = tilelab.par_compile(programs, out_idx=[0])
    assert [k.options["out_idx"] for k in both] == [[0], [0]]
    assert tilelab.par_compile([3], ignore_error=True) == [None]


def make_eager(**options: Any):
    @tilelab.jit(**options)
    def double(A, block=4):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block)):
            B[0] = A[0]
        return B

    return double


class FakeTensor:
    def __init__(self, *shape: int) -> None:
        self.shape = shape


def test_eager_calls(kernels: list[RecordingKernel]) -> None:
    double = make_eager()
    tensor, other = FakeTensor(8), FakeTensor(8)
    assert double(tensor) == ("ran", "double", (tensor,))
    assert double(other, block=4) == ("ran", "double", (other,))
    assert len(kernels) == 1
    double(FakeTensor(16))
    double(tensor, 8)
    assert len(kernels) == 3
    assert double.compile(n=8) is kernels[0]
    assert double.get_kernel_source(tensor) == "// double"


def test_out_idx_is_lazy() -> None:
    double = make_eager(out_idx=[0])
    with expect(ValueError, "TL1496", "out_idx is only supported in lazy mode"):
        double.compile(n=8)


def test_the_style_found_by_calling() -> None:
    ran: list[int] = []

    def make(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0

        return main

    @tilelab.jit
    def indirect(n):
        ran.append(n)
        return make(n)

    indirect(4)
    assert indirect.mode == "lazy" and ran

    @tilelab.jit
    def nothing(n):
        return n

    with expect(TypeError, "TL1497"):
        nothing(4)


def test_eager_style_found_by_calling() -> None:
    kernel_of = T.Kernel

    @tilelab.jit
    def hidden(A: T.Tensor[[8], "float32"]):
        grid = kernel_of(1)
        A[0] = 1.0

    hidden.get_tir()
    assert hidden.mode == "eager"


def test_compile_takes_programs() -> None:
    program = make_factory().get_tir(4)
    kernel = tilelab.compile(program, out_idx=0, target={"kind": "cuda", "arch": "sm_90a"})
    assert kernel.function is program.function
    again = tilelab.compile(kernel.function, out_idx=0, target="sm_80")  # a kernel's prim_func
    assert again.function is program.function
    with expect(TypeError, "TL1493"):
        tilelab.compile(make_factory())
    with expect(TypeError, "TL1451"):
        tilelab.jit(program)
    with expect(ValueError, "TL1494"):
        tilelab.compile(program, execution_backend="torch")


def test_missing_compile_time_argument() -> None:
    @tilelab.jit
    def needs(A, block):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        with T.Kernel(block):
            A[0] = 1.0

    with expect(TypeError, "TL1498", "block"):
        needs.compile(n=4)


def test_pass_config_keys() -> None:
    key = tilelab.PassConfigKey.TL_ENABLE_FAST_MATH
    assert key == "tl.enable_fast_math"
    assert pass_config.normalise({key: True, "tl.plain_pipeline": True}) == {
        "tl.enable_fast_math": True, "tl.plain_pipeline": True,
    }  # fmt: skip
    pass_config._told.clear()
    with pytest.warns(UserWarning, match="tl.simplify has no effect"):
        pass_config.normalise({tilelab.PassConfigKey.TL_SIMPLIFY: True})
    pass_config.normalise({tilelab.PassConfigKey.TL_SIMPLIFY: True})
    with expect(ValueError, "TL1202", "tl.enable_fast_math"):
        pass_config.normalise({"tl.enable_fastmath": True})
