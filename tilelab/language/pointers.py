"""Pointers to elements and the calls that take them: C functions, cp.async, bits of a value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import INT32, UINT8, UINT32, DType, as_dtype
from tilelab.errors import TileTypeError, TileValueError
from tilelab.frontend import open_kernel, plain_dtype, session
from tilelab.ir import (
    Buffer,
    Call,
    Expr,
    Load,
    Region,
    Stmt,
    as_bool,
    as_expr,
    cast,
    const_int,
    is_scalar,
)
from tilelab.language.instruct import barrier_place, element_place, evaluate, perform
from tilelab.language.vectors import reinterpret_lanes
from tilelab.thread.intrinsic import Role
from tilelab.thread.intrinsics import (
    CP_ASYNC_COMMIT,
    TMA_STORE_COMMIT,
    cp_async,
    cp_async_wait,
    cp_async_zfill,
)
from tilelab.thread.intrinsics import tma_store_wait as store_wait
from tilelab.thread.intrinsics import tma_store_wait_read as store_wait_read
from tilelab.thread.intrinsics.atomic import NANOSLEEP, THREADFENCE
from tilelab.thread.intrinsics.barrier import CP_ASYNC_ARRIVE
from tilelab.thread.intrinsics.extern import extern
from tilelab.thread.intrinsics.extern import reinterpret as reinterpret_record
from tilelab.thread.nodes import Operand, Ref

_ACCESS: dict[str, Role] = {"r": "reads", "w": "writes", "rw": "updates"}
_RESULTLESS = ("handle", "void", "")


@dataclass(frozen=True)
class Pointer:
    """The address of an element, and what the callee does there ("r", "w", "rw")."""

    place: Ref
    access: str = "rw"


def access_ptr(
    base: Any, access_type: str = "r", *extents: Any, offset: Any = 0, extent: Any = None,
    ignore_last_ndim: int = 0,
) -> Pointer:  # fmt: skip
    """The address of a buffer, an element or a region, for a call that reads ("r"), writes ("w")
    or does both ("rw"). `offset` counts elements further along the last axis; extents are for
    the reader."""
    mode = "".join(sorted(str(access_type)))
    if mode not in _ACCESS:
        raise TileValueError(
            f"access_type={access_type!r} is not known", code="TL1762", loc=session().loc(),
            hint='use "r", "w" or "rw"',
        )  # fmt: skip
    if isinstance(base, Region):
        base = Load(base.buffer, base.starts)
    place = element_place(base, "T.access_ptr")
    if const_int(offset) != 0:
        place = Ref(place.buffer, (*place.indices[:-1], place.indices[-1] + offset))
    return Pointer(place, mode)


def address_of(obj: Any) -> Pointer:
    """The address of an element, for a call that may read and write there."""
    return Pointer(element_place(obj, "T.address_of"))


def _argument(value: Any) -> tuple[Role, Operand]:
    if isinstance(value, Buffer) and not is_scalar(value):
        value = Pointer(element_place(value, "T.call_extern"))
    if isinstance(value, Pointer):
        return _ACCESS[value.access], value.place
    return "value", as_expr(value)


_KNOWN = {("__threadfence", 0): THREADFENCE, ("__nanosleep", 1): NANOSLEEP}
"""CUDA's own functions that the simulator knows, by name and number of arguments."""


