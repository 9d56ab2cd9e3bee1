"""`tvm.target.Target("cuda")`: a target by its spelling."""

from __future__ import annotations

from typing import Any

from tilelab.target import parse_target


def Target(spelling: Any) -> Any:  # TVM's name
    """The target that a text or dict spells; "cuda" stays open, for the device to decide.
    TileValueError (TL1201) for other kinds of chips."""
    return parse_target(spelling) or "auto"
