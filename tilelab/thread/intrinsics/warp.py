"""Warp-wide instructions: register budgets, shuffles, the transpose inside quads of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from tilelab.target import Feature
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, LANE_ID, SHUFFLED

_SHUFFLE = "PTX ISA, shfl.sync"


def _setmaxnreg(name: str, direction: str, n: int) -> Intrinsic:
    assert 24 <= n <= 256 and n % 8 == 0, f"setmaxnreg takes 24 to 256 in steps of 8, not {n}"
    text = f"""
template <int N> {INLINE} void {name}() {{
  asm volatile("setmaxnreg.{direction}.sync.aligned.u32 %0;" ::"n"(N));
}}"""
    raises = direction == "inc"

    def meaning(m: Machine) -> Iterator[Any]:
        m.whole(128, "setmaxnreg")
        yield from m.set_registers(n, raises)

    return Intrinsic(
        f"{name}_{n}", (), f"tl::{name}<{n}>()", text, meaning, group="warpgroup", cost="sync",
        needs=Feature.SETMAXNREG, waits=True, source="PTX ISA, setmaxnreg",
    )  # fmt: skip


@recorded
def warpgroup_reg_alloc(n: int) -> Intrinsic:
    """Raise this warpgroup's register budget to `n` a thread."""
    return _setmaxnreg("warpgroup_reg_alloc", "inc", n)


@recorded
def warpgroup_reg_dealloc(n: int) -> Intrinsic:
    """Give registers back down to `n` a thread."""
    return _setmaxnreg("warpgroup_reg_dealloc", "dec", n)


Partner = Callable[[Array, Any], Array]
"""(lane in the warp, the operand) -> the lane whose value arrives."""


def _above(lane: Array, delta: Any) -> Array:
    return np.where(lane - delta < 0, lane, lane - delta)


def _below(lane: Array, delta: Any) -> Array:
    return np.where(lane + delta > 31, lane, lane + delta)


def _mirrored(lane: Array, mask: Any) -> Array:
    return lane ^ mask


def _named(lane: Array, index: Any) -> Array:
    return (lane * 0 + index) % 32


_MODES: dict[str, tuple[str, Partner]] = {
    "xor": ("__shfl_xor_sync", _mirrored),
    "up": ("__shfl_up_sync", _above),
    "down": ("__shfl_down_sync", _below),
    "index": ("__shfl_sync", _named),
}


def _shuffle(mode: str, operand: str) -> Intrinsic:
    function, partner = _MODES[mode]
    text = f"""
template <typename T> {INLINE} void shuffle_{mode}(T* dst, T value, int {operand}) {{
  *dst = from_shuffle<T>({function}(0xffffffffu, to_shuffle(value), {operand}));
}}"""

    def meaning(m: Machine, dst: Any, value: Array, choice: Array) -> None:
        m.whole(32, f"shuffle_{mode}")
        m.store(dst, exchange(value, choice, partner)[None])

    return Intrinsic(
        f"shuffle_{mode}",
        (Param("dst", "writes"), Param("value", "value"), Param(operand, "value")),
        f"tl::shuffle_{mode}({{dst}}, {{value}}, {{{operand}}})", text, meaning, group="warp",
        cost="shared", source=_SHUFFLE, requires=(SHUFFLED,),
    )  # fmt: skip


def exchange(value: Any, choice: Any, partner: Partner) -> Array:
    """Each lane's value from lane `partner(lane, choice)` of its warp (lanes are the last axis)."""
    array = cast(Array, np.asarray(value))
    if array.ndim == 0 or array.shape[-1] == 1:
        return array.reshape(array.shape or (1, 1))
    lanes = cast(Array, np.arange(array.shape[-1]))
    source = lanes // 32 * 32 + partner(lanes % 32, choice)
    shape = np.broadcast_shapes(array.shape, source.shape)
    return np.take_along_axis(np.broadcast_to(array, shape), np.broadcast_to(source, shape), -1)


SHFL_XOR = _shuffle("xor", "mask")
"""dst = value of lane `lane ^ mask`."""
SHFL_UP = _shuffle("up", "delta")
"""dst = value of lane `lane - delta` (its own where there is none)."""
SHFL_DOWN = _shuffle("down", "delta")
"""dst = value of lane `lane + delta` (its own where there is none)."""
SHFL_INDEX = _shuffle("index", "lane")
"""dst = value of lane `lane`."""

_TRANSPOSE = f"""
{INLINE} void quad_transpose(void* dst, const void* src) {{
  const u32* w = (const u32*)src;
  u32* out = (u32*)dst;
  bool odd = lane_id() & 1, high = lane_id() & 2;
  // 2x2 blocks of words between neighbours, then the off-diagonal blocks between pairs
  u32 x = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1);
  u32 y = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
  u32 a = odd ? x : w[0], b = odd ? w[1] : x, c = odd ? y : w[2], d = odd ? w[3] : y;
  x = __shfl_xor_sync(0xffffffffu, high ? a : c, 2);
  y = __shfl_xor_sync(0xffffffffu, high ? b : d, 2);
  out[0] = high ? x : a;
  out[1] = high ? y : b;
  out[2] = high ? c : x;
  out[3] = high ? d : y;
}}"""


def _quad_transpose(m: Machine, dst: Any, src: Any) -> None:
    m.whole(32, "quad_transpose")
    m.store(dst, transpose_quads(m.load(src, 8)))


def transpose_quads(regs: Array) -> Array:
    """(8 elements, ..., lanes): word j of lane q of a quad becomes word q of lane j."""
    *middle, lanes = regs.shape[1:]
    split = regs.reshape(4, 2, *middle, lanes // 4, 4)
    return split.swapaxes(0, -1).reshape(8, *middle, lanes)


QUAD_TRANSPOSE = Intrinsic(
    "quad_transpose", (Param("dst", "writes"), Param("src", "reads")),
    "tl::quad_transpose({dst}, {src})", _TRANSPOSE, _quad_transpose, group="warp", cost="shared",
    source=_SHUFFLE, requires=(LANE_ID,),
)  # fmt: skip
"""4x4 transpose of 32-bit words (pairs of 16-bit elements) inside each quad of lanes."""
