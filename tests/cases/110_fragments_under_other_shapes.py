# Source: tile-ai/tilelang#2074, #1719 (class: a reshaped fragment, or a reduction of one, whose
# extents do not divide among the threads has no layout)
# Right outcome: element n of the view is element n of the fragment, for every number of threads.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"


@tilelang.jit(out_idx=[1, 2])
def groups(rows, cols, size, threads, dtype):
    count = rows * cols // size

    @T.prim_func
    def main(
        A: T.Tensor((rows, cols), dtype),
        B: T.Tensor((rows, cols), dtype),
        S: T.Tensor((count,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_fragment((rows, cols), dtype)
            s = T.alloc_fragment((count,), dtype)
            T.copy(A, a)
            parts = T.reshape(a, (count, size))
            for i, j in T.Parallel(rows, cols):
                a[i, j] = a[i, j] + 1
            T.reduce_absmax(parts, s, dim=1)
            for i, j in T.Parallel(count, size):
                parts[i, j] = parts[i, j] - s[i]
            T.copy(a, B)
            T.copy(s, S)

    return main


@tilelang.jit(out_idx=[2, 3])
def products(m, n, k, size, threads):
    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        S: T.Tensor((m, n // size), "float32"),
        C: T.Tensor((m, n // size, size), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((m, k), "float16")
            b = T.alloc_shared((k, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            s = T.alloc_fragment((m, n // size), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            parts = T.reshape(c, (m, n // size, size))
            T.reduce_absmax(parts, s, dim=2)
            T.copy(s, S)
            T.copy(parts, C)

    return main


@tilelang.jit(out_idx=[1])
def sums(threads):
    @T.prim_func
    def main(A: T.Tensor((24, 40), "float32"), B: T.Tensor((4, 6), "float32")):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_fragment((24, 40), "float32")
            r = T.alloc_fragment((24,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, r, dim=1)
            T.copy(T.reshape(r, (4, 6)), B)

    return main


def main():
    torch.manual_seed(0)
    for rows, cols, size, threads, dtype in (
        (8, 96, 32, 128, "float32"),
        (7, 33, 11, 32, "float16"),
        (16, 96, 3, 256, "bfloat16"),
        (6, 40, 8, 96, "int32"),
        (64, 3, 64, 128, "float32"),
    ):
        a = torch.randint(-20, 20, (rows, cols)).to(getattr(torch, dtype))
        b, s = (t.cpu() for t in groups(rows, cols, size, threads, dtype)(a.to(DEV)))
        parts = (a + 1).view(-1, size)
        assert torch.equal(s, parts.abs().amax(1)), (rows, cols, size, threads)
        assert torch.equal(b, (parts - s[:, None]).view(rows, cols))
    for m, n, size, threads in ((64, 96, 32, 128), (48, 96, 3, 96)):
        a, b = torch.randn(m, 32).half(), torch.randn(32, n).half()
        s, c = (t.cpu() for t in products(m, n, 32, size, threads)(a.to(DEV), b.to(DEV)))
        want = (a.float() @ b.float()).view(m, -1, size)
        torch.testing.assert_close(c, want, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(s, want.abs().amax(2), rtol=1e-3, atol=1e-3)
    a = torch.randn(24, 40)
    for threads in (32, 128, 192):
        torch.testing.assert_close(sums(threads)(a.to(DEV)).cpu(), a.sum(1).view(4, 6))
    print("OK")


main()
