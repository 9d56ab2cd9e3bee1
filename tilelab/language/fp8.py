"""Which 8-bit float a chip computes with, by TileLang's path (`tilelang.language.fp8`)."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileValueError
from tilelab.language.dtypes import NAMES, dtype

_TYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def determine_fp8_type(fp8_format: str = "e4m3") -> dtype:
    """The type of a format, "e4m3" or "e5m2". TileValueError (TL1643) for another one."""
    if fp8_format not in _TYPES:
        raise TileValueError(
            f"there is no 8-bit float {fp8_format!r}", code="TL1643", hint="use e4m3 or e5m2"
        )
    return NAMES[_TYPES[fp8_format]]


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The torch type of a format."""
    return determine_fp8_type(fp8_format).as_torch()
