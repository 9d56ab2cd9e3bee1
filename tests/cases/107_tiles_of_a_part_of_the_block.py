# Source: TileLang's rule that a tile operation inside `if tx < n` is spread over those threads; reports
# of the kind "copy inside a thread branch moves a part only" (tile-ai/tilelang#1026, #2556 beside it)
# Right outcome: the whole tile is moved by the threads that are there, or a clear error.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
N, TH = 96, 96


@tilelang.jit(out_idx=[2, 3])
def build(first, stop, k):
    @T.prim_func
    def main(
        A: T.Tensor((N,), "int32"),
        K: T.Tensor((1,), "int32"),
        O: T.Tensor((N,), "int32"),
        P: T.Tensor((N,), "int32"),
    ):
        with T.Kernel(1, threads=TH) as _:
            s = T.alloc_shared((N,), "int32")
            r = T.alloc_shared((N,), "int32")
            t = T.get_thread_binding()
            T.clear(s)
            T.fill(r, -1)
            if t >= first and t < stop:
                T.copy(A, s)
                if K[0] == k:
                    for i in T.Parallel(N):
                        r[i] = s[N - 1 - i]
            if t == 5:
                T.copy(A[0:8], r[0:8])
            T.copy(s, O)
            T.copy(r, P)

    return main


@tilelang.jit(out_idx=[1])
def by_loaded_value():
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), O: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=TH) as _:
            s = T.alloc_shared((N,), "int32")
            t = T.get_thread_binding()
            T.clear(s)
            if A[t] > 10:
                T.copy(A, s)
            T.copy(s, O)

    return main


torch.manual_seed(0)
a = torch.randint(0, 50, (N,), dtype=torch.int32, device=DEV)
key = torch.tensor([3], dtype=torch.int32, device=DEV)
for first, stop in [(0, 48), (16, 90), (40, 41), (32, 64)]:
    for k in (3, 4):
        o, p = build(first, stop, k)(a, key)
        want = a.flip(0) if k == 3 else torch.full_like(a, -1)
        want[:8] = a[:8]
        assert torch.equal(o, a), (first, stop, k)
        assert torch.equal(p, want), (first, stop, k)
try:
    by_loaded_value()(a)
except Exception as e:
    assert "threads" in str(e), f"unhelpful error: {e}"
else:
    raise AssertionError("a tile operation that only some threads come to was accepted")
print("OK")
