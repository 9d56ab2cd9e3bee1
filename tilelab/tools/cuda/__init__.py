"""Tools for one kind of chip, by TileLang's path (`tilelang.tools.cuda`)."""

from tilelab.tools.cuda import iket

__all__ = ["iket"]
