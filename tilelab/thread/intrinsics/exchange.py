"""Values that threads of a warp (or block) exchange: shuffles, votes, matches.

Unlike the shuffles of `warp`, which write registers, these give a value: the language offers them
as functions. The lanes take part that a mask names: all of a warp, or those that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from tilelab.target import WARP
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE, SHUFFLED

_SHUFFLE, _VOTE = "PTX ISA, shfl.sync", "PTX ISA, vote.sync"
_VALUE, _MASK = Param("value", "value"), Param("mask", "value")

_NO_PART = "T.shfl_{} reads a lane that its mask does not name: the value is undefined"

Partner = Callable[[Array, Any, Any], Array]
"""(lane in its segment, the operand, segment width) -> the lane of the segment asked for."""

_MODES: dict[str, tuple[str, Partner]] = {
    "sync": ("__shfl_sync", lambda lane, source, width: lane * 0 + source % width),
    "xor": ("__shfl_xor_sync", lambda lane, mask, width: lane ^ mask),
    "up": ("__shfl_up_sync", lambda lane, delta, width: lane - delta),
    "down": ("__shfl_down_sync", lambda lane, delta, width: lane + delta),
}


@recorded
def shuffle(mode: str) -> Intrinsic:
    """The value of another lane: by number ("sync"), lane ^ x ("xor"), lane - x ("up"), lane + x
    ("down"), within segments of `width` lanes; the own value where there is no such lane."""
    function, partner = _MODES[mode]

    def meaning(m: Machine, mask: Array, value: Array, choice: Array, width: Array) -> Array:
        masks = m.together(mask, f"T.shfl_{mode}")
        full = [m.by_warp(m.full(x)) for x in (value, choice, width)]
        source = _source(full[1], np.maximum(full[2], 1), partner)
        if masks is not None and mode in ("sync", "xor"):
            there = (masks >> source.astype(np.uint32)) & 1 != 0
            m.takes_part(m.by_lane(there), _NO_PART.format(mode))
        return m.by_lane(np.take_along_axis(full[0], source, -1))

    operands = (_MASK, _VALUE, Param("choice", "value"), Param("width", "value"))
    text = f"""
template <typename T> {INLINE} T shfl_{mode}(unsigned mask, T value, int choice, int width) {{
  return from_shuffle<T>({function}(mask, to_shuffle(value), choice, width));
}}"""
    return Intrinsic(
        f"shfl_{mode}", operands, f"tl::shfl_{mode}({{mask}}, {{value}}, {{choice}}, {{width}})",
        text, meaning, group="warp", cost="shared", source=_SHUFFLE, requires=(SHUFFLED,),
    )  # fmt: skip


def _source(choice: Array, width: Array, partner: Partner) -> Array:
    """The lane, of its warp, that each lane reads."""
    lanes = cast(Array, np.arange(WARP))
    first: Array = lanes // width * width
    wanted = partner(lanes - first, choice, width)
    return np.where((wanted >= 0) & (wanted < width), first + wanted, lanes)


_BITS = np.left_shift(np.uint64(1), np.arange(WARP, dtype=np.uint64))


def _named(masks: Array | None, shape: tuple[int, ...]) -> Array:
    """The mask of each lane; without masks all lanes of its warp."""
    every = _BITS.sum(dtype=np.uint64) if masks is None else masks
    return np.broadcast_to(every, shape).astype(np.uint64)


def _among(truth: Array, masks: Array | None) -> tuple[Array, Array]:
    """Bits of the lanes of each lane's mask in which the predicate holds, and the masks."""
    held = np.where(truth, _BITS, np.uint64(0)).sum(-1, keepdims=True, dtype=np.uint64)
    named = _named(masks, truth.shape)
    return held & named, named


def _vote(name: str, function: str, answer: Callable[[Array, Array], Array]) -> Intrinsic:
    def vote(m: Machine, mask: Array, value: Array) -> Array:
        masks = m.together(mask, f"T.{name}")
        held, named = _among(m.by_warp(m.full(value).astype(bool)), masks)
        return m.by_lane(answer(held, named))

    return Intrinsic(
        name, (_MASK, _VALUE), f"{function}({{mask}}, {{value}})", "", vote, group="warp",
        cost="alu", source=_VOTE,
    )  # fmt: skip


