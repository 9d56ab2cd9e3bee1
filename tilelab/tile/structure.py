"""Switches of the generated structure: what each pass_configs key turns off, and its default.

Hides what "tl.plain_pipeline" stands for: the textbook structure, with every switch at its plain
value unless the program sets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

PLAIN = "tl.plain_pipeline"


@dataclass(frozen=True)
class Switch:
    """A key of pass_configs with its value by default and in the textbook structure. `what` is
    what it adds, in a few words for pictures."""

    key: str
    default: Any
    plain: Any
    what: str


PERSISTENT = Switch("tl.persistent", None, False, "resident blocks that take tile after tile")
"""Blocks that live as long as the launch and take tile after tile; None: where a multiprocessor
holds a single block, True: wherever it is possible."""
GROUP_ORDER = Switch("tl.group_order", -1, 0, "neighbouring tiles share operands in L2")
"""Rows of tiles that blocks walk down before the next column; -1: chosen, 0: the plain order."""
IN_FLIGHT = Switch("tl.wgmma_in_flight", True, False, "the next wgmma is issued while one runs")
"""A wgmma group runs on while the next one is issued; its slot is freed one step later."""
FOLD_CLEAR = Switch("tl.fold_clear", True, False, "the first wgmma overwrites its sums")
"""The first wgmma of a tile overwrites the accumulator, which then needs no zeros."""
STAGED_STORES = Switch("tl.tma_store", True, False, "results through shared memory, TMA stores")
"""Accumulators leave through shared memory and TMA stores where there is room."""
PRODUCER_WARP = Switch("tl.producer_warp", True, False, "one producer warp, not a warpgroup")
"""One warp loads, not a warpgroup, where the consumers' registers allow it."""
SPLIT_RINGS = Switch("tl.split_rings", True, False, "a ring of slots for each operand")
"""Operands of different statements of a pipelined loop have rings of their own."""
OVERLAP_GEMMS = Switch("tl.overlap_gemms", True, False, "chained products, skewed by one iteration")
"""The first of two chained products of an iteration runs with the last of the one before."""
BESIDE_PRODUCT = Switch("tl.beside_product", True, False, "exponentials beside a product")
"""As many of the exponentials between two chained products run before the second one is waited for
as its time covers; off: all of them run behind the wait."""
DOUBLE_BUFFER = Switch("tl.double_buffer", True, False, "unpacked tiles in two places")
"""A tile that threads write and wgmma reads has two places: one is written while the other is
read."""
FRAGMENTS_AHEAD = Switch("tl.fragments_ahead", True, False, "operands in registers a step ahead")
"""mma.sync's operands come to registers one step of K before they are multiplied."""
PRECISE_MATH = Switch("tl.precise_math", False, False, "cheaper float32 arithmetic")
"""float32 arithmetic as written: no approximate exp2, no reciprocals, no reordered factors."""
SPLIT_LOOPS = Switch("tl.split_loops", True, False, "whole iterations without the mask")
"""Iterations in which a mask admits every element run in a loop without it."""
EARLY_LOADS = Switch("tl.early_loads", True, False, "the producer loads what stands before")
"""Tiles loaded once before a pipelined loop are the producer's to load."""
OWN_TRIPS = Switch("tl.own_trips", True, False, "warpgroups run their own rows' iterations")
"""Warpgroups with rows of their own run loops by themselves, as far as a mask admits their rows."""
DEFER_SUMS = Switch("tl.defer_sums", True, False, "sums of rows joined after the loop")
"""Row sums that grow in a loop with products are kept in parts, one a thread, and joined behind it;
off with tl.precise_math."""
TILE_COUNTER = Switch("tl.tile_counter", True, False, "uneven tiles drawn from a counter")
"""Persistent blocks draw tiles of different lengths from a counter; off: they are dealt out."""
CHAINS = Switch("tl.reduction_chains", True, False, "reductions in several chains")
"""A thread reduces its registers in several chains of operations, joined at the end; sums of floats
only without tl.precise_math."""
BANK_LAYOUTS = Switch("tl.bank_layouts", True, False, "layouts with the fewest bank conflicts")
"""Shared tiles that only threads touch are laid out so that banks conflict least."""
WHOLE_TILES = Switch("tl.whole_tiles", True, False, "whole tiles without their guards")
"""An elementwise loop with a tail runs without its guards, by wide accesses, on whole tiles."""

SWITCHES = (
    GROUP_ORDER, IN_FLIGHT, FOLD_CLEAR, STAGED_STORES, PRODUCER_WARP, PERSISTENT, SPLIT_RINGS,
    OVERLAP_GEMMS, DOUBLE_BUFFER, FRAGMENTS_AHEAD, PRECISE_MATH, SPLIT_LOOPS, EARLY_LOADS,
    OWN_TRIPS, DEFER_SUMS, TILE_COUNTER, BANK_LAYOUTS, WHOLE_TILES, BESIDE_PRODUCT,
    CHAINS,
)  # fmt: skip

TAKING_ROOM = (PERSISTENT, EARLY_LOADS, DOUBLE_BUFFER, BANK_LAYOUTS)
"""Those that take shared memory, or keep tiles from sharing it."""


class Options(Protocol):
    """A context that knows pass_configs."""

    def option(self, key: str, default: Any = None) -> Any: ...


def setting(ctx: Options, switch: Switch) -> Any:
    """The value of a switch in this compilation."""
    default = switch.plain if ctx.option(PLAIN, False) else switch.default
    return ctx.option(switch.key, default)


__all__ = [
    "BANK_LAYOUTS", "BESIDE_PRODUCT", "CHAINS", "DEFER_SUMS", "DOUBLE_BUFFER", "EARLY_LOADS",
    "FOLD_CLEAR", "FRAGMENTS_AHEAD", "GROUP_ORDER", "IN_FLIGHT", "OVERLAP_GEMMS", "OWN_TRIPS",
    "PERSISTENT", "PLAIN", "PRECISE_MATH", "PRODUCER_WARP", "SPLIT_LOOPS", "SPLIT_RINGS",
    "STAGED_STORES", "SWITCHES", "TAKING_ROOM", "TILE_COUNTER", "WHOLE_TILES", "Switch",
    "setting",
]  # fmt: skip
