# Source: tile-ai/tilelang#2959, #2594, #2667 (class: a one-element buffer named whole loses all
# threads' values but one; a value read before an atomic is read again after it; no previous value)
# Right outcome: each thread's own value arrives, a number arrives once, names are snapshots.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"


@tilelang.jit
def totals(threads):
    @T.prim_func
    def main(
        A: T.Tensor((threads,), "int32"),
        O: T.Tensor((1,), "int32"),
        M: T.Tensor((1,), "int32"),
        V: T.Tensor((1,), "int32"),
        N: T.Tensor((1,), "int32"),
    ):
        with T.Kernel(2, threads=threads) as _:
            t = T.get_thread_binding()
            T.atomic_add(O, A[t])
            x = A[t] * 2
            T.atomic_max(M, x)
            v = T.alloc_var("int32", init=1)
            v = v + A[t]
            T.atomic_add(V, v)
            T.atomic_add(N, 5)

    return main


@tilelang.jit
def snapshots():
    @T.prim_func
    def main(C: T.Tensor((2,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1) as _:
            if C[0] > 0:
                before = C[0]
                T.atomic_add(C[0], 10)
                O[0] = before
            O[1] = C[0]
            high = T.atomic_max(C[1], 7, return_prev=True)
            low = T.atomic_min(C[1], 3, return_prev=True)
            O[2] = high
            O[3] = low

    return main


def main():
    for threads in (32, 96, 128):
        a = torch.arange(threads, dtype=torch.int32)
        o, m, v, n = (torch.zeros(1, dtype=torch.int32, device=DEV) for _ in range(4))
        totals(threads)(a.to(DEV), o, m, v, n)
        total = 2 * int(a.sum())
        got = [int(x) for x in (o, m, v, n)]
        assert got == [total, 2 * (threads - 1), total + 2 * threads, 10], got
    c = torch.tensor([5, 6], dtype=torch.int32, device=DEV)
    o = torch.zeros(4, dtype=torch.int32, device=DEV)
    snapshots()(c, o)
    assert o.tolist() == [5, 15, 6, 7] and c.tolist() == [15, 3], (o, c)
    print("OK")


main()
