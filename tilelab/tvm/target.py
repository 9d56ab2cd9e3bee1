"""`tvm.target.Target("cuda")`: a target by its spelling."""

from __future__ import annotations

from typing import Any

from tilelab.target import parse_target


class Open(str):
    """What "auto" says: the device decides, also where `with Target("cuda"):` says so."""

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *raised: Any) -> None:
        """Nothing was changed."""


def Target(spelling: Any) -> Any:  # TVM's name
    """The target that a text or dict spells, also as `with Target("sm_80"):` for what is compiled
    inside; "cuda" stays open, for the device to decide. TileValueError (TL1201) for other kinds
    of chips."""
    return parse_target(spelling) or Open("auto")
