"""Values exchanged within a warp: shuffles, votes, reductions, and which thread speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.dtypes import BOOL, INT32, UINT32, UINT64
from tilelab.errors import TileTypeError
from tilelab.ir import Expr, as_expr, binary, call, cast, const_int
from tilelab.language.instruct import bound, evaluate
from tilelab.language.instruct import predicate as truth_of
from tilelab.language.launch import get_warp_idx, linear_thread
from tilelab.target import WARP
from tilelab.thread.intrinsics.exchange import (
    ACTIVEMASK,
    ALL_SYNC,
    ANY_SYNC,
    BALLOT_SYNC,
    MATCH_ALL_SYNC,
    MATCH_ANY_SYNC,
    shuffle,
)

_FULL = 0xFFFFFFFF


def _check_order(what: str, first: Any, mask: Any, usage: str, width: Any = WARP) -> None:
    """TileTypeError (TL1785) for CUDA's order, in which the mask comes first: then a mask stands
    for the value (a constant that all lanes share tells them nothing), a condition for the mask,
    or a lane's number for the width (CUDA: 1, 2, 4, 8, 16 or 32)."""
    given, lanes = const_int(first), const_int(width)
    no_width = lanes is not None and lanes not in (1, 2, 4, 8, 16, WARP)
    condition = isinstance(mask, bool) or as_expr(mask).dtype.is_bool
    if condition or no_width or (given is not None and not -1 < given < WARP):
        raise TileTypeError(
            f"T.{what} has its mask behind the value, and the arguments here are in another order",
            code="TL1785", hint=f"write T.{what}({usage}); in CUDA the mask comes first",
        )  # fmt: skip


def _shuffle(mode: str, value: Any, choice: Any, width: Any, mask: Any) -> Expr:
    what = f"shfl_{mode}"
    usage = f"value, {'srcLane' if mode == 'sync' else 'delta'}, width={WARP}, mask=0xFFFFFFFF"
    _check_order(what, value, mask, usage, width)
    number = as_expr(value)
    if number.dtype.is_bool:
        number = cast(number, INT32)
    operands = (cast(as_expr(mask, UINT32), UINT32), number, cast(as_expr(choice), INT32))
    return evaluate(
        shuffle(mode), *operands, cast(as_expr(width), INT32), dtype=number.dtype,
        what=f"T.{what}",
    )  # fmt: skip


def shfl_sync(value: Any, srcLane: Any, width: Any = WARP, mask: Any = _FULL) -> Expr:
    """The value of lane `srcLane` of this thread's segment of `width` lanes."""
    return _shuffle("sync", value, srcLane, width, mask)


def shfl_xor(value: Any, delta: Any, width: Any = WARP, mask: Any = _FULL) -> Expr:
    """The value of lane `lane ^ delta`."""
    return _shuffle("xor", value, delta, width, mask)


def shfl_up(value: Any, delta: Any, width: Any = WARP, mask: Any = _FULL) -> Expr:
    """The value of lane `lane - delta` (its own where there is none)."""
    return _shuffle("up", value, delta, width, mask)


def shfl_down(value: Any, delta: Any, width: Any = WARP, mask: Any = _FULL) -> Expr:
    """The value of lane `lane + delta` (its own where there is none)."""
    return _shuffle("down", value, delta, width, mask)


def tvm_warp_shuffle(mask: Any, value: Any, warp_id: Any, width: Any, warp_size: Any) -> Expr:
    """T.shfl_sync in TVM's order of arguments."""
    return _shuffle("sync", value, warp_id, width, mask)