ANY_SYNC = _vote("any_sync", "__any_sync", lambda held, _: held != 0)
"""Whether the predicate holds in some lane of the mask."""
ALL_SYNC = _vote("all_sync", "__all_sync", lambda held, named: held == named)
"""Whether the predicate holds in every lane of the mask."""
BALLOT_SYNC = _vote("ballot_sync", "__ballot_sync", lambda held, _: held)
"""Bit i says whether the predicate holds in lane i of the warp."""


def _same(m: Machine, mask: Array, value: Array, what: str) -> tuple[Array, Array]:
    """Masks of the lanes that hold a lane's value, bit by bit equal, and of those that could."""
    masks = m.together(mask, what)
    values = np.ascontiguousarray(m.by_warp(m.full(value)))
    bits = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    equal = bits[..., :, None] == bits[..., None, :]
    found = np.where(equal, _BITS, np.uint64(0)).sum(-1, dtype=np.uint64)
    named = _named(masks, found.shape)
    return found & named, named


def _match_any(m: Machine, mask: Array, value: Array) -> Array:
    return m.by_lane(_same(m, mask, value, "T.match_any_sync")[0])


def _match_all(m: Machine, mask: Array, value: Array) -> Array:
    found, named = _same(m, mask, value, "T.match_all_sync")
    return m.by_lane(np.where(found == named, found, np.uint64(0)))


MATCH_ANY_SYNC = Intrinsic(
    "match_any_sync", (_MASK, _VALUE), "__match_any_sync({mask}, {value})", "", _match_any,
    group="warp", cost="alu", source="PTX ISA, match.sync",
)  # fmt: skip
"""Mask of the lanes that hold the same value as this one."""

_MATCH_ALL_TEXT = f"""
template <typename T> {INLINE} unsigned match_all_sync(unsigned mask, T value) {{
  int all;
  return __match_all_sync(mask, value, &all);
}}"""
MATCH_ALL_SYNC = Intrinsic(
    "match_all_sync", (_MASK, _VALUE), "tl::match_all_sync({mask}, {value})", _MATCH_ALL_TEXT,
    _match_all, group="warp", cost="alu", source="PTX ISA, match.sync",
)  # fmt: skip
"""The mask when all its lanes hold one value, else 0."""


def _active(m: Machine) -> Array:
    on = m.by_warp(m.active())
    return m.by_lane(_among(on, None)[0])


ACTIVEMASK = Intrinsic(
    "activemask", (), "__activemask()", "", _active, group="warp", cost="alu",
    source="PTX ISA, activemask",
)  # fmt: skip
"""Mask of the lanes of the warp that run this together."""


def _counted(name: str, function: str, answer: Callable[[Array, int], Array]) -> Intrinsic:
    """A barrier of the block that tells all threads about a predicate."""

    def meaning(m: Machine, value: Array) -> Iterator[Any]:
        truth = m.full(value).astype(bool)
        m.whole_block(f"T.{name}")
        yield from m.sync_threads(0, None)
        return answer(truth.sum(-1, keepdims=True), truth.shape[-1])

    return Intrinsic(
        name, (_VALUE,), f"{function}({{value}})", "", meaning, group="block", cost="sync",
        waits=True, source="PTX ISA, barrier.red",
    )  # fmt: skip


SYNCTHREADS_COUNT = _counted("syncthreads_count", "__syncthreads_count", lambda n, _: n)
"""All threads wait for each other; in how many the predicate holds."""
SYNCTHREADS_AND = _counted("syncthreads_and", "__syncthreads_and", lambda n, threads: n == threads)
"""All threads wait for each other; whether the predicate holds in all."""
SYNCTHREADS_OR = _counted("syncthreads_or", "__syncthreads_or", lambda n, _: n > 0)
"""All threads wait for each other; whether the predicate holds in some."""


def _sync_warp(m: Machine, mask: Array) -> None:
    m.together(mask, "T.sync_warp")
    m.sync_warp()


SYNCWARP = Intrinsic(
    "syncwarp", (_MASK,), "__syncwarp({mask})", "", _sync_warp, group="warp", cost="sync",
    source="PTX ISA, bar.warp.sync",
)  # fmt: skip
"""The lanes of a warp wait for each other."""


def by_mask(record: Intrinsic) -> bool:
    """Whether lanes that the first operand names run it together, from whichever place."""
    return bool(record.operands) and record.operands[0] is _MASK


BLOCK_BARRIERS = frozenset({SYNCTHREADS_COUNT, SYNCTHREADS_AND, SYNCTHREADS_OR})
"""Records that order all threads of the block, as SYNCTHREADS does."""
