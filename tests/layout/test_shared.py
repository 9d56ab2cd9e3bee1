"""Shared layouts: bijection, the swizzles as TMA writes them, the inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelab.errors import TileValueError
from tilelab.layout import (
    TMA_32B,
    TMA_64B,
    TMA_128B,
    SharedLayout,
    Swizzle,
    best_swizzle,
    padded,
    row_major,
    swizzled,
)

from .strategies import PROFILE, Expr, elements

BYTES = {128: TMA_128B, 64: TMA_64B, 32: TMA_32B}


def check(layout: SharedLayout) -> None:
    """Offsets are distinct, inside the storage, and come back."""
    offsets = layout.offsets
    assert offsets.shape == layout.shape
    assert len(np.unique(offsets)) == offsets.size
    assert offsets.min() >= 0 and offsets.max() < layout.num_elements
    found = layout.element_at(np.arange(layout.num_elements))
    assert found is not None
    real = np.ones(layout.num_elements, bool) if not found else found[0] >= 0
    assert real.sum() == offsets.size
    for element in elements(layout)[:: max(1, offsets.size // 50)]:
        offset = layout.offset_of(element)
        assert int(offsets[element]) == offset and layout.element_at(offset) == element
        names = [f"i{k}" for k in range(len(element))]
        symbolic = layout.offset_of([Expr(n) for n in names])
        if element:
            assert symbolic.at(**dict(zip(names, element, strict=True))) == offset


@PROFILE
@given(
    st.sampled_from([128, 64, 32]),
    st.sampled_from([8, 16, 32]),
    st.integers(1, 3),
    st.sampled_from([1, 4, 8, 12, 64]),
    st.integers(1, 3),
)
def test_swizzled(width: int, bits: int, panels: int, rows: int, stages: int) -> None:
    cols = panels * width * 8 // bits
    layout = swizzled((stages, rows, cols), bits, width)
    check(layout)
    assert layout.alignment == width * 8
    assert layout.num_bytes % layout.alignment == 0
    # The XOR over the byte address, as the hardware does it, gives the same place.
    stage, row, col = np.indices(layout.shape)
    per = width * 8 // bits
    start = (stage * panels + col // per) * layout.panel_stride * bits // 8
    plain = start + row * width + col % per * bits // 8
    assert (BYTES[width].apply(plain) == layout.byte_offset_of((stage, row, col))).all()


def test_chunks_move_as_the_manual_says() -> None:
    for width, place in (
        (128, lambda r, c: c ^ (r % 8)),
        (64, lambda r, c: c ^ (r // 2 % 4)),
        (32, lambda r, c: c ^ (r // 4 % 2)),
    ):
        layout = swizzled((16, width // 2), 16, width)
        for r in range(16):
            for c in range(width // 16):
                want = r * width + 16 * place(r, c)
                assert layout.byte_offset_of((r, 8 * c)) == want
                assert layout.byte_offset_of((r, 8 * c + 3)) == want + 6


def test_gemm_tiles_of_the_reference() -> None:
    b = swizzled((64, 256), 16)
    assert b.num_panels == 4 and b.byte_offset_of((0, 64)) == 8192
    assert b.byte_offset_of((16, 0)) == 2048 and b.num_bytes == 64 * 256 * 2
    a = swizzled((128, 64), 16)
    assert a.byte_offset_of((64, 0)) == 8192 and a.alignment == 1024


@PROFILE
@given(st.lists(st.integers(1, 7), max_size=4), st.integers(0, 5), st.sampled_from([4, 8, 16, 32]))
def test_plain_and_padded(shape: list[int], pad: int, bits: int) -> None:
    plain = row_major(shape, bits)
    check(plain)
    assert (plain.offsets.ravel() == np.arange(plain.num_elements)).all()
    wide = padded(shape, bits, pad)
    check(wide)
    if len(shape) > 1:
        assert wide.offset_of([0] * (len(shape) - 2) + [shape[-2] - 1, 0]) == (shape[-2] - 1) * (
            shape[-1] + pad
        )


def test_padding_has_no_element() -> None:
    layout = padded((4, 4), 32, 1)
    assert layout.element_at(4) is None and layout.element_at(5) == (1, 0)
    assert layout.num_bytes == 80 and layout.alignment == 128
    with pytest.raises(IndexError):
        layout.element_at(20)


def test_best_swizzle() -> None:
    assert [best_swizzle(c, 16) for c in (256, 64, 96, 32, 176, 16, 40, 8)] == [
        128, 128, 64, 64, 32, 32, None, None,
    ]  # fmt: skip
    assert best_swizzle(64, 8) == 64 and best_swizzle(32, 32) == 128


def test_swizzle_is_its_own_inverse() -> None:
    offsets = np.arange(4096)
    for width, swizzle in BYTES.items():
        assert (swizzle.apply(swizzle.apply(offsets)) == offsets).all()
        assert swizzle.row == width and swizzle.span == 8 * width
        assert (swizzle.scaled(2).apply(offsets) * 2 == swizzle.apply(offsets * 2)).all()
    assert Swizzle(0, 4, 3).apply(77) == 77


def test_text() -> None:
    assert str(swizzled((128, 64), 16)) == (
        "SharedLayout(128x64 of 16 bits, 128B swizzle, 16384 bytes)"
    )
    assert "pitch 5" in str(padded((4, 4), 32, 1)) and "row-major" in str(row_major((4,), 8))


def test_wrong_arguments() -> None:
    for wrong in (
        lambda: swizzled((8, 48), 16),
        lambda: swizzled((8, 64), 16, 256),
        lambda: swizzled((64,), 16),
        lambda: SharedLayout((8, 128), 16, TMA_128B),
        lambda: SharedLayout((8, 128), 16, TMA_128B, panel=128),
        lambda: SharedLayout((8, 64), 16, TMA_128B, panel=64, pitch=72),
        lambda: SharedLayout((8, 64), 16, panel=48),
        lambda: padded((8, 64), 16, -1),
        lambda: row_major((8, 0), 16),
        lambda: row_major((8, 8), 16).offset_of((1,)),
        lambda: Swizzle(3, 4, 2),
        lambda: TMA_128B.scaled(3),
        lambda: TMA_128B.scaled(32),
    ):
        with pytest.raises(TileValueError):
            wrong()
    SharedLayout((8, 128), 8, TMA_128B, panel=128)
