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
    """A key of pass_configs with its value by default and in the textbook structure."""

    key: str
    default: Any
    plain: Any


PERSISTENT = Switch("tl.persistent", True, False)
"""Blocks that live as long as the launch and take tile after tile."""
GROUP_ORDER = Switch("tl.group_order", -1, 0)
"""Rows of tiles that blocks walk down before the next column; -1: chosen, 0: the plain order."""
IN_FLIGHT = Switch("tl.wgmma_in_flight", True, False)
"""A wgmma group runs on while the next one is issued; its slot is freed one step later."""
FOLD_CLEAR = Switch("tl.fold_clear", True, False)
"""The first wgmma of a tile overwrites the accumulator, which then needs no zeros."""
STAGED_STORES = Switch("tl.tma_store", True, False)
"""Accumulators leave through shared memory and TMA stores where there is room."""
PRODUCER_WARP = Switch("tl.producer_warp", True, False)
"""One warp loads, not a warpgroup, where the consumers' registers allow it."""

SWITCHES = (PERSISTENT, GROUP_ORDER, IN_FLIGHT, FOLD_CLEAR, STAGED_STORES, PRODUCER_WARP)


class Options(Protocol):
    """A context that knows pass_configs."""

    def option(self, key: str, default: Any = None) -> Any: ...


def setting(ctx: Options, switch: Switch) -> Any:
    """The value of a switch in this compilation."""
    default = switch.plain if ctx.option(PLAIN, False) else switch.default
    return ctx.option(switch.key, default)


__all__ = [
    "FOLD_CLEAR", "GROUP_ORDER", "IN_FLIGHT", "PERSISTENT", "PLAIN", "PRODUCER_WARP",
    "STAGED_STORES", "SWITCHES", "Switch", "setting",
]  # fmt: skip
