# Source: tile-ai/tilelang#2613 (class: a tile that all threads fill and two warp groups read, in a
# plain loop; the barrier across the back edge is missing)
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
M, N, K, BK = 64, 128, 128, 32


@tilelang.jit(out_idx=[2])
def build():
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((M, BK), "float16")
            b0 = T.alloc_shared((BK, N // 2), "float16")
            b1 = T.alloc_shared((BK, N // 2), "float16")
            c0 = T.alloc_fragment((M, N // 2), "float32")
            c1 = T.alloc_fragment((M, N // 2), "float32")
            with T.ws(0):
                T.clear(c0)
            with T.ws(1):
                T.clear(c1)
            for k in T.serial(K // BK):
                T.copy(A[0, k * BK], a)
                T.copy(B[k * BK, 0], b0)
                T.copy(B[k * BK, N // 2], b1)
                with T.ws(0):
                    T.gemm(a, b0, c0)
                with T.ws(1):
                    T.gemm(a, b1, c1)
            with T.ws(0):
                T.copy(c0, C[0, 0])
            with T.ws(1):
                T.copy(c1, C[0, N // 2])

    return main


torch.manual_seed(0)
a = torch.randn(M, K, device=DEV).half()
b = torch.randn(K, N, device=DEV).half()
torch.testing.assert_close(build()(a, b), a.float() @ b.float(), rtol=1e-2, atol=5e-2)
print("OK")
