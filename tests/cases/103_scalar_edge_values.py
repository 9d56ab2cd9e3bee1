# Source: tile-ai/tilelang#2943 (ceildiv of a negative divisor), #3024 (clamp drops NaN), #2599 (bits
# of a float leak a compiler error), #995 (floor and truncating division)
import math

import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
N = 6


@tilelang.jit(out_idx=[3, 4])
def build():
    @T.prim_func
    def main(
        A: T.Tensor((N,), "int32"),
        B: T.Tensor((N,), "int32"),
        X: T.Tensor((N,), "bfloat16"),
        O: T.Tensor((3, N), "int32"),
        Y: T.Tensor((N,), "bfloat16"),
    ):
        with T.Kernel(1, threads=32) as _:
            for i in T.serial(N):
                O[0, i] = T.ceildiv(A[i], B[i])
                O[1, i] = A[i] // B[i]
                O[2, i] = T.truncdiv(A[i], B[i])
                Y[i] = T.clamp(X[i], -1.0, 1.0)

    return main


a = [7, -7, 7, -7, 6, 0]
b = [-3, -3, 3, 3, -3, -5]
x = torch.tensor([float("nan"), 3.0, 0.5, -9.0, float("inf"), -0.25], device=DEV).bfloat16()
o, y = build()(*(torch.tensor(v, dtype=torch.int32, device=DEV) for v in (a, b)), x)
pairs = list(zip(a, b, strict=True))
want = [[f(p / q) for p, q in pairs] for f in (math.ceil, math.floor, math.trunc)]
assert o.tolist() == want, (o.tolist(), want)
torch.testing.assert_close(y, x.clamp(-1, 1), equal_nan=True)


@tilelang.jit
def build_bits():
    @T.prim_func
    def main(X: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            X[t] = T.warp_reduce_bitand(X[t])

    return main


try:
    build_bits()(torch.ones(32, device=DEV))
except Exception as e:
    assert "float32" in str(e) and "bit" in str(e), f"unhelpful error: {e}"
else:
    raise AssertionError("a bit operation on floats was accepted")
print("OK")
