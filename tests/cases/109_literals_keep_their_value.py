# Source: tile-ai/tilelang#1299, #2582, #2882, #2945, #2999, #3000, #3001, #3002 (class: a constant
# is folded in another type than its own, aborts the compiler, or takes its neighbour's type)
# Right outcome: a number in the program is that number; arithmetic on constants gives what the
# same arithmetic gives at run time.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
NAN = float("nan")


@tilelang.jit(out_idx=[1, 2, 3])
def masks():
    @T.prim_func
    def main(
        X: T.Tensor((8,), "int32"),
        U: T.Tensor((8,), "uint32"),
        B: T.Tensor((8,), "int32"),
        Q: T.Tensor((8,), "int32"),
    ):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(8):
                u = T.cast(X[i], "uint32")
                U[i] = (u & 0xFFFFFFFF) ^ (T.uint32(1) << 31)
                B[i] = (X[i] & 0x7FFFFFFF) ^ (T.int32(1) << T.int32(31))
                Q[i] = X[i] // 65536 // 65536 + ((X[i] + 2000000000) + 2000000000)

    return main


@tilelang.jit(out_idx=[1, 2])
def narrow():
    @T.prim_func
    def main(
        X: T.Tensor((64,), "uint8"), S: T.Tensor((64,), "int32"), F: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(64):
                S[i] = X[i] + 300
                if X[i] < 256 and X[i] > -1:
                    S[i] = S[i] + 1000
                F[i] = T.max(X[i], 99.5)

    return main


@tilelang.jit(out_idx=[0, 1])
def constants():
    @T.prim_func
    def main(C: T.Tensor((12,), "float32"), D: T.Tensor((4,), "uint64")):
        with T.Kernel(1, threads=32) as _:
            C[0] = (T.float32(16777216.0) + T.float32(1.0)) - T.float32(16777216.0)
            C[1] = T.trunc(T.cast(T.float16(2049.5), "float32"))
            C[2] = T.cast(T.cast(257, "bfloat16"), "float32")
            C[3] = T.max(T.float32(NAN), T.float32(1.0))
            C[4] = T.min(T.float32(1.0), T.float32(NAN))
            C[5] = T.cast(T.float32(65519.0), "float16")
            C[6] = T.cast(300, "int8")
            C[7] = T.cast(T.cast(16777217, "float32"), "int32") - 16777216
            C[8] = T.max(1, 2.5)
            C[9] = T.ceil(T.float32(8388608.5)) - 8388608.0
            C[10] = T.cast(~T.uint32(5) // 2, "int32")
            C[11] = T.cast(T.cast(T.float32(460.0), "float8_e4m3fn"), "float32")
            D[0] = T.uint64(2**63) + T.uint64(5)
            D[1] = T.uint64(2**64 - 1) + T.uint64(2)
            D[2] = T.uint64(2**62) * T.uint64(3)
            D[3] = T.cast(-1, "uint32")

    return main


def main():
    x = torch.tensor([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 123456789], dtype=torch.int32)
    u, b, q = (t.cpu() for t in masks()(x.to(DEV)))
    assert torch.equal(u.view(torch.int32), x ^ -(2**31))
    assert torch.equal(b, (x & 0x7FFFFFFF) ^ -(2**31))
    sums = (x.long() + 4000000000).int()
    assert torch.equal(q, (x >> 31) + sums)

    y = torch.arange(0, 256, 4, dtype=torch.uint8)
    s, f = (t.cpu() for t in narrow()(y.to(DEV)))
    assert torch.equal(s, y.int() + 1300)
    assert torch.equal(f, y.float().clamp(min=99.5))

    c, d = (t.cpu() for t in constants()())
    want = [0.0, 2050.0, 256.0, 1.0, 1.0, 65504.0, 44.0, 0.0, 2.5, 0.0, 2147483645.0, 448.0]
    assert torch.equal(c, torch.tensor(want)), c
    bits = [v % 2**64 for v in d.view(torch.int64).tolist()]
    assert bits == [2**63 + 5, 1, 3 * 2**62, 2**32 - 1], bits
    print("OK")


main()
