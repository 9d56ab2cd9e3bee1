# Source: tile-ai/tilelang#2556, #2612, #1026 (class: threads of a branch that only some threads take
# hand data to each other; the barrier is dropped, misplaced, or hangs)
# Right outcome: the values of a barrier that all threads pass, or a clear error.
import tilelang
import tilelang.language as T
import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"


@tilelang.jit(out_idx=[1])
def part_of_the_block(threads, n):
    @T.prim_func
    def main(A: T.Tensor((threads,), "float32"), B: T.Tensor((threads,), "float32")):
        with T.Kernel(1, threads=threads) as _:
            s = T.alloc_shared((threads,), "float32")
            t = T.get_thread_binding()
            B[t] = 0.0
            if t < n:
                s[t] = A[t]
                B[t] = s[n - 1 - t]

    return main


@tilelang.jit(out_idx=[2])
def loop_in_a_loaded_branch():
    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"), M: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            t = T.get_thread_binding()
            s[t] = A[t]
            B[t] = 0.0
            if M[t] != 0:
                for _i in T.serial(3):
                    x = s[t]
                    s[t] = x + 1.0
                    B[t] = B[t] + s[(t + 1) % 64] * x

    return main


@tilelang.jit(out_idx=[1])
def sides_and_nests():
    @T.prim_func
    def main(A: T.Tensor((96,), "int32"), O: T.Tensor((96,), "int32")):
        with T.Kernel(1, threads=96) as _:
            s = T.alloc_shared((96,), "int32")
            t = T.get_thread_binding()
            y = A[t] * 2
            if t % 3 == 0:
                s[t] = y
                p = t // 3
                O[t] = s[(t + 3) % 96] + p
                if t >= 48:
                    s[t] = y + 1
                    O[t] = O[t] + s[48 + (t - 42) % 48] * p
            elif t % 3 == 1:
                O[t] = -1
            else:
                s[t] = 7 - y
                O[t] = s[(t + 3) % 96]

    return main


@tilelang.jit(out_idx=[1])
def loop_of_the_thread():
    @T.prim_func
    def main(N: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "int32")
            t = T.get_thread_binding()
            for i in T.serial(N[t]):
                s[t] = i
                O[t] = s[63 - t]

    return main


torch.manual_seed(0)
for threads, n in [(64, 48), (128, 100), (32, 7)]:
    a = torch.randn(threads, device=DEV)
    want = torch.zeros(threads, device=DEV)
    want[:n] = a[:n].flip(0)
    assert torch.equal(part_of_the_block(threads, n)(a), want), (threads, n)

a, m = torch.randn(64, device=DEV), torch.ones(64, dtype=torch.int32, device=DEV)
m[::4] = 0
s, want = a.clone(), torch.zeros(64, device=DEV)
for _ in range(3):
    x = s
    s = torch.where(m != 0, s + 1, s)
    want = want + torch.where(m != 0, s.roll(-1) * x, 0.0)
torch.testing.assert_close(loop_in_a_loaded_branch()(a, m), want)

a = torch.randint(0, 50, (96,), dtype=torch.int32, device=DEV)
t = torch.arange(96, device=DEV)
y = a * 2
first = y.roll(-3) + t // 3
again = first + (y[48 + (t - 42) % 48] + 1) * (t // 3)
last = 7 - y.roll(-3)
# A thread of the last kind reads what its neighbour of the same kind wrote.
want = torch.where(
    t % 3 == 0, torch.where(t >= 48, again, first), torch.where(t % 3 == 1, -1, last)
)
assert torch.equal(sides_and_nests()(a).long(), want.long())

try:
    loop_of_the_thread()(torch.ones(64, dtype=torch.int32, device=DEV))
except Exception as e:
    assert "barrier" in str(e), f"unhelpful error: {e}"
else:
    raise AssertionError("a barrier in a loop of one thread was accepted")
print("OK")
