"""Warp roles: T.ws, and registers that roles give to each other."""

from __future__ import annotations

from math import prod
from typing import Any

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.frontend import open_kernel, session
from tilelab.ir import Seq, Stmt, const_int
from tilelab.target import WARPGROUP
from tilelab.thread.nodes import Role, WarpRoles
from tilelab.tile.ops.registers import RegisterBudget

_KERNEL_DEPTH = 2  # open blocks when a statement stands directly in the kernel's body


class WarpSpecializeFrame:
    """What T.ws returns: its `with` body is run by the named warp groups only."""

    def __init__(self, groups: tuple[Any, ...]) -> None:
        numbers = sorted(n for n in (const_int(g) for g in groups) if n is not None)
        kernel, trace = open_kernel("T.ws"), session()
        total = prod(kernel.threads)
        last = total // WARPGROUP - 1
        if len(numbers) != len(groups) or not numbers or numbers[0] < 0 or numbers[-1] > last:
            raise TileValueError(
                f"T.ws{groups!r} names no warp groups of a block of {total} threads",
                code="TL1766", loc=trace.loc(),
                hint="a warp group is 128 threads; number them from 0",
            )  # fmt: skip
        if numbers != list(range(numbers[0], numbers[-1] + 1)):
            raise TileNotSupported(
                f"T.ws{groups!r} names warp groups that do not follow each other", code="TL1766",
                loc=trace.loc(), hint="write one `with T.ws(...)` for each run of groups",
            )  # fmt: skip
        self.session, self.loc = trace, trace.loc()
        self.first, self.count = numbers[0] * WARPGROUP, len(numbers) * WARPGROUP
        self.name = "ws " + ", ".join(map(str, numbers))

    def __enter__(self) -> None:
        self.session.open_block()

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            body = Seq(tuple(self.session.close_block()), loc=self.loc)
            role = Role(self.name, self.first, self.count, body)
            self.session.emit(WarpRoles((role,), loc=self.loc))


def ws(*warp_group_idx: int) -> WarpSpecializeFrame:
    """`with T.ws(0):` runs its body in warp group 0 (threads 0 to 127) only, `T.ws(1, 2)` in two.

    Tile operations inside are spread over those threads alone, and barriers that they need join
    those threads alone; roles hand data to each other through barriers of T.alloc_barrier.
    """
    return WarpSpecializeFrame(warp_group_idx)


WarpSpecialize = ws


def set_max_nreg(reg_count: int, is_inc: int) -> Stmt | None:
    """Raise (`is_inc` 1) or lower (0) the registers of the warp groups that run this. Directly in
    the kernel's body it is a wish for the compiler's own producer and consumer roles."""
    count = const_int(reg_count)
    if count is None or not 24 <= count <= 256 or count % 8:
        raise TileValueError(
            f"{reg_count!r} registers a thread is no budget", code="TL1767", loc=session().loc(),
            hint="give a multiple of 8 from 24 to 256",
        )  # fmt: skip
    kernel, trace = open_kernel("T.set_max_nreg"), session()
    if len(trace.blocks) == _KERNEL_DEPTH:
        kernel.attrs["consumer_registers" if is_inc else "producer_registers"] = count
        return None
    return trace.emit(RegisterBudget(count, bool(is_inc), loc=trace.loc()))


def inc_max_nreg(reg_count: int) -> Stmt | None:
    """T.set_max_nreg(reg_count, 1)."""
    return set_max_nreg(reg_count, 1)


def dec_max_nreg(reg_count: int) -> Stmt | None:
    """T.set_max_nreg(reg_count, 0)."""
    return set_max_nreg(reg_count, 0)


def annotate_producer_reg_dealloc(reg_count: int = 24) -> Stmt | None:
    """Registers that the threads that only load keep."""
    return set_max_nreg(reg_count, 0)


def annotate_consumer_reg_alloc(reg_count: int = 240) -> Stmt | None:
    """Registers that the threads that compute get."""
    return set_max_nreg(reg_count, 1)


def disable_warp_group_reg_alloc() -> None:
    """Leave the registers of the compiler's own roles as they are launched."""
    open_kernel("T.disable_warp_group_reg_alloc").attrs["keep_registers"] = True


no_set_max_nreg = disable_warp_group_reg_alloc

NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        WarpSpecializeFrame, annotate_consumer_reg_alloc, annotate_producer_reg_dealloc,
        dec_max_nreg, disable_warp_group_reg_alloc, inc_max_nreg, set_max_nreg, ws,
    )
}  # fmt: skip
NAMES["WarpSpecialize"] = ws
NAMES["no_set_max_nreg"] = disable_warp_group_reg_alloc
"""What this module adds to the language."""
