# Source: tile-ai/tilelang#1237, #1008 (class: copies and fills of slices whose length is a run-time
# number); #830, #1374 (`as (bx,)`), #1690 (a kernel without a grid)
# Right outcome: exactly the elements that both sides have are moved.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
BLK, TH = 64, 32


@tilelang.jit
def build():
    n = T.dynamic("n")
    m = T.dynamic("m")

    @T.prim_func
    def main(
        A: T.Tensor((n, m), "float16"),
        S: T.Tensor((3, 2), "int32"),
        O: T.Tensor((3, BLK), "float32"),
        P: T.Tensor((n, m), "float16"),
    ):
        with T.Kernel(3, threads=TH) as (bx,):
            s = T.alloc_shared((BLK,), "float16")
            T.fill(s, -1.0)
            first = S[bx, 0]
            stop = S[bx, 1]
            T.copy(A[bx, first:stop], s)
            T.copy(s, O[bx, 0:BLK])
            if bx == 0:
                T.copy(A[0 : n - 1, 0:m], P[0 : n - 1, 0:m])
            if bx == 1:
                T.fill(P[n - 1, first:stop], 7.0)

    return main


@tilelang.jit(out_idx=[0])
def build_alone():
    @T.prim_func
    def main(O: T.Tensor((TH,), "int32")):
        with T.Kernel(threads=TH):
            for i in T.Parallel(TH):
                O[i] = i

    return main


torch.manual_seed(0)
for n, m in [(5, 100), (4, 33)]:
    a = torch.randn(n, m, device=DEV).half()
    spans = [(0, 20), (7, 8), (30, 30)]
    o = torch.zeros(3, BLK, device=DEV)
    p = torch.full((n, m), 9.0, device=DEV).half()
    build()(a, torch.tensor(spans, dtype=torch.int32, device=DEV), o, p)
    want = torch.full((3, BLK), -1.0, device=DEV)
    for row, (first, stop) in enumerate(spans):
        want[row, : stop - first] = a[row, first:stop].float()
    assert torch.equal(o, want), (n, m)
    assert torch.equal(p[: n - 1], a[: n - 1]), (n, m)
    last = torch.full((m,), 9.0, device=DEV).half()
    last[7:8] = 7.0
    assert torch.equal(p[n - 1], last), (n, m)
assert build_alone()().tolist() == list(range(TH))
print("OK")
