# Source: tile-ai/tilelang#2543 (class: a copy whose slice ends past the tensor, with a safe value)
# Right outcome: what lies past the end reads as the annotated value (0 without one) and is not
# written; other operations on such a slice are refused.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
N, BLK = 60, 64


@tilelang.jit(out_idx=[1, 2])
def build(dtype, safe):
    @T.prim_func
    def main(
        A: T.Tensor((N, N), dtype), O: T.Tensor((BLK, BLK), dtype), P: T.Tensor((N, N), dtype)
    ):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((BLK, BLK), dtype)
            if safe:
                T.annotate_safe_value({A: safe})
            T.copy(A[0:BLK, 0:BLK], s)
            T.copy(s, O)
            T.copy(s, P[0:BLK, 0:BLK])

    return main


torch.manual_seed(0)
for dtype in ("int32", "float16", "float32"):
    a = torch.randint(-5, 5, (N, N), device=DEV).to(getattr(torch, dtype))
    for safe in (0, -99):
        o, p = build(dtype, safe)(a)
        want = torch.full((BLK, BLK), safe, device=DEV).to(a.dtype)
        want[:N, :N] = a
        assert torch.equal(o, want), (dtype, safe)
        assert torch.equal(p, a), (dtype, safe)
print("OK")
