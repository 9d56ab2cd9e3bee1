"""T.prim_func: parameters, kernels, allocations, names, locations."""

import tilelab.language as T
from tests.frontend.helpers import body_text, caret, expect, only
from tilelab.dtypes import FLOAT16, FLOAT32
from tilelab.frontend import PrimFunc
from tilelab.ir import Alloc, For, Kernel, LoopKind, ScalarParam, TensorParam, walk


def matmul(M, N, K, block_M=128, block_N=128, block_K=64, num_stages=3):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), T.float16), C: T.Tensor[[M, N], "half"]
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float")
            T.use_swizzle(10)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


GEMM = """\
A_shared = alloc_shared((128, 64), float16)
B_shared = alloc_shared((64, 128), float16)
C_local = alloc_fragment((128, 128), float32)
Fill(dst=C_local[0:128, 0:128], value=0.0)
for ko in pipelined(16, num_stages=3):
  Copy(src=A[by * 128:by * 128 + 128, ko * 64:ko * 64 + 64], dst=A_shared[0:128, 0:64])
  Copy(src=B[ko * 64:ko * 64 + 64, bx * 128:bx * 128 + 128], dst=B_shared[0:64, 0:128])
  Gemm(a=A_shared[0:128, 0:64], b=B_shared[0:64, 0:128], c=C_local[0:128, 0:128])
Copy(src=C_local[0:128, 0:128], dst=C[by * 128:by * 128 + 128, bx * 128:bx * 128 + 128])"""


def test_gemm_as_text() -> None:
    assert body_text(matmul(1024, 1024, 1024)) == GEMM


def test_gemm_structure() -> None:
    program = matmul(1000, 1024, 1024)
    assert isinstance(program, PrimFunc) and program.__name__ == "gemm"
    function = program.function
    assert [p.name for p in function.params] == ["A", "B", "C"]
    assert all(p.buffer.dtype == FLOAT16 for p in function.params)
    (kernel,) = function.kernels
    assert [g.value for g in kernel.grid] == [8, 8] and kernel.threads == (128,)
    assert [(v.name, v.lo, v.hi, v.role) for v in kernel.block_vars] == [
        ("bx", 0, 7, "block"), ("by", 0, 7, "block"),
    ]  # fmt: skip
    assert [(v.name, v.hi, v.role) for v in kernel.thread_vars] == [("tx", 127, "thread")]
    assert dict(kernel.attrs) == {"swizzle": (10, "row")}
    assert "def gemm(" in program.script() and str(program) == program.script()


def test_every_statement_knows_its_place() -> None:
    program = matmul(128, 128, 64)
    (kernel,) = program.function.kernels
    lines = [stmt.loc.text().strip() for stmt in kernel.body.body]
    assert lines[0].startswith("A_shared = T.alloc_shared")
    assert lines[4].startswith("for ko in T.Pipelined")
    loop = only(program, For)
    assert loop.loc.text()[loop.loc.column : loop.loc.end_column].startswith("T.Pipelined(")
    assert loop.kind is LoopKind.PIPELINED and loop.num_stages == 3


def test_module_level_and_several_kernels() -> None:
    program = TWO
    assert len(program.function.kernels) == 2
    assert [len(k.grid) for k in program.function.kernels] == [1, 3]


@T.prim_func
def TWO(A: T.Tensor((8,), "float32")):
    with T.Kernel(1) as _:
        A[0] = 1.0
    with T.Kernel(1, 2, 3, threads=(4, 8)) as (x, y, z):
        A[z] = 2.0


def test_kernel_without_as_and_by_assignment() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32")):
        bx, by = T.Kernel(4, 2, threads=64)
        tx = T.get_thread_binding()
        A[bx, by] = tx

    kernel = only(main, Kernel)
    assert [v.name for v in kernel.block_vars] == ["bx", "by"] and kernel.threads == (64,)
    assert body_text(main) == "A[bx, by] = float32(tx)"


def test_parameters_of_all_kinds() -> None:
    n = T.dynamic("n")
    s, t = T.dynamic("s, t", dtype="int64")

    @T.prim_func
    def main(
        A: T.Tensor((n, 4), "float32"), B: T.Tensor[8], C: T.StridedTensor((n, 4), (s, t), "int32"),
        k: T.int32, x: T.float32, D: T.Tensor[n, T.bfloat16], E: T.Tensor[n, 4, "float16"],
    ):  # fmt: skip
        with T.Kernel(n) as b:
            A[b, 0] = x + k

    function = main.function
    kinds = [type(p) for p in function.params]
    assert kinds == [TensorParam] * 3 + [ScalarParam] * 2 + [TensorParam] * 2
    shapes = [(p.buffer.shape, str(p.buffer.dtype)) for p in function.params[-2:]]
    assert shapes == [((n,), "bfloat16"), ((n, 4), "float16")]
    assert [v.name for v in function.sizes] == ["n", "s", "t"]
    assert function.params[1].buffer.dtype == FLOAT32
    assert function.params[2].buffer.strides == (s, t)
    assert function.params[3].var.role == "scalar"


def test_buffers_are_called_what_the_user_calls_them() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            x, y = T.alloc_shared((8,), "float32"), T.alloc_local((2,), "int32")
            many = [T.alloc_shared((i + 1,), "float32") for i in range(2)]
            v: T.int32 = T.alloc_var("int32", init=3)
            T.copy(A, x)
            many[1][0] = y[0] + v

    allocs = [n.buffer.name for n in walk(main.function) if isinstance(n, Alloc)]
    assert allocs == ["x", "y", "many", "many_1", "v"]


def test_wrong_parameters() -> None:
    with expect(ValueError, "TL1423", "Argument B is not annotated"):

        @T.prim_func
        def unannotated(A: T.Tensor((8,), "float32"), B):
            pass

    with expect(TypeError, "TL1424"):

        @T.prim_func
        def positional(A: T.Tensor((8,), "float32"), /):
            pass

    with expect(TypeError, "TL1421", "int"):

        @T.prim_func
        def plain(A: int):
            pass


def test_wrong_launches() -> None:
    with expect(ValueError, "TL1431", "threads"):

        @T.prim_func
        def threads(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=0):
                pass

    with expect(RuntimeError, "TL1406") as caught:

        @T.prim_func
        def nested(A: T.Tensor((8,), "float32")):
            with T.Kernel(1), T.Kernel(2):
                A[0] = 1.0

    assert caught.error.loc is not None
    with expect(RuntimeError, "TL1405", "outside T.Kernel"):

        @T.prim_func
        def outside(A: T.Tensor((8,), "float32")):
            A[0] = 1.0

    with expect(ValueError, "TL1483"):

        @T.prim_func
        def empty(A: T.Tensor((8,), "float32")):
            x = 1


def test_a_size_needs_a_tensor() -> None:
    n = T.dynamic("n")
    with expect(ValueError, "TL1484", "n"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1):
                for i in T.serial(n):
                    A[i] = 1.0


def test_calls_outside_a_kernel() -> None:
    with expect(RuntimeError, "TL1401"):
        T.alloc_shared((8,), "float32")
    with expect(RuntimeError, "TL1480", "compile"):
        matmul(128, 128, 64)(1, 2, 3)


def test_caret_under_the_call() -> None:
    with expect(TypeError, "TL1427") as caught:

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(2) as bx:
                x = T.alloc_shared((bx, 4), "float32")

    assert caret(caught.error) == 'T.alloc_shared((bx, 4), "float32")'
    assert caught.error.loc.function == "main"
