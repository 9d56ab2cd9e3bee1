"""Tile sizes suggested from the chip's limits (`tilelang.carver`)."""

from tilelab.carver import arch, roller, template
from tilelab.carver.roller.hint import Hint
from tilelab.carver.template import MatmulTemplate

__all__ = ["Hint", "MatmulTemplate", "arch", "roller", "template"]
