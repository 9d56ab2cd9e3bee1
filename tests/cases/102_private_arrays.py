# Source: tile-ai/tilelang#1304 (class: T.copy between memory and a thread's own array)
# Right outcome: T.alloc_local gives every thread the whole array, of any number of axes, and a copy
# fills all of it in every thread.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
R, C, TH = 3, 8, 32


@tilelang.jit(out_idx=[1, 2])
def build():
    @T.prim_func
    def main(
        A: T.Tensor((R, C), "float16"),
        O: T.Tensor((TH, R, C), "float32"),
        P: T.Tensor((TH, R, C), "float16"),
    ):
        with T.Kernel(1, threads=TH) as _:
            t = T.get_thread_binding()
            mine = T.alloc_local((R, C), "float16")
            wide = T.alloc_local((R, C), "float32")
            T.copy(A, mine)
            T.copy(mine, wide)
            for i, j in T.grid(R, C):
                wide[i, j] = wide[i, j] + t
            T.copy(wide, O[t, 0:R, 0:C])
            for i in T.serial(R):
                for j in T.vectorized(C):
                    P[t, i, j] = mine[R - 1 - i, j]

    return main


torch.manual_seed(0)
a = torch.randn(R, C, device=DEV).half()
o, p = build()(a)
assert torch.equal(o, a.float()[None] + torch.arange(TH, device=DEV)[:, None, None])
assert torch.equal(p, a.flip(0)[None].expand(TH, R, C))
print("OK")
