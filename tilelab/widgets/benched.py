"""Rows of `tilelab bench --json FILE`, read for pictures: what was measured, beside what.

Hides the file's form, and how a rate becomes the time of a call.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelab.errors import TileValueError
from tilelab.views.roofline import Point

UNITS = {"TFLOP/s": "flops", "TB/s": "moved"}
"""Unit of a row -> which of its amounts the rate counts."""


def bench_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of all tables in a file, in its order, each with its table's machine and date.
    TileValueError (TL1716) for a file that is none of `tilelab bench --json`."""
    try:
        tables: Any = json.loads(Path(path).read_text("utf-8"))
        found = [
            {**row, "machine": table["machine"], "date": table["date"]}
            for table in tables for row in table["rows"]
        ]  # fmt: skip
        if not found:
            raise ValueError("it holds no row")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TileValueError(
            f"bench={str(path)!r} cannot be read as a result of `tilelab bench`: "
            f"{type(error).__name__}: {error}",
            code="TL1716",
            hint="make one with: tilelab bench gemm --json FILE",
        ) from error
    return found


def named_row(rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The row of a name, or the only one whose name begins so. TileValueError (TL1716) for none
    or several."""
    names = [str(row["name"]) for row in rows]
    found = [n for n in names if n == name] or [n for n in names if n.startswith(name)]
    if len(found) != 1:
        near = found or difflib.get_close_matches(name, names, cutoff=0.3) or names
        raise TileValueError(
            f"row={name!r} is {'the beginning of several rows' if found else 'no row'} of the file",
            code="TL1716",
            hint="one of: " + "; ".join(near[:6]),
        )
    return rows[names.index(found[0])]


def peer_points(row: Mapping[str, Any]) -> list[Point]:
    """A point for each column of a row that was measured. TileValueError (TL1716) for a row
    without its work: of a suite that measures no kernel, or of an older tilelab."""
    flops, moved = row.get("flops"), row.get("moved")
    amount = row.get(UNITS.get(str(row["unit"]), ""))
    if not flops or not moved or not amount:
        raise TileValueError(
            f"the row {row['name']!r} does not say how much work it is",
            code="TL1716",
            hint="measure it again with: tilelab bench gemm --json FILE",
        )
    return [
        Point(name, flops, moved, amount / (rate * 1e12), "measured by tilelab bench")
        for name, rate in row["values"].items()
        if rate and "/" not in name and not name.startswith("to ")
    ]
