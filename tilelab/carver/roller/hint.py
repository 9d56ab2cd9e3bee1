"""A suggestion: tile sizes with the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hint:
    """Tile sizes of a matrix multiplication.

    `block` and `warp`: rows and columns of C for a block and a warp; `rstep`: the depth of a
    stage. `shared_bytes`, `registers` (of a thread, estimated) and `blocks_per_sm` are what they
    take; `modelled_ms` is the time that ranks them.
    """

    block: tuple[int, int]
    warp: tuple[int, int]
    rstep: tuple[int]
    pipeline_stage: int
    threads: int
    rasterization_plan: Any
    shared_bytes: int
    registers: int
    blocks_per_sm: int
    modelled_ms: float
    use_async: bool = True
    use_tc: bool = True
