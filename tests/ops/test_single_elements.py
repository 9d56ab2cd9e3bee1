"""Elements of a fragment in code that every thread runs: each thread holds the fragment whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T

TARGETS = ("sm_80", "sm_90a")


def chosen_tiles(count: int, dtype: str) -> Any:
    """Tiles are copied where a flag, held in a fragment, says so."""

    @T.prim_func
    def copy_chosen(
        flags: T.Tensor((2, count), dtype),
        A: T.Tensor((count * 16, 32), "float32"),
        C: T.Tensor((2, count * 16, 32), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            mine = T.alloc_fragment((count,), dtype)
            tile = T.alloc_shared((16, 32), "float32")
            T.copy(flags[bx, :], mine)
            for k in T.Pipelined(count, num_stages=2):
                if mine[k] != 0:
                    T.copy(A[k * 16 : (k + 1) * 16, :], tile)
                else:
                    T.clear(tile)
                T.copy(tile, C[bx, k * 16 : (k + 1) * 16, :])

    return copy_chosen


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "dtype"), [(4, "bool"), (16, "int8"), (5, "int32")])
def test_a_flag_chooses_what_all_threads_do(count: int, dtype: str, target: str) -> None:
    torch.manual_seed(count)
    flags = torch.rand(2, count) > 0.5
    a = torch.randn(count * 16, 32)
    given = flags if dtype == "bool" else flags.to(getattr(torch, dtype))
    kernel = tilelab.compile(chosen_tiles(count, dtype), out_idx=-1, target=target)
    expected = torch.where(flags.repeat_interleave(16, 1)[:, :, None], a[None], 0.0)
    torch.testing.assert_close(kernel(given, a), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_each_thread_has_values_of_its_own(target: str) -> None:
    @T.prim_func
    def rows_of_threads(A: T.Tensor((64, 6), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            own = T.alloc_fragment((2, 3), "int32")
            for i in T.serial(2):
                for j in T.serial(3):
                    own[i, j] = A[tx, i * 3 + j]
            C[tx] = own[0, 0] * 100 + own[1, 2]

    a = torch.arange(64 * 6, dtype=torch.int32).reshape(64, 6)
    kernel = tilelab.compile(rows_of_threads, out_idx=-1, target=target)
    assert torch.equal(kernel(a), a[:, 0] * 100 + a[:, 5])
