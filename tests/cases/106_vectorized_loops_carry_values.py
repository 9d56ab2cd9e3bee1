# Source: tile-ai/tilelang#1103, #2669 (class: a T.vectorized loop whose iterations depend on each
# other, or that does not begin at 0)
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, N, V = 32, 64, 8


@tilelang.jit(out_idx=[1, 2, 3])
def build():
    @T.prim_func
    def main(
        A: T.Tensor((ROWS, N), "int64"),
        S: T.Tensor((ROWS, N // V), "int64"),
        P: T.Tensor((ROWS, V), "int64"),
        B: T.Tensor((ROWS, N), "int64"),
    ):
        with T.Kernel(1, threads=ROWS) as _:
            t = T.get_thread_binding()
            for i in T.serial(N // V):
                S[t, i] = 0
                for j in T.vectorized(V):
                    S[t, i] = S[t, i] + A[t, i * V + j]
            P[t, 0] = A[t, 0]
            for j in T.vectorized(1, V):
                P[t, j] = P[t, j - 1] + A[t, j]
            for j in T.vectorized(0, 4):
                B[t, j] = A[t, j]
            for j in T.vectorized(4, N):
                B[t, j] = A[t, j] * 2

    return main


torch.manual_seed(0)
a = torch.randint(0, 9, (ROWS, N), device=DEV)
s, p, b = build()(a)
assert torch.equal(s, a.view(ROWS, N // V, V).sum(2))
assert torch.equal(p, a[:, :V].cumsum(1))
assert torch.equal(b, torch.cat([a[:, :4], a[:, 4:] * 2], 1))
print("OK")
