"""Looking into a kernel: T.print, T.device_assert."""

from __future__ import annotations

from typing import Any

from tilelab.calls import caller_frame
from tilelab.errors import TileTypeError, a_kind, warn
from tilelab.frontend import check_in_kernel, is_traced, open_kernel, session, truth
from tilelab.frontend.values import formats_traced
from tilelab.ir import Buffer, Region, ScalarBuffer, Stmt, as_expr, cast, const_int, is_scalar
from tilelab.language.instruct import perform
from tilelab.target import WARP, WARPGROUP
from tilelab.thread.intrinsics import debug
from tilelab.tile.operands import as_region, here
from tilelab.tile.ops.print import Print


def print_(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> Stmt:
    """Print from the kernel: on a GPU by printf, in the simulator into its report and shown.

    `obj`: a number of the kernel (every thread that comes here prints its own), a buffer or a
    slice (one thread prints all elements: the first of warp `warp_id` of warpgroup
    `warp_group_id`), or nothing, for `msg` alone. Raises TileTypeError (TL1534) for other things.
    """
    open_kernel("T.print")
    if formats_traced(caller_frame()):
        warn("an f-string is made while the kernel is traced, and T.print gets the text of an "
             "expression: T.print(x, msg) shows the value of x while the kernel runs")  # fmt: skip
    if isinstance(obj, str) and not msg:
        obj, msg = None, obj
    text = str(msg).replace("%", "%%")
    if obj is None:
        return perform(debug.printf(text, 0), what="T.print", anywhere=True)
    if isinstance(obj, Buffer | Region) and not isinstance(obj, ScalarBuffer):
        region = as_region(obj, "obj")
        _check_extents(region)
        thread = warp_group_id * WARPGROUP + warp_id * WARP
        return session().emit(Print(region, str(msg), thread, loc=here()), anywhere=True)
    if not is_scalar(obj):
        raise TileTypeError(
            f"T.print of {obj!r}, {a_kind(obj)}", code="TL1534",
            hint="print a number of the kernel, a buffer, a slice, or a string",
        )  # fmt: skip
    value = as_expr(obj)
    form = debug.printable(value.dtype)
    name = _name_of(obj)
    text = (f"{text}: " if text else "") + (f"{name} = " if name else "")
    say = debug.printf(text + form.conversion, 1)
    return perform(say, cast(value, form.dtype), what="T.print", anywhere=True)


def _check_extents(region: Region) -> None:
    if any(const_int(e) is None for e in region.tile_shape):
        raise TileTypeError(
            f"T.print of {region.buffer.name}, whose extents are known only at run time",
            code="TL1534", hint="print a slice of constant extents",
        )  # fmt: skip


def _name_of(value: Any) -> str:
    name: str = getattr(value, "name", "")
    return name.replace("%", "%%") if name else ""


def device_assert(condition: Any, msg: Any = "", no_stack_info: bool = False) -> Stmt | None:
    """End the kernel with `msg` where the condition does not hold: on a GPU by a printed line and
    a trap (the launch fails), in the simulator by a finding (TL2020).

    A condition that is known now is checked now. `no_stack_info` leaves the line of the program
    out of the message.
    """
    if not is_traced(condition):
        assert truth(condition), str(msg) or "T.device_assert"
        return None
    open_kernel("T.device_assert")
    return check_in_kernel(session(), condition, str(msg), with_line=not no_stack_info)


NAMES = {"print": print_, "device_assert": device_assert}
"""What this module adds to the language."""
