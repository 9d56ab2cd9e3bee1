"""Programs with the less used names of the language, and what they must compute; CPU and CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER

Check = Callable[[Any, str], None]


def check_safe_value(target: Any, device: str) -> None:
    """Copies of all kinds and element reads past a tensor's end give the annotated number."""
    n = 50

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float16"), B: T.Tensor((3, 64), "float16"), C: T.Tensor((64,), "float32")
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            T.annotate_safe_value({A: 7})
            s = T.alloc_shared((64,), "float16")
            r = T.alloc_fragment((64,), "float32")
            T.copy(A[0], s)
            T.copy(s, B[0, :])
            T.copy(A[0], r)
            T.copy(r, C)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0], s)
                T.copy(s, B[1 + k, :])
            for i in T.Parallel(64):
                C[i] += A[i]

    a = torch.arange(n, device=device).half()
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    want = torch.full((64,), 7, device=device).half()
    want[:n] = a
    assert torch.equal(b, want.expand(3, 64))
    assert torch.equal(c, want.float() * 2)


def check_words(target: Any, device: str) -> None:
    """T.ldg*, lds*, sts*, stg* of every width; predicates; T.extract_lane; T.__ldg."""

    @T.prim_func
    def main(
        A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"),
        C: T.Tensor((32, 4), "uint32"), D: T.Tensor((32,), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            s = T.alloc_shared((32, 32), "float16")
            whole = T.ldg256(A[t, 0])
            T.sts128(s[t, 0], T.ldg128(A[t, 0:8]))
            T.sts64(s[t, 8], T.ldg64(A[t, 8]))
            T.sts64(s[t, 12], T.ldg64(A[t, 12], t < 16))
            T.sts32(s[t, 16], T.ldg32(A[t, 16]))
            T.sync_threads()
            T.stg128(B[t, 0], T.lds128(s[t, 0]))
            T.stg64(B[t, 8], T.lds64(s[t, 8]))
            T.stg64(B[t, 12], T.lds64(s[t, 12]))
            T.stg32(B[t, 16], T.lds32(s[t, 16]), t % 2 == 0)
            for k in T.serial(4):
                C[t, k] = T.extract_lane(whole, k * 2)
            D[t] = getattr(T, "__ldg")(A[t, 31])

    torch.manual_seed(0)
    a = torch.randn(32, 32, device=device).half()
    b = torch.full_like(a, -1)
    c = torch.zeros(32, 4, dtype=torch.uint32, device=device)
    d = torch.zeros(32, device=device).half()
    tilelab.compile(main, target=target)(a, b, c, d)
    want = torch.full_like(a, -1)
    want[:, :16] = a[:, :16]
    want[16:, 12:16] = 0
    want[::2, 16:18] = a[::2, 16:18]
    assert torch.equal(b, want)
    assert torch.equal(c.cpu(), a.cpu().view(torch.int32)[:, 0:8:2].view(torch.uint32))
    assert torch.equal(d, a[:, 31])


def check_dot4(target: Any, device: str) -> None:
    """T.dp4a of signed and of unsigned bytes in registers."""

    @T.prim_func
    def main(
        A: T.Tensor((32, 8), "int8"), B: T.Tensor((32, 8), "int8"), C: T.Tensor((32,), "int32"),
        D: T.Tensor((32,), "uint32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            a = T.alloc_local((8,), "int8")
            b = T.alloc_local((8,), "int8")
            u = T.alloc_local((4,), "uint8")
            c = T.alloc_local((1,), "int32")
            d = T.alloc_local((1,), "uint32")
            for i in T.vectorized(8):
                a[i] = A[t, i]
                b[i] = B[t, i]
            for i in T.serial(4):
                u[i] = a[i]
            c[0] = t
            d[0] = 1
            for k in T.serial(2):
                T.dp4a(a[k * 4], b[k * 4], c[0])
            T.dp4a(u[0], u[0], d[0])
            C[t] = c[0]
            D[t] = d[0]

    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, (32, 8), device=device).to(torch.int8) for _ in "ab")
    c, d = tilelab.compile(main, out_idx=[2, 3], target=target)(a, b)
    want = (a.int() * b.int()).sum(1) + torch.arange(32, device=device)
    assert torch.equal(c, want.int())
    unsigned = a[:, :4].to(torch.uint8).int().cpu()
    assert d.cpu().to(torch.int64).tolist() == ((unsigned**2).sum(1) + 1).tolist()


def _philox(counter: list[int], key: list[int]) -> list[int]:
    """Ten rounds with Python's integers."""
    for number in range(10):
        if number:
            key = [(k + w) % 2**32 for k, w in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)]
        p, q = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            (q >> 32) ^ counter[1] ^ key[0], q % 2**32, (p >> 32) ^ counter[3] ^ key[1], p % 2**32
        ]  # fmt: skip
    return counter