def tvm_warp_shuffle_up(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Expr:
    """T.shfl_up in TVM's order of arguments."""
    return _shuffle("up", value, offset, width, mask)


def tvm_warp_shuffle_down(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Expr:
    """T.shfl_down in TVM's order of arguments."""
    return _shuffle("down", value, offset, width, mask)


def _vote(record: Any, predicate: Any, mask: Any, dtype: Any, what: str) -> Expr:
    _check_order(what.removeprefix("T."), predicate, mask, "predicate, mask=0xFFFFFFFF")
    held = cast(as_expr(mask, UINT32), UINT32)
    return evaluate(record, held, truth_of(predicate, what), dtype=dtype, what=what)


def any_sync(predicate: Any, mask: Any = _FULL) -> Expr:
    """Whether the predicate holds in some lane of the warp."""
    return _vote(ANY_SYNC, predicate, mask, BOOL, "T.any_sync")


def all_sync(predicate: Any, mask: Any = _FULL) -> Expr:
    """Whether the predicate holds in every lane of the warp."""
    return _vote(ALL_SYNC, predicate, mask, BOOL, "T.all_sync")


def ballot_sync(predicate: Any, mask: Any = _FULL) -> Expr:
    """A mask (uint64) whose bit i says whether the predicate holds in lane i."""
    return _vote(BALLOT_SYNC, predicate, mask, UINT64, "T.ballot_sync")


def ballot(predicate: Any) -> Expr:
    """T.ballot_sync of the whole warp."""
    return ballot_sync(predicate)


def activemask() -> Expr:
    """A mask (uint64) of the lanes of the warp that run this together."""
    return evaluate(ACTIVEMASK, dtype=UINT64, what="T.activemask")


def match_any_sync(value: Any, mask: Any = _FULL) -> Expr:
    """A mask (uint32) of the lanes that hold this lane's value."""
    _check_order("match_any_sync", value, mask, "value, mask=0xFFFFFFFF")
    held = cast(as_expr(mask, UINT32), UINT32)
    return evaluate(MATCH_ANY_SYNC, held, as_expr(value), dtype=UINT32, what="T.match_any_sync")


def match_all_sync(value: Any, mask: Any = _FULL) -> Expr:
    """The mask (uint32) of all lanes when they hold one value, else 0."""
    _check_order("match_all_sync", value, mask, "value, mask=0xFFFFFFFF")
    held = cast(as_expr(mask, UINT32), UINT32)
    return evaluate(MATCH_ALL_SYNC, held, as_expr(value), dtype=UINT32, what="T.match_all_sync")


def _butterfly(value: Any, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """Every lane's combination of all lanes' values, in five steps."""
    total = bound(as_expr(value), "lane_value")
    for distance in (16, 8, 4, 2, 1):
        total = bound(combine(total, shfl_xor(total, distance)), "total")
    return total


def warp_reduce_sum(value: Any) -> Expr:
    """The sum over the lanes of the warp, in every lane."""
    return _butterfly(value, lambda a, b: binary("+", a, b))


def warp_reduce_max(value: Any) -> Expr:
    """The largest value of the warp, in every lane."""
    return _butterfly(value, lambda a, b: call("max", a, b))


def warp_reduce_min(value: Any) -> Expr:
    """The smallest value of the warp, in every lane."""
    return _butterfly(value, lambda a, b: call("min", a, b))


def warp_reduce_bitand(value: Any) -> Expr:
    """The bits set in every lane of the warp."""
    return _butterfly(value, lambda a, b: binary("&", a, b))


def warp_reduce_bitor(value: Any) -> Expr:
    """The bits set in some lane of the warp."""
    return _butterfly(value, lambda a, b: binary("|", a, b))


def get_warp_idx_sync(warp_size: int | None = None) -> Expr:
    """The number of the thread's warp (or of its group of `warp_size` threads), told by the first
    lane; lanes must run together."""
    size = warp_size or WARP
    number = get_warp_idx(size)
    if size % WARP and WARP % size:
        return number  # lanes of one warp belong to several groups: each knows its own
    return shfl_sync(number, 0, min(size, WARP))


def shuffle_elect(thread_extent: int) -> Expr:
    """True in one thread of each group of `thread_extent` threads (0: of the block)."""
    thread = linear_thread()
    return binary("==", thread % thread_extent if thread_extent else thread, 0)


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        activemask, all_sync, any_sync, ballot, ballot_sync, get_warp_idx_sync, match_all_sync,
        match_any_sync, shfl_down, shfl_sync, shfl_up, shfl_xor, shuffle_elect, tvm_warp_shuffle,
        tvm_warp_shuffle_down, tvm_warp_shuffle_up, warp_reduce_bitand, warp_reduce_bitor,
        warp_reduce_max, warp_reduce_min, warp_reduce_sum,
    )
}  # fmt: skip
NAMES["tvm_warp_activemask"] = activemask
"""What this module adds to the language."""
