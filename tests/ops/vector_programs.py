"""Short vectors of a thread: packed functions of two lanes, vectors of values and of bits."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T


def check_packed(target: Any, device: str) -> None:
    """T.add2 and its kin, on slices and on T.Ramp, in the three float types."""
    for dtype, kind in (
        ("float32", torch.float32), ("float16", torch.float16), ("bfloat16", torch.bfloat16),
    ):  # fmt: skip

        @T.prim_func
        def main(
            A: T.Tensor((256,), dtype), B: T.Tensor((256,), dtype), D: T.Tensor((256,), dtype),
            C: T.Tensor((6, 256), dtype),
        ):  # fmt: skip
            with T.Kernel(1, threads=128) as _:
                i = T.get_thread_binding() * 2
                pair = T.Ramp(i, 1, 2)
                for n, op in enumerate((T.add2, T.sub2, T.mul2, T.max2, T.min2)):
                    C[n, pair] = op(A[pair], B[i : i + 2])
                fused = T.fma2(A[pair], B[pair], D[pair])
                C[5, pair] = T.abs2(T.add2(fused, fused))

        torch.manual_seed(0)
        a, b, d = (torch.randn(256, device=device).to(kind) for _ in "abd")
        got = tilelab.compile(main, out_idx=[3], target=target)(a, b, d)
        want = (a + b, a - b, a * b, torch.maximum(a, b), torch.minimum(a, b))
        assert all(torch.equal(x, y) for x, y in zip(got[:5], want, strict=True))
        fused = (a.double() * b.double() + d.double()).to(kind)
        assert torch.equal(got[5], (fused + fused).abs())


def check_vectors(target: Any, device: str) -> None:
    """What T.ldg128 gives as four floats; vectors of values, of one value, and their bits."""

    @T.prim_func
    def main(
        A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"),
        C: T.Tensor((32, 8), "float16"), D: T.Tensor((32,), "uint32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            B[t * 4 : t * 4 + 4] = T.reinterpret(T.ldg128(A[t * 4]), T.float32x4)
            B[t * 4 + 1 : t * 4 + 3] = T.Broadcast(A[t * 4], 2)
            C[t, 0:8] = T.reinterpret(A[t * 4 : t * 4 + 4], T.float16x8)
            pair = T.float16x2(1.5, A[t * 4])
            D[t] = T.extract_lane(T.reinterpret(pair, "uint32"), 0)
            C[t, 6:8] = T.float16x2(T.int32x2(t, 7))

    torch.manual_seed(0)
    a = torch.randn(128, device=device)
    b, c, d = tilelab.compile(main, out_idx=[1, 2, 3], target=target)(a)
    want = a.view(32, 4).clone()
    want[:, 1:3] = want[:, :1]
    assert torch.equal(b.view(32, 4), want)
    halves = a.view(torch.float16).view(32, 8).clone()
    halves[:, 6] = torch.arange(32)
    halves[:, 7] = 7
    assert torch.equal(c.view(torch.int16), halves.view(torch.int16))
    pairs = torch.stack([torch.full_like(a[::4], 1.5), a[::4]], 1).half().contiguous()
    assert torch.equal(d.view(torch.int32), pairs.view(torch.int32).flatten())


CHECKS = (check_packed, check_vectors)
