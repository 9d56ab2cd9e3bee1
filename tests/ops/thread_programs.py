"""Programs written for single threads: barriers, shuffles, roles; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T


def warp_values() -> Any:
    """Shuffles, votes, matches and reductions of a warp."""

    @T.prim_func
    def main(
        X: T.Tensor((128,), "float32"), F: T.Tensor((10, 128), "float32"),
        M: T.Tensor((5, 128), "int64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            x = X[t]
            F[0, t] = T.shfl_xor(x, 5)
            F[1, t] = T.shfl_up(x, 3)
            F[2, t] = T.shfl_down(x, 3, width=8)
            F[3, t] = T.shfl_sync(x, 7, 16)
            F[4, t] = T.tvm_warp_shuffle_down(0xFFFFFFFF, x, 1, 32, 32)
            F[5, t] = T.warp_reduce_max(x)
            F[6, t] = T.get_warp_idx_sync()
            F[7, t] = T.any_sync(x > 2)
            F[8, t] = T.all_sync(x > -2)
            F[9, t] = T.warp_reduce_sum(T.cast(t, "float32"))
            M[0, t] = T.ballot(x > 0)
            M[1, t] = T.match_any_sync(t % 3)
            M[2, t] = T.match_all_sync(t // 64)
            M[3, t] = T.activemask()
            M[4, t] = T.warp_reduce_bitor(1 << (t % 32 // 2))

    return main


def check_warp_values(target: Any, device: str) -> None:
    """Compile, run and compare."""
    torch.manual_seed(1)
    x = torch.randn(128, device=device)
    f = torch.zeros(10, 128, device=device)
    m = torch.zeros(5, 128, dtype=torch.int64, device=device)
    tilelab.compile(warp_values(), target=target)(x, f, m)
    x, f, m = x.cpu(), f.cpu(), m.cpu()
    lane = torch.arange(128)
    warps = x.reshape(4, 32)

    def spread(values: Any) -> Any:
        return values.reshape(4, 1).expand(4, 32).reshape(-1)

    assert torch.equal(f[0], x[lane ^ 5])
    assert torch.equal(f[1], torch.where(lane % 32 >= 3, x[lane - 3], x))
    assert torch.equal(f[2], torch.where(lane % 8 < 5, x[(lane + 3) % 128], x))
    assert torch.equal(f[3], x[lane // 16 * 16 + 7])
    assert torch.equal(f[4], torch.where(lane % 32 < 31, x[(lane + 1) % 128], x))
    assert torch.equal(f[5], spread(warps.amax(1)))
    assert torch.equal(f[6], (lane // 32).float())
    assert torch.equal(f[7], spread((warps > 2).any(1)).float())
    assert torch.equal(f[8], spread((warps > -2).all(1)).float())
    assert torch.equal(f[9], spread(lane.reshape(4, 32).sum(1)).float())
    bits = 2 ** torch.arange(32)
    assert torch.equal(m[0], spread(((warps > 0) * bits).sum(1)))
    same = (lane.reshape(4, 32, 1) % 3 == lane.reshape(4, 1, 32) % 3) * bits
    assert torch.equal(m[1], same.sum(2).reshape(-1))
    assert bool((m[2] == 0xFFFFFFFF).all()) and bool((m[3] == 0xFFFFFFFF).all())
    assert bool((m[4] == 0xFFFF).all())


def check_block_barriers(target: Any, device: str) -> None:
    """Barriers of the block that count, named barriers, and data handed over by hand."""

    @T.prim_func
    def main(X: T.Tensor((96,), "float32"), F: T.Tensor((4, 96), "float32")):
        with T.Kernel(1, threads=96):
            t = T.get_thread_binding()
            s = T.alloc_shared((96,), "float32")
            F[0, t] = T.syncthreads_count(X[t] > 0)
            F[1, t] = T.syncthreads_and(X[t] > 0)
            F[2, t] = T.syncthreads_or(X[t] > 0)
            s[t] = X[t]
            T.sync_threads()
            F[3, t] = s[95 - t]
            T.sync_warp()
            T.tvm_storage_sync("shared")
            T.sync_threads(3, 96)

    x = torch.randn(96, device=device)
    f = torch.zeros(4, 96, device=device)
    tilelab.compile(main, target=target)(x, f)
    assert bool((f[0] == (x > 0).sum()).all())
    assert bool((f[1] == 0).all()) and bool((f[2] == 1).all())
    assert torch.equal(f[3], x.flip(0))


STYLES = ("in the loop", "by thread index", "around the loop", "tma")
M, N, K, BM, BN, BK, STAGES = 256, 128, 192, 128, 128, 64, 2
STEPS = K // BK


@T.macro
def load(ko: Any, A: Any, B: Any, As: Any, Bs: Any, bars: Any, bx: Any, by: Any, tma: bool) -> None:
    """Fill a slot of the ring."""
    slot = ko % STAGES
    T.mbarrier_wait_parity(bars[slot + STAGES], (ko // STAGES) % 2 ^ 1)
    if tma:
        T.tma_copy(A[by * BM, ko * BK], As[slot, :, :], barrier=bars[slot])
        T.tma_copy(B[ko * BK, bx * BN], Bs[slot, :, :], barrier=bars[slot])
    else:
        T.copy(A[by * BM, ko * BK], As[slot, :, :])
        T.copy(B[ko * BK, bx * BN], Bs[slot, :, :])
    T.mbarrier_arrive(bars[slot])


@T.macro
def multiply(ko: Any, As: Any, Bs: Any, Cl: Any, bars: Any) -> None:
    """Use a slot of the ring, and free it."""
    T.barrier_wait(bars[ko % STAGES], (ko // STAGES) % 2)
    T.gemm(As[ko % STAGES, :, :], Bs[ko % STAGES, :, :], Cl)
    T.barrier_arrive(bars[ko % STAGES + STAGES])


@T.macro
def in_the_loop(A: Any, B: Any, C: Any, As: Any, Bs: Any, Cl: Any, bars: Any, bx: Any, by: Any):
    with T.ws(0):
        T.clear(Cl)
    for ko in range(STEPS):
        with T.ws(1):
            load(ko, A, B, As, Bs, bars, bx, by, False)
        with T.ws(0):
            multiply(ko, As, Bs, Cl, bars)
    with T.ws(0):
        T.copy(Cl, C[by * BM, bx * BN])


@T.macro
def by_index(A: Any, B: Any, C: Any, As: Any, Bs: Any, Cl: Any, bars: Any, bx: Any, by: Any):
    if T.get_thread_binding() < 128:
        T.clear(Cl)
        for ko in range(STEPS):
            multiply(ko, As, Bs, Cl, bars)
        T.copy(Cl, C[by * BM, bx * BN])
    else:
        for ko in range(STEPS):
            load(ko, A, B, As, Bs, bars, bx, by, False)


def around(tma: bool) -> Any:
    @T.macro
    def roles(A: Any, B: Any, C: Any, As: Any, Bs: Any, Cl: Any, bars: Any, bx: Any, by: Any):
        with T.ws(1):
            T.set_max_nreg(24, 0)
            for ko in range(STEPS):
                load(ko, A, B, As, Bs, bars, bx, by, tma)
        with T.ws(0):
            T.set_max_nreg(240, 1)
            T.clear(Cl)
            for ko in range(STEPS):
                multiply(ko, As, Bs, Cl, bars)
            T.copy(Cl, C[by * BM, bx * BN])

    return roles


def ring_gemm(style: str) -> Any:
    """A gemm whose loads and products are divided between warp groups by the program."""
    bodies = (in_the_loop, by_index, around(False), around(True))
    body = dict(zip(STYLES, bodies, strict=True))[style]

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(N // BN, M // BM, threads=256) as (bx, by):
            As = T.alloc_shared((STAGES, BM, BK), "float16")
            Bs = T.alloc_shared((STAGES, BK, BN), "float16")
            Cl = T.alloc_fragment((BM, BN), "float32")
            bars = T.alloc_barrier([128] * (2 * STAGES))
            body(A, B, C, As, Bs, Cl, bars, bx, by)

    return main


def check_roles(target: Any, device: str, style: str) -> None:
    """Compile, run and compare."""
    torch.manual_seed(2)
    a = torch.randn(256, 192, device=device).half()
    b = torch.randn(192, 128, device=device).half()
    c = torch.zeros(256, 128, device=device)
    tilelab.compile(ring_gemm(style), target=target)(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)


def check_tma(target: Any, device: str) -> None:
    """A tile comes by TMA, is changed, and goes by TMA; tails are zeros and are dropped."""

    @T.prim_func
    def main(
        A: T.Tensor((200, 64), "float16"), B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((200, 64), "float16"), D: T.Tensor((256,), "int32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((128, 64), "float16")
            bar = T.alloc_barrier(128)
            t = T.get_thread_binding()
            T.tma_copy(A[bx * 128, 0], s, barrier=bar)
            T.barrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(s, B[bx * 128, 0])
            for i, j in T.Parallel(128, 64):
                s[i, j] = s[i, j] * T.float16(2)
            T.tma_copy(s, C[bx * 128, 0])
            T.tma_store_wait(0)
            D[bx * 128 + t] = T.reinterpret(T.cast(s[t, 0], "float32"), "int32")

    a = torch.randn(200, 64, device=device).half()
    b = torch.full((256, 64), 7.0, device=device).half()
    c = torch.zeros_like(a)
    d = torch.zeros(256, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(a, b, c, d)
    assert torch.equal(b[:200], a) and bool((b[200:] == 0).all())
    assert torch.equal(c, 2 * a)
    assert torch.equal(d[:200], (2 * a)[:, 0].float().view(torch.int32))


def check_async_copy(target: Any, device: str) -> None:
    """Groups of cp.async that the program waits for, as a tile and one by one."""

    @T.prim_func
    def main(A: T.Tensor((200, 60), "float16"), B: T.Tensor((200, 60), "float16")):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((128, 60), "float16")
            t = T.get_thread_binding()
            T.async_copy(A[bx * 128, 0], s)
            T.ptx_wait_group(0)
            T.copy(s, B[bx * 128, 0])
            T.sync_threads()
            if t < 15:
                T.ptx_cp_async(T.access_ptr(s[0, t * 4], "w"), T.access_ptr(A[0, t * 4]), 4)
            if t < 15:
                T.ptx_cp_async(T.access_ptr(s[1, t * 4], "w"), T.address_of(A[0, t * 4]), 4, t < 7)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            if t < 60 and bx == 0:
                B[0, t] = s[0, t]
                B[1, t] = s[1, t]

    a = torch.randn(200, 60, device=device).half()
    b = torch.zeros_like(a)
    tilelab.compile(main, target=target)(a, b)
    assert torch.equal(b[2:], a[2:]) and torch.equal(b[0], a[0])
    assert torch.equal(b[1, :28], a[0, :28]) and bool((b[1, 28:] == 0).all())


def check_thread_reduction(target: Any, device: str, reduce_threads: int, rows: int) -> None:
    """A matrix-vector product with T.tvm_thread_allreduce, as SIMT code does it."""
    N, K = 30, 100

    @T.prim_func
    def main(
        A: T.Tensor((K,), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=(reduce_threads, rows)) as bn:
            tn = T.get_thread_binding(1)
            acc = T.alloc_local((1,), "float32")
            out = T.alloc_local((1,), "float32")
            T.clear(acc)
            for tk in T.thread_binding(0, reduce_threads, thread="threadIdx.x"):
                for bk in T.serial(T.ceildiv(K, reduce_threads)):
                    k = bk * reduce_threads + tk
                    acc[0] += A[k] * B[bn * rows + tn, k]
                with T.attr(
                    T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]), "reduce_scope",
                    T.reinterpret(T.uint64(0), dtype="handle"),
                ):  # fmt: skip
                    T.evaluate(
                        T.tvm_thread_allreduce(
                            T.uint32(1), acc[0], True, out[0], tk, dtype="handle"
                        )
                    )
                if tk == 0:
                    C[bn * rows + tn] = out[0]

    a, b = torch.randn(K, device=device), torch.randn(N, K, device=device)
    c = torch.zeros(N, device=device)
    tilelab.compile(main, target=target)(a, b, c)
    torch.testing.assert_close(c, b @ a, rtol=1e-4, atol=1e-4)


def check_workspace(target: Any, device: str) -> None:
    """Two kernels that hand a tensor over; pointers that become tensors of a run-time size."""

    @T.prim_func
    def main(A: T.ptr, C: T.ptr, n: T.int32):
        A = T.make_tensor(A, (n,), "float32")
        C = T.make_tensor(C, (n,), "float32")
        W = T.alloc_global((128,), "float32")
        with T.Kernel(2, threads=64) as b:
            for t in T.thread_binding(0, 64, thread="threadIdx.x"):
                W[b * 64 + t] = A[b * 64 + t] * 2.0
        with T.Kernel(2, threads=64) as b, T.launch_thread("threadIdx.x", 64) as t:
            if b * 64 + t < n:
                C[b * 64 + t] = W[n - 1 - b * 64 - t]

    kernel = tilelab.compile(main, target=target)
    for n in (100, 128):
        a, c = torch.randn(n, device=device), torch.zeros(n, device=device)
        kernel(a, c, n)
        assert torch.equal(c, (2 * a).flip(0))


def check_divergent(target: Any, device: str, count: int) -> None:
    """A part of the block writes and reads shared memory: only these threads wait."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            t = T.get_thread_binding()
            C[t] = -1.0
            if t < count:
                s[t] = A[t]
                C[t] = s[count - 1 - t]

    a, c = torch.randn(128, device=device), torch.zeros(128, device=device)
    kernel = tilelab.compile(main, target=target)
    kernel(a, c)
    assert torch.equal(c[:count], a[:count].flip(0)) and bool((c[count:] == -1).all())
    assert "__syncthreads" not in kernel.get_kernel_source()


def check_bits(target: Any, device: str) -> None:
    """Counting bits in 32 and 64 of them."""

    @T.prim_func
    def main(P: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            P[0, t] = T.popcount(t)
            P[1, t] = T.clz(t)
            P[2, t] = T.popcount(T.cast(t, "uint64") << 40)
            P[3, t] = T.clz(T.cast(t, "int64"))

    p = torch.zeros(4, 128, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(p)
    ones = [bin(i).count("1") for i in range(128)]
    lengths = [i.bit_length() for i in range(128)]
    assert p[0].tolist() == ones and p[2].tolist() == ones
    assert p[1].tolist() == [32 - n for n in lengths]
    assert p[3].tolist() == [64 - n for n in lengths]
