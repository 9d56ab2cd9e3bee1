"""Classes of trace time: T.meta_class, T.inline, and the tile orders built on them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import count, expect, run, zeros

Ints = T.Tensor((8,), "int32")


@T.meta_class
class Counter:
    """Counts, and remembers the largest number seen."""

    def __init__(self, start: int) -> None:
        self.total = T.alloc_var("int32", init=start)
        self.most = T.alloc_var("int32", init=0)

    def add(self, value: Any) -> None:
        self.total[0] += value
        if value > self.most[0]:
            self.most[0] = value

    def both(self) -> Any:
        return self.total[0] * 100 + self.most[0]

    @T.inline
    def twice(self, value: Any) -> None:
        self.add(value)
        self.add(value)


def test_methods_that_store_are_traced() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            seen = Counter(10)
            for i in T.serial(8):
                seen.add(A[i])
            seen.twice(3)
            A[0] = seen.both()

    assert run(main, count())[0] == (10 + 28 + 6) * 100 + 7


def _order(rows: int, cols: int, panel: int, column_major: bool) -> list[tuple[int, int]]:
    """The tiles in panels, written as loops."""
    swept, across = (rows, cols) if column_major else (cols, rows)
    found = []
    for first in range(0, across, panel):
        for s in range(swept):
            found += [(s, a) for a in range(first, min(first + panel, across))]
    return found if column_major else [(b, a) for a, b in found]


@pytest.mark.parametrize("column_major", [True, False])
@pytest.mark.parametrize(("rows", "cols", "panel"), [(5, 7, 1), (5, 7, 3), (4, 6, 2), (1, 3, 8)])
def test_every_tile_in_the_order_of_panels(
    rows: int, cols: int, panel: int, column_major: bool
) -> None:
    workers = 3

    @T.prim_func
    def main(Row: T.Tensor((64,), "int32"), Col: T.Tensor((64,), "int32"), N: Ints):
        with T.Kernel(workers, threads=1) as block:
            tiles = T.PersistentTileScheduler(
                rows, cols, workers, swizzle_size=panel, column_major=column_major, name="tiles"
            )
            tiles.init(block)
            while tiles.valid():
                Row[tiles.linear_idx] = tiles.m_idx
                Col[tiles.linear_idx] = tiles.n_idx
                tiles.next_tile()
            N[block] = tiles.current_iter

    row, col, done = torch.full((64,), -1).int(), torch.full((64,), -1).int(), zeros()
    kernel = tilelab.compile(main, target="sm_90a")
    kernel(row, col, done)
    total = rows * cols
    visited = list(zip(row.tolist(), col.tolist(), strict=True))
    assert visited[:total] == _order(rows, cols, panel, column_major)
    assert visited[total:] == [(-1, -1)] * (64 - total)
    assert done.tolist()[:workers] == [len(range(w, total, workers)) for w in range(workers)]
    assert "tiles_m_idx" in kernel.get_kernel_source()


def test_coordinates_without_state() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            tiles = T.PersistentTileScheduler(4, 2, 1, swizzle_size=2, stateful=False)
            for w in T.serial(8):
                m, n = tiles.coord(w)
                A[w] = m * 10 + n

    assert run(main, zeros()) == [m * 10 + n for m, n in _order(4, 2, 2, True)]


def test_an_order_of_the_programs_own() -> None:
    @T.meta_class
    class Backwards(T.BaseTileScheduler):
        """Tiles of one row, the last one first."""

        def __init__(self, cols: int) -> None:
            super().__init__()
            self._total_tiles = cols

        def update_current_idx(self, linear_idx: Any) -> None:
            self._m_idx[0] = 0
            self._n_idx[0] = self._total_tiles - 1 - linear_idx

    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            tiles = Backwards(8)
            tiles.init(0)
            while tiles.valid():
                A[tiles.linear_idx] = tiles.n_idx
                tiles.next_tile(1)

    assert run(main, zeros()) == list(range(7, -1, -1))


@pytest.mark.parametrize("wrong", [{"swizzle_size": 0}, {"cluster_size": -1}])
def test_sizes_that_are_none(wrong: dict[str, int]) -> None:
    with expect(ValueError, "TL1438", next(iter(wrong))):

        @T.prim_func
        def main(A: Ints):
            with T.Kernel(1, threads=1):
                T.PersistentTileScheduler(4, 4, 1, **wrong)


def test_instructions_and_clusters_of_a_later_version() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: Ints):
        with T.Kernel(8, threads=1) as b:
            A[b] = T.fma(A[b], 2.0, T.fmul(A[b], 0.5))
            B[T.get_cluster_id(0)] = T.get_cluster_ids()[0]

    marks = zeros()
    assert run(main, count(torch.float32), marks) == [2.5 * i for i in range(8)]
    assert marks.tolist() == list(range(8))
