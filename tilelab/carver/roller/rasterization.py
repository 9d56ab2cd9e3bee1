"""Orders in which blocks take tiles."""

from __future__ import annotations

from dataclasses import dataclass


class NoRasterization:
    """Blocks take tiles row by row."""


@dataclass(frozen=True)
class Rasterization2DRow:
    """Panels of rows: `T.use_swizzle(panel_width)`."""

    panel_width: int = 4


@dataclass(frozen=True)
class Rasterization2DColumn:
    """Panels of columns: `T.use_swizzle(panel_width, order="column")`."""

    panel_width: int = 4
