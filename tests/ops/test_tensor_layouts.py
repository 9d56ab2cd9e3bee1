"""T.annotate_layout on a tensor: its elements lie where the layout says."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.errors import TileError

TARGETS = ("sm_80", "sm_90a")
ROWS, HEADS, WIDTH, TILE = 64, 3, 32, 16


def blocked(tensor: Any) -> Any:
    """Pieces of 4 rows and 8 columns, each of whose elements lie side by side."""
    return T.Layout(
        tensor.shape, lambda r, h, c: [r // 4, h, c // 8, c % 2, 4 * (r % 4) + c % 8 // 2]
    )


def swapped(tensor: Any) -> Any:
    return T.Layout(tensor.shape, lambda r, h, c: [h, r, c])


MAPS = {"blocked": blocked, "swapped": swapped}
SHAPE = (ROWS, HEADS, WIDTH)


def expected(x: torch.Tensor, name: str) -> torch.Tensor:
    """The bytes that a tensor of logical values `x` has under a map."""
    r, h, c = torch.meshgrid(*(torch.arange(n) for n in SHAPE), indexing="ij")
    if name == "swapped":
        place = (h * ROWS + r) * WIDTH + c
    else:
        inner = 4 * (r % 4) + c % 8 // 2
        place = (((r // 4 * HEADS + h) * (WIDTH // 8) + c // 8) * 2 + c % 2) * 16 + inner
    out = torch.empty(x.numel(), dtype=x.dtype)
    out[place.flatten()] = x.flatten()
    return out.reshape(SHAPE)


def writer(make: Any, rows: int = ROWS) -> Any:
    """Adds tiles into the placed tensor, element by element; the last block reaches past it."""

    @T.prim_func
    def put(A: T.Tensor(SHAPE, "float32"), P: T.Tensor(SHAPE, "float32")):
        with T.Kernel(T.ceildiv(ROWS, 24), HEADS, threads=64) as (bx, by):
            T.annotate_layout({P: make(P)})
            tile = T.alloc_fragment((24, WIDTH), "float32")
            T.copy(A[bx * 24 : bx * 24 + 24, by, :], tile)
            for i, j in T.Parallel(24, WIDTH):
                T.atomic_add(P[bx * 24 + i, by, j], tile[i, j])

    return put


def tile_writer(make: Any) -> Any:
    @T.prim_func
    def put(A: T.Tensor(SHAPE, "float32"), P: T.Tensor(SHAPE, "float32")):
        with T.Kernel(ROWS // TILE, HEADS, threads=64) as (bx, by):
            T.annotate_layout({P: make(P)})
            tile = T.alloc_shared((TILE, WIDTH), "float32")
            T.copy(A[bx * TILE : (bx + 1) * TILE, by, :], tile)
            T.atomic_add(P[bx * TILE : (bx + 1) * TILE, by, :], tile)

    return put


def reader(make: Any) -> Any:
    @T.prim_func
    def get(P: T.Tensor(SHAPE, "float32"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(ROWS // TILE, HEADS, threads=64) as (bx, by):
            T.annotate_layout({P: make(P)})
            T.copy(P[bx * TILE : (bx + 1) * TILE, by, :], C[bx * TILE : (bx + 1) * TILE, by, :])

    return get


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("write", [writer, tile_writer])
def test_elements_lie_where_the_layout_says(write: Any, name: str, target: str) -> None:
    x = torch.randn(SHAPE)
    placed = torch.zeros(SHAPE)
    tilelab.compile(write(MAPS[name]), target=target)(x, placed)
    torch.testing.assert_close(placed, expected(x, name))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MAPS)
def test_a_copy_reads_them_back(name: str, target: str) -> None:
    x = torch.randn(SHAPE)
    back = tilelab.compile(reader(MAPS[name]), out_idx=-1, target=target)(expected(x, name))
    torch.testing.assert_close(back, x.half())


@pytest.mark.parametrize(
    "bad",
    [lambda r, h, c: [h, r, c // 2], lambda r, h, c: [r, h, 2 * c], lambda r, h, c: [r - h, c]],
)
def test_a_map_that_gives_no_place_of_its_own_is_refused(bad: Any) -> None:
    with pytest.raises(TileError) as caught:
        tilelab.compile(reader(lambda t: T.Layout(t.shape, bad)), target="sm_90a")
    assert caught.value.code == "TL1537"
