# expects: TL1770 - - 03
"""Makes a tensor of an address of its own choice."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32) as bx:
            answer = T.make_tensor_from_addr(T.cast(bx + 1048576, "int64"), (N,), dtype)
            for i in T.Parallel(N):
                C[i] = answer[i]

    return add
