# Source: tile-ai/tilelang#2944 (class: infinity and what overflows become a finite float8_e5m2)
# Right outcome: the conversion of torch, from every type, in loops, copies and literals.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
INF = float("inf")


@tilelang.jit(out_idx=[1, 2, 3])
def convert(n, source):
    @T.prim_func
    def main(
        A: T.Tensor((n,), source),
        B: T.Tensor((n,), "float8_e5m2"),
        C: T.Tensor((n,), "float8_e5m2"),
        D: T.Tensor((4,), "float8_e5m2"),
    ):
        with T.Kernel(1, threads=64) as _:
            a = T.alloc_fragment((n,), source)
            b = T.alloc_fragment((n,), "float8_e5m2")
            T.copy(A, a)
            T.copy(a, b)
            T.copy(b, B)
            for i in T.Parallel(n):
                C[i] = T.cast(A[i], "float8_e5m2")
            D[0] = T.infinity("float32")
            D[1] = -1e6
            D[2] = 61439.0
            D[3] = T.max(T.float8_e5m2(57344.0), T.float8_e5m2(INF))

    return main


def main():
    values = [65504.0, 1e5, 1e6, INF, -1e5, -INF, 57344.0, 1.0, 61439.0, 61440.0, -61440.0, 61441.0]
    values += [0.0, -0.0, float("nan"), 3e4, 53248.0]
    for source in ("float32", "float64", "float16", "bfloat16"):
        a = torch.tensor(values, dtype=torch.float64).to(getattr(torch, source))
        b, c, d = (t.cpu() for t in convert(len(values), source)(a.to(DEV)))
        want = a.to(torch.float8_e5m2)
        known = ~want.float().isnan()
        for got in (b, c):
            assert torch.equal(got.float().isnan(), ~known), source
            assert torch.equal(got.view(torch.uint8)[known], want.view(torch.uint8)[known]), source
        assert d.float().tolist() == [INF, -INF, 57344.0, INF], d
    print("OK")


main()
