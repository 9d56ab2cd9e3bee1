"""Making the LowerContext of tile ops from a pass's context."""

from __future__ import annotations

from typing import Any

from tilelab.ir import Expr, Kernel, Var
from tilelab.passes.base import PassContext
from tilelab.tile.context import LowerContext, Shared


class Names:
    """Fresh names: name, name_1, name_2, ..."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self._taken = set(taken or ())

    def __call__(self, name: str) -> str:
        unique, count = name, 0
        while unique in self._taken:
            count += 1
            unique = f"{name}_{count}"
        self._taken.add(unique)
        return unique


def shared_state(kernel: Kernel, ctx: PassContext, taken: set[str] | None = None) -> Shared:
    """What the roles of one kernel have in common."""
    state = Shared(ctx.target, ctx.options, Names(taken), ctx.aligned, ctx.note)
    chosen: Any = next((value for key, value in kernel.attrs if key == "safe_values"), ())
    state.safe.update({id(buffer): value for buffer, value in chosen})
    return state


def planning_context(kernel: Kernel, ctx: PassContext, num_threads: int) -> LowerContext:
    """A context for questions only (is this a TMA copy, which instruction): nothing is kept."""
    tid: Expr = Var("tid", lo=0, hi=num_threads - 1)
    return LowerContext(shared_state(kernel, ctx), tid, num_threads)
