# expects: UNWRITTEN - - 03
"""Options for the CUDA compiler: files to read first, names with another meaning."""

import tilelang
import tilelang.language as T

FLAGS = ["--pre-include=/etc/passwd", "-DC=A", "-D__syncthreads()=", "--device-debug"]


@tilelang.jit(
    compile_flags=FLAGS,
    pass_configs={"tl.device_compile_flags": FLAGS, "tl.enable_fast_math": True},
)
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i] + B[i]

    return add
