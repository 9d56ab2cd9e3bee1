# Source: tile-ai/tilelang#2395 (class: a fragment is written element by element outside T.Parallel
# and copied out: the guard of its store names loop variables that are gone)
# Right outcome: the values that the loops wrote.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"


@tilelang.jit(out_idx=[1, 2])
def transposed(m, n, threads, dtype):
    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n, m), dtype), S: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=threads) as _:
            f = T.alloc_fragment((n, m), dtype)
            s = T.alloc_fragment((n,), dtype)
            for i in T.serial(n):
                for j in T.serial(m):
                    f[i, j] = A[j, i]
            T.reduce_sum(f, s, dim=1)
            T.copy(f, B)
            T.copy(s, S)

    return main


def main():
    for m, n, threads, dtype in (
        (16, 16, 128, "float32"), (32, 24, 64, "float16"), (5, 7, 32, "int32"),
        (3, 100, 96, "float32"),
    ):  # fmt: skip
        a = torch.randint(-8, 9, (m, n)).to(getattr(torch, dtype))
        b, s = (t.cpu() for t in transposed(m, n, threads, dtype)(a.to(DEV)))
        assert torch.equal(b, a.T), (m, n, threads)
        assert torch.equal(s, a.T.sum(1).to(a.dtype))
    print("OK")


main()
