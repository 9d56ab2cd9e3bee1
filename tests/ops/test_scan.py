"""T.cumsum and T.cummax in the simulator, for both feature sets."""

from __future__ import annotations

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.scan_programs import DTYPES, SHAPES, WHERE, check_region, check_scan
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("src", WHERE)
def test_shapes_in_place(
    target: dict[str, str], shape: tuple[int, ...], dim: int, src: str
) -> None:
    check_scan(target, "cpu", shape, dim, src=src)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_types(dtype: str, kind: str) -> None:
    check_scan(HOPPER, "cpu", (6, 50), 1, dtype=dtype, kind=kind)


@target
@pytest.mark.parametrize("src", WHERE)
@pytest.mark.parametrize("dst", WHERE)
def test_to_another_buffer(target: dict[str, str], src: str, dst: str) -> None:
    check_scan(target, "cpu", (9, 37), -1, src=src, dst=dst, reverse=True)
    check_scan(target, "cpu", (37, 64), 0, src=src, dst=dst, kind="max")


@pytest.mark.parametrize("threads", [32, 48, 96, 256])
def test_thread_counts(threads: int) -> None:
    check_scan(HOPPER, "cpu", (5, 77), 1, threads=threads)
    check_scan(HOPPER, "cpu", (77, 5), 0, threads=threads, src="fragment")


@target
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("overlapping", [False, True])
def test_regions(target: dict[str, str], where: str, overlapping: bool) -> None:
    check_region(target, "cpu", where, overlapping)


def _error(where: str, **scan: object) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 16), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((8, 16), "float32")
                T.copy(A, s)
                if where == "global":
                    T.cumsum(A)
                elif where == "shape":
                    T.cumsum(s, s[0:4, :])
                else:
                    T.cumsum(s, **scan)

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    found = _error("axis", dim=2)
    assert (found.code, found.message) == ("TL1523", "dim = 2, and the tile of s has 2 axes")
    assert _error("shape").code == "TL1523"
    found = _error("global")
    assert found.code == "TL1524" and "A of a scan lives in global memory" in found.message
