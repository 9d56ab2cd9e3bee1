"""What a program asks of the compiler beside its result: how a copy is made, resident blocks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.errors import TileValueError

HOPPER = "sm_90a"


def _product(**wish: Any) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"),
        B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], a, **wish)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C, **wish)

    return tilelab.compile(main, out_idx=[2], target=HOPPER)


@pytest.mark.parametrize(
    ("wish", "present", "absent"),
    [
        ({}, ("tma_load",), ("cp_async_",)),
        ({"prefer_instruction": "tma"}, ("tma_load",), ("cp_async_",)),
        ({"disable_tma": True}, ("cp_async_",), ("tma_load", "tma_store")),
        ({"prefer_instruction": "cp_async"}, ("cp_async_",), ("tma_load", "tma_store")),
    ],
)
def test_a_copy_takes_what_it_asks_for(
    wish: dict[str, Any], present: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    kernel = _product(**wish)
    source = kernel.get_kernel_source()
    assert [w for w in present if w not in source] == []
    assert [w for w in absent if w in source] == []
    a, b = torch.randn(128, 256).half(), torch.randn(256, 64).half()
    assert torch.allclose(kernel(a, b).float(), a.float() @ b.float(), atol=0.05)


def test_a_synchronous_copy_is_made_where_it_stands() -> None:
    kernel = _product(prefer_instruction="sync")
    plan = kernel.trace.pipelines[0]
    assert [op.label for op in plan.producers] == ["B -> b"]
    a, b = torch.randn(128, 256).half(), torch.randn(256, 64).half()
    assert torch.allclose(kernel(a, b).float(), a.float() @ b.float(), atol=0.05)


@pytest.mark.parametrize("argument", ["prefer_instruction", "eviction_policy"])
def test_unknown_words_of_a_copy(argument: str) -> None:
    with pytest.raises(TileValueError, match=argument) as caught:
        _product(**{argument: "fastest"})
    assert caught.value.code == "TL1506"


def _resident(blocks: int, threads: int) -> str:
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=threads) as _:
            T.annotate_min_blocks_per_sm(blocks)
            for i in T.Parallel(1024):
                A[i] = i

    return tilelab.compile(main, target=HOPPER).get_kernel_source()


def test_blocks_of_a_multiprocessor() -> None:
    assert "__launch_bounds__(128, 4)" in _resident(4, 128)


@pytest.mark.parametrize(("blocks", "threads"), [(0, 128), (-1, 128), (3, 1024)])
def test_blocks_that_do_not_fit(blocks: int, threads: int) -> None:
    with pytest.raises(TileValueError) as caught:
        _resident(blocks, threads)
    assert caught.value.code == "TL1437"