def check_random(target: Any, device: str) -> None:
    """T.rng_rand from an offset on, across a block of four draws; T.rng_rand_float."""
    seed, offset = 2**33 + 5, 3

    @T.prim_func
    def main(A: T.Tensor((64, 6), "uint32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            T.rng_init(seed, off=offset)
            for i in T.serial(6):
                A[b * 32 + t, i] = T.rng_rand()
            B[b * 32 + t] = T.rng_rand_float()

    words, floats = tilelab.compile(main, out_idx=[0, 1], target=target)()
    for thread in (0, 1, 31, 32, 63):
        draws = [
            _philox([n // 4, 0, thread, 0], [seed % 2**32, seed >> 32])[n % 4]
            for n in range(offset, offset + 7)
        ]
        assert words[thread].tolist() == draws[:6]
        want = np.float32(draws[6]) * np.float32(2.0**-32) + np.float32(2.0**-33)
        assert abs(float(floats[thread]) - float(want)) <= 2.0**-24


def check_promises(target: Any, device: str) -> None:
    """Hints that change no result: assumptions, aliases, launch control, clusters of one block."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        T.annotate_compile_flags(["-lineinfo"])
        T.annotate_pass_configs({"tl.disable_tma_lower": True})
        with T.ClusterKernel(1, cluster_dims=1, threads=64) as bx:
            t = T.get_thread_binding()
            T.annotate_restrict_buffers(A, B)
            T.assume(t < 64)
            T.pdl_sync()
            T.pdl_trigger()
            bar = T.alloc_cluster_barrier([64])
            T.mbarrier_arrive(bar[0], cta_id=T.block_rank_in_cluster())
            T.mbarrier_wait_parity(bar[0], 0)
            T.cluster_arrive()
            T.cluster_wait()
            T.cluster_sync()
            A[t] = B[t] + bx

    values = torch.arange(64, device=device).float()
    kernel = tilelab.compile(main, target=target)
    kernel(values, values)  # one tensor for both: the program says that it may be
    assert torch.equal(values, torch.arange(64, device=device).float())
    assert "__restrict__" not in kernel.get_kernel_source()
    assert kernel.pass_configs["tl.disable_tma_lower"] is True


@T.macro
def _shifted(tile: T.SharedBuffer((64,), "int32"), by: int, out: T.Buffer((64,), "int32")):
    for i in T.Parallel(64):
        out[i] = T.shift_left(tile[i], by)


def check_spellings(target: Any, device: str) -> None:
    """Older and rarer spellings: T.Buffer, alloc_buffer, symbolic, Serial, parallel, Cast."""
    n = T.symbolic("n")
    has_proxies = target == HOPPER

    @T.prim_func
    def main(
        A: T.Buffer((n,), "int32"), B: T.Buffer((64,), "int32"), C: T.Tensor((64,), T.tfloat32),
        D: T.Tensor((64,), T.float8_e4m3),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_buffer((64,), "int32", scope="shared")
            T.copy(A[0], s)
            if has_proxies:
                T.fence_proxy_async()
            _shifted(s, 2, B)
            for i in T.parallel(64):
                C[i] = T.ceil(T.log(T.Cast("float32", i + 1)))
            for k in T.Serial(2):
                for i in T.Parallel(32):
                    D[k * 32 + i] = T.cast(i % 9, T.float8_e4m3)

    a = torch.arange(64, device=device).int()
    b, c, d = tilelab.compile(main, out_idx=[1, 2, 3], target=target)(a)
    assert torch.equal(b, a * 4)
    assert torch.equal(c, (a.float() + 1).log().ceil())
    assert torch.equal(d.float(), (a % 32 % 9).float())


CHECKS: tuple[Check, ...] = (
    check_safe_value, check_words, check_dot4, check_random, check_promises, check_spellings
)  # fmt: skip
