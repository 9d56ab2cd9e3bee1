# Class: asynchronous-proxy fence placed by the shape of the loop, not by who reads the tiles
# Situation: a pipelined loop copies tiles ahead by cp.async, and the product that reads them stands
# in a branch, in a loop, or in roles of the program's own: wgmma must see the tiles all the same.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
M, N, K, BK = 64, 96, 128, 32
CONFIGS = {"tl.disable_warp_specialized": True}


@tilelang.jit(out_idx=[3], pass_configs=CONFIGS)
def build(where, stages, dtype):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        Keep: T.Tensor((K // BK,), "int32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, BK), dtype)
            b = T.alloc_shared((BK, N), dtype)
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            for k in T.Pipelined(K // BK, num_stages=stages):
                T.copy(A[0, k * BK], a)
                T.copy(B[k * BK, 0], b)
                if where == "branch":
                    if Keep[k] != 0:
                        T.gemm(a, b, c)
                elif where == "loop":
                    for _r in T.serial(Keep[k]):
                        T.gemm(a, b, c)
                else:
                    for r in T.serial(2):
                        if r < Keep[k]:
                            T.gemm(a, b, c)
            T.copy(c, C)

    return main


@tilelang.jit(out_idx=[2])
def build_roles(stages, dtype):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((M, BK), dtype)
            b0 = T.alloc_shared((BK, N // 2), dtype)
            b1 = T.alloc_shared((BK, N // 2), dtype)
            c0 = T.alloc_fragment((M, N // 2), "float32")
            c1 = T.alloc_fragment((M, N // 2), "float32")
            with T.ws(0):
                T.clear(c0)
            with T.ws(1):
                T.clear(c1)
            for k in T.Pipelined(K // BK, num_stages=stages):
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
for dtype in ("float16", "bfloat16"):
    a = torch.randint(-3, 4, (M, K), device=DEV).to(getattr(torch, dtype))
    b = torch.randint(-3, 4, (K, N), device=DEV).to(getattr(torch, dtype))
    keep = torch.tensor([1, 0, 1, 1], dtype=torch.int32, device=DEV)
    want = (a.float() * keep.float().repeat_interleave(BK)) @ b.float()
    for stages in (2, 3):
        for where in ("branch", "loop", "branch in a loop"):
            assert torch.equal(build(where, stages, dtype)(a, b, keep), want), (where, stages)
        assert torch.equal(build_roles(stages, dtype)(a, b), a.float() @ b.float()), stages
print("OK")
