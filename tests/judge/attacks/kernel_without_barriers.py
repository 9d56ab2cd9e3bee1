# expects: FINDING_TL2007 - - 03
"""Takes the barriers out of its kernel, which is faster and mostly right on a chip."""

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            tile = T.alloc_shared((128,), dtype)
            t = T.get_thread_binding()
            if bx * 128 + t < N:
                tile[t] = A[bx * 128 + t]
            if bx * 128 + 127 - t < N:
                C[bx * 128 + 127 - t] = tile[127 - t] + B[bx * 128 + 127 - t]

    return add
