"""What a suggestion consists of (`tilelang.carver.roller`)."""

from tilelab.carver.roller import rasterization
from tilelab.carver.roller.hint import Hint

__all__ = ["Hint", "rasterization"]
