"""Small palette images as PNG data URIs, for maps too fine to draw cell by cell."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png_uri(indices: NDArray[np.int64], colours: Sequence[str]) -> str:
    """An image with one pixel per entry of a 2-D array of palette indices ("#rrggbb" each)."""
    rows, cols = indices.shape
    header = struct.pack(">IIBBBBB", cols, rows, 8, 3, 0, 0, 0)  # 8 bits a pixel, palette
    palette = b"".join(bytes.fromhex(colour[1:]) for colour in colours)
    lines = np.zeros((rows, cols + 1), np.uint8)  # every line starts with filter type 0
    lines[:, 1:] = indices
    png = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"PLTE", palette)
    png += _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