def _dtype_by_name(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, whose first argument `dtype` may come by name beside the others by position."""

    @functools.wraps(call)
    def forward(*args: Any, **kwargs: Any) -> Any:
        first = (kwargs.pop("dtype"),) if args and "dtype" in kwargs else ()
        return call(*first, *args, **kwargs)

    return forward


@_dtype_by_name
def call_extern(dtype: Any, func_name: str, *args: Any) -> Any:
    """Call a C function of the program's own (see T.import_source): numbers by value, buffers,
    T.access_ptr and T.address_of as pointers. `dtype`, first or by name, is what it returns
    ("handle": nothing).

    The simulator calls the Python function given to tilelab.register_extern for that name, and
    knows `__threadfence` and `__nanosleep`.
    """
    known = _KNOWN.get((func_name, len(args)))
    if known is not None:
        numbers = (cast(as_expr(a), UINT32) for a in args)
        return perform(known, *numbers, what="T.call_extern")
    if not str(func_name).replace("::", "").isidentifier():
        raise TileValueError(
            f"{func_name!r} is no name of a C function", code="TL1762", loc=session().loc(),
            hint='name a function, such as "my_function" or "space::my_function"',
        )  # fmt: skip
    pairs = [_argument(a) for a in args]
    record = extern(func_name, tuple(role for role, _ in pairs))
    operands = [operand for _, operand in pairs]
    if isinstance(dtype, str) and dtype in _RESULTLESS:
        return perform(record, *operands, what="T.call_extern")
    return evaluate(record, *operands, dtype=plain_dtype(dtype), what="T.call_extern")


call_pure_extern = call_extern


def import_source(source: str | None = None) -> None:
    """Put CUDA text of the program's own before its kernels; None is nothing."""
    if source is None:
        return
    kernel = open_kernel("T.import_source")
    known: Any = kernel.attrs.get("source", ())
    if source not in known:
        kernel.attrs["source"] = (*known, source)


def reinterpret(value: Any, dtype: Any) -> Expr | Region:
    """The bits of `value` as a value of another type of the same width, of a vector (a slice) as
    one of another type; a value of fewer than 8 bits is the lowest bits of an 8-bit one."""
    if dtype == "handle":  # T.attr's third argument in T.comm_reducer: a null pointer
        return as_expr(value)
    if isinstance(dtype, Expr | Buffer):  # the peer's older order of arguments
        value, dtype = dtype, value
    if isinstance(value, Region):
        return reinterpret_lanes(value, dtype)
    return _same_bits(value, dtype)


def _same_bits(value: Any, dtype: Any) -> Expr:
    """`reinterpret` of one number."""
    number, to = as_expr(value), plain_dtype(dtype)
    source = as_dtype(number.dtype.name)
    widths = sorted((source.bits, to.bits))
    if widths[0] < 8 and widths[1] in (widths[0], 8) and not (source.is_bool or to.is_bool):
        return _other_code(number, source, to)
    if number.dtype.bits != to.bits or number.dtype.is_bool or to.is_bool:
        raise TileTypeError(
            f"T.reinterpret of a {number.dtype} value as {to}: their widths differ",
            code="TL1763", loc=session().loc(),
            hint="use a type of the same width, or T.cast to convert the number",
        )  # fmt: skip
    if number.dtype == to:
        return number
    record = reinterpret_record(as_dtype(number.dtype.name), to)
    return evaluate(record, number, dtype=to, what="T.reinterpret")


def _other_code(number: Expr, source: DType, to: DType) -> Expr:
    """Bits of at most 8-bit values of which one has fewer."""
    if source.per_byte > 1:
        bits: Expr = Call(f"to_code_{source.name}", (number,), INT32)
    else:
        bits = cast(_same_bits(number, UINT8), INT32)
    if to.per_byte > 1:
        return Call(f"from_code_{to.name}", (bits,), to)
    return _same_bits(cast(bits, UINT8), to)


# ---- cp.async and TMA stores -------------------------------------------------------------------


def ptx_cp_async(
    dst_access_ptr: Any, src_access_ptr: Any, num_elems: int, predicate: Any = None
) -> Stmt:
    """Start one cp.async of `num_elems` elements (4, 8 or 16 bytes) of the calling thread; where
    the predicate does not hold, zeros are written."""
    dst, src = (
        p.place if isinstance(p, Pointer) else element_place(p, "T.ptx_cp_async")
        for p in (dst_access_ptr, src_access_ptr)
    )
    count = const_int(num_elems) or 0
    size = count * dst.buffer.dtype.bits // 8
    if size not in (4, 8, 16) or dst.buffer.dtype != src.buffer.dtype:
        raise TileValueError(
            f"cp.async cannot copy {num_elems} elements of {src.buffer.name} ({src.buffer.dtype}) "
            f"to {dst.buffer.name} ({dst.buffer.dtype})",
            code="TL1764", loc=session().loc(),
            hint="copy 4, 8 or 16 bytes between buffers of one type",
        )  # fmt: skip
    places = tuple(Ref(p.buffer, p.indices, count) for p in (dst, src))
    if predicate is None:
        return perform(cp_async(size), *places, what="T.ptx_cp_async")
    return perform(cp_async_zfill(size), *places, as_bool(predicate), what="T.ptx_cp_async")


def ptx_commit_group() -> Stmt:
    """Close the group of cp.async that the calling thread has started."""
    return perform(CP_ASYNC_COMMIT, what="T.ptx_commit_group")


def _constant(value: Any, what: str) -> int:
    number = const_int(value)
    if number is None or number < 0:
        raise TileValueError(
            f"{what}({value!r}) needs a number known at compile time", code="TL1764",
            loc=session().loc(), hint="give how many of the newest groups may still be under way",
        )  # fmt: skip
    return number


def ptx_wait_group(num: int) -> Stmt:
    """Wait until at most `num` groups of the calling thread are still under way."""
    record = cp_async_wait(_constant(num, "T.ptx_wait_group"))
    return perform(record, what="T.ptx_wait_group")


def cp_async_barrier_noinc(barrier: Any) -> Stmt:
    """Arrive at a barrier once all earlier cp.async of the calling thread have come."""
    what = "T.cp_async_barrier_noinc"
    return perform(CP_ASYNC_ARRIVE, barrier_place(barrier, what), what=what)


def tma_store_arrive() -> Stmt:
    """Close the group of TMA stores of the calling thread."""
    return perform(TMA_STORE_COMMIT, what="T.tma_store_arrive")


def tma_store_wait(count: int = 0, read: bool = True) -> Stmt:
    """Wait until at most `count` groups of TMA stores are under way: their shared memory may be
    used again (`read`), or what they wrote is visible (`read=False`)."""
    number = _constant(count, "T.tma_store_wait")
    record = store_wait_read(number) if read else store_wait(number)
    return perform(record, what="T.tma_store_wait")


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        access_ptr, address_of, call_extern, cp_async_barrier_noinc, import_source,
        ptx_commit_group, ptx_cp_async, ptx_wait_group, reinterpret, tma_store_arrive,
        tma_store_wait,
    )
}  # fmt: skip
NAMES["call_pure_extern"] = call_pure_extern
"""What this module adds to the language."""
