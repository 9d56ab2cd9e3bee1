"""T.annotate_layout, T.Layout and T.Fragment in the simulator, for both feature sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.layout_programs import MODES, check_elements, check_gemm
from tilelab.errors import TileError
from tilelab.layout import FragmentMap, Layout, MapLayout, SharedLayout, padded, swizzled

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("stages", [0, 2])
@pytest.mark.parametrize("mode", MODES)
def test_gemm(target: Any, mode: str, stages: int) -> None:
    check_gemm(target, "cpu", mode, stages)


@target
def test_elements(target: Any) -> None:
    check_elements(target, "cpu")


def test_the_layout_is_taken() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32) as _:
            s = T.alloc_shared((32, 32), "float32")
            T.annotate_layout({s: lambda i, j: i * 33 + j})
            T.copy(A, s)

    kernel = tilelab.compile(main, target=HOPPER)
    decision = kernel.trace.layout_of("s")
    assert decision.layout == padded((32, 32), 32, 1)
    assert "annotate_layout" in decision.reason


def test_known_maps_become_layouts_of_the_algebra() -> None:
    assert Layout((8, 64), lambda i, j: (i, ((j // 8) ^ i) * 8 + j % 8)).shared(16) == swizzled(
        (8, 64), 16
    )
    assert isinstance(Layout((4, 8), lambda i, j: i * 8 + j).shared(32), SharedLayout)
    other = Layout((4, 8), lambda i, j: j * 4 + i)
    assert isinstance(other.shared(32), MapLayout)
    assert other.get_output_shape() == [32]
    assert other(1, 2) == [9] and other.is_equal(Layout((4, 8), lambda i, j: (j, i)))


def test_a_map_layout_answers_as_others_do() -> None:
    layout = Layout((4, 8), lambda i, j: (j, i)).shared(16).staged(3)
    for index in np.ndindex(3, 4, 8):
        offset = int(layout.offset_of(index))
        assert layout.offsets[index] == offset
        assert layout.element_at(offset) == index
    assert layout.num_bytes >= 3 * 64 and layout.num_bytes % layout.alignment == 0


def test_fragments_fill_the_block() -> None:
    found = FragmentMap((8, 4), lambda i, j: (i * 4 + j, 0)).fragment(128)
    assert (found.num_threads, found.replication, found.num_registers) == (128, 4, 1)


def _error(choose: Callable[[Any, Any], Any]) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 16), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((8, 16), "float32")
                f = T.alloc_fragment((8, 16), "float32")
                T.annotate_layout(choose(s, f))
                T.copy(A, s)
                T.copy(s, f)

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    found = _error(lambda s, f: {s: lambda i, j: i + j})
    assert found.code == "TL1537" and "gives two elements one place" in found.message
    found = _error(lambda s, f: {s: T.Layout((8, 8), lambda i, j: i * 8 + j)})
    assert "has the shape (8, 8), and the buffer (8, 16)" in found.message
    assert _error(lambda s, f: {s: T.Fragment((8, 16), lambda i, j: (j, i))}).code == "TL1536"
    assert _error(lambda s, f: {f: 3}).code == "TL1536"
    found = _error(lambda s, f: {f: T.Fragment((8, 16), lambda i, j: (i * 16 + j, 0))})
    assert "the map uses 128 threads of 32" in found.message
    found = _error(lambda s, f: {f: T.Fragment((8, 16), lambda i, j: ((i * j) % 32, i * 16 + j))})
    assert "not made of digits" in found.message


def test_a_torn_row_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({a: lambda i, j: j * 64 + i})
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)

    with pytest.raises(TileError, match="tears apart rows of 16 bytes") as caught:
        tilelab.compile(main, target=AMPERE)
    assert caught.value.code == "TL1773"


def test_hints_are_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    def trace() -> None:
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as _:
                T.annotate_l2_hit_ratio({A: 0.5})
                A[0] = 0

    trace()
    trace()
    assert capfd.readouterr().err.count("T.annotate_l2_hit_ratio: l2_hit_ratio_map changes") == 1
