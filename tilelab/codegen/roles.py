"""Warp roles as a chain of conditions on the thread index."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilelab.thread.nodes import Role


def thread_index(threads: tuple[int, ...]) -> str:
    """The linear index of a thread in its block."""
    text, scale = "threadIdx.x", threads[0]
    for axis, extent in zip("yz", threads[1:], strict=False):
        if extent > 1:
            text += f" + threadIdx.{axis} * {scale}"
        scale *= extent
    return text


def conditions(roles: Sequence[Role], threads: tuple[int, ...]) -> list[str]:
    """What stands in `if (...)` for each role in order; empty for a last `else`.

    Roles that follow each other from either end of the block need one comparison each.
    """
    index = thread_index(threads)
    low, high = 0, prod(threads)  # threads that no earlier role has taken
    chain: list[str] = []
    for role in roles:
        first, end = role.first, role.first + role.count
        tests = [f"{index} >= {first}"] * (first > low) + [f"{index} < {end}"] * (end < high)
        is_rest = (first, end) == (low, high) and bool(chain)
        chain.append("" if is_rest else " && ".join(tests) or "true")
        if first == low:
            low = end
        elif end == high:
            high = first
    return chain
