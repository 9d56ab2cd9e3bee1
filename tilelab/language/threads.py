"""Code written for single threads: hardware axes as loops, reductions over threads, workspaces."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.errors import TileNotSupported, TileTypeError, TileValueError
from tilelab.frontend import ThreadLoop, as_dims, open_kernel, plain_dtype, session
from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    Continue,
    Expr,
    For,
    Load,
    LoopKind,
    ScalarBuffer,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    cast,
    const_int,
    select,
)
from tilelab.ir.operators import Operators
from tilelab.language.instruct import bound
from tilelab.language.launch import linear_thread
from tilelab.language.memory import alloc_local
from tilelab.language.warp import shfl_xor
from tilelab.target import WARP

_REDUCE = "reduce_scope"


# ---- hardware axes -----------------------------------------------------------------------------


def thread_binding(
    start: Any, stop: Any = None, thread: str | None = None, *, annotations: Any = None
) -> ThreadLoop:
    """A loop whose iterations are the threads or blocks of a launch along one axis:
    `for tk in T.thread_binding(0, 32, thread="threadIdx.x"):`, inside T.Kernel."""
    if isinstance(stop, str):  # thread_binding(n, "threadIdx.x")
        start, stop, thread = 0, start, stop
    if stop is None:
        start, stop = 0, start
    return ThreadLoop(start, stop, _axis(thread))


def _axis(thread: Any) -> str:
    axes = [f"{kind}Idx.{axis}" for kind in ("thread", "block") for axis in "xyz"]
    if thread not in axes:
        raise TileValueError(
            f"thread={thread!r} is no axis of a launch", code="TL1768", loc=session().loc(),
            hint="use " + ", ".join(repr(a) for a in axes),
        )  # fmt: skip
    return str(thread)


class LaunchedAxis(Operators):
    """What T.launch_thread gives: an index, which `with ... as tx:` names too."""

    def __init__(self, index: Expr) -> None:
        self.index = index

    def __expr__(self) -> Expr:
        """The index of this thread (or block)."""
        return self.index

    def __enter__(self) -> Expr:
        return self.index

    def __exit__(self, *_rest: object) -> None:
        """The index is of the launch, and stays."""


def launch_thread(thread: str, extent: Any) -> LaunchedAxis:
    """`with T.launch_thread("threadIdx.x", 128) as tx:` (or `tx = ...`) names an axis of the open
    T.Kernel; its extent must be the launch's (TL1768)."""
    kernel = open_kernel("T.launch_thread")
    loop = ThreadLoop(0, extent, _axis(thread))
    known = loop.launched(kernel)
    if const_int(extent) is not None and const_int(known) not in (None, const_int(extent)):
        raise TileValueError(
            f"{thread} has {const_int(known)} indices in this T.Kernel, not {const_int(extent)}",
            code="TL1768", loc=session().loc(), hint="give T.Kernel the same extents",
        )  # fmt: skip
    return LaunchedAxis(loop.variable(kernel))


# ---- reductions over threads -------------------------------------------------------------------


@dataclass(frozen=True)
class CommReducer:
    """A commutative operation and its neutral element, for T.tvm_thread_allreduce."""

    combiner: Callable[[Any, Any], Any]
    identity: Any


def comm_reducer(combiner: Callable[[Any, Any], Any], identity: Any) -> CommReducer:
    """`T.comm_reducer(lambda x, y: x + y, [T.float32(0)])`."""
    neutral = identity[0] if isinstance(identity, tuple | list) else identity  # pyright: ignore[reportUnknownVariableType]
    return CommReducer(combiner, neutral)


@contextmanager
def attr(node: Any, attr_key: str, value: Any) -> Generator[None]:
    """`with T.attr(reducer, "reduce_scope", ...)`: the operation of the reductions inside."""
    if attr_key != _REDUCE or not isinstance(node, CommReducer):
        raise TileNotSupported(
            f"T.attr(..., {attr_key!r}, ...) has no meaning here", code="TL1769",
            loc=session().loc(), hint='only T.attr(T.comm_reducer(...), "reduce_scope", ...) has',
        )  # fmt: skip
    attrs = open_kernel("T.attr").attrs
    outer = attrs.get(_REDUCE)
    attrs[_REDUCE] = node
    try:
        yield
    finally:
        attrs.pop(_REDUCE)
        if outer is not None:
            attrs[_REDUCE] = outer


def tvm_thread_allreduce(
    size: Any, value: Any, condition: Any, result: Any, *axes: Any, dtype: Any = None
) -> None:
    """Combine `value` of all threads along the thread axes, and store the outcome in `result` (an
    element of the thread's own) in each of them. The operation is the enclosing T.attr's."""
    kernel, trace = open_kernel("T.tvm_thread_allreduce"), session()
    reducer = kernel.attrs.get(_REDUCE)
    if not isinstance(reducer, CommReducer) or not isinstance(result, Load):
        raise TileTypeError(
            "T.tvm_thread_allreduce needs a reduction operation around it and an element for its "
            "result",
            code="TL1769", loc=trace.loc(),
            hint='put it into `with T.attr(T.comm_reducer(...), "reduce_scope", ...)`',
        )  # fmt: skip
    dims = [_dimension(a, kernel.thread_vars) for a in axes]
    kind = result.buffer.dtype
    held = cast(as_expr(value, kind), kind)
    neutral = cast(as_expr(reducer.identity, kind), kind)
    held = bound(select(condition, held, neutral), "partial")
    extents = [kernel.threads[d] for d in dims]
    if dims == [0] and _fits_warp(extents[0], kernel.threads):
        total = _by_shuffles(held, extents[0], reducer)
    else:
        total = _by_shared(held, dims, reducer, neutral)
    trace.emit(Store(result.buffer, result.indices, cast(total, kind), loc=trace.loc()))


def _dimension(axis: Any, variables: tuple[Var, ...]) -> int:
    for number, var in enumerate(variables):
        if axis is var:
            return number
    raise TileTypeError(
        f"{axis!r} is no thread axis of this kernel", code="TL1769", loc=session().loc(),
        hint="use T.get_thread_binding(dim), or the variable of T.thread_binding",
    )  # fmt: skip


def _fits_warp(extent: int, threads: tuple[int, ...]) -> bool:
    return extent <= WARP and extent & (extent - 1) == 0 and prod(threads) % WARP == 0


def _by_shuffles(value: Expr, extent: int, reducer: CommReducer) -> Expr:
    distance = extent // 2
    while distance:
        value = bound(as_expr(reducer.combiner(value, shfl_xor(value, distance))), "partial")
        distance //= 2
    return value


def _by_shared(value: Expr, dims: list[int], reducer: CommReducer, neutral: Expr) -> Expr:
    """Every thread writes its value, and combines those of its group."""
    kernel, trace = open_kernel("T.tvm_thread_allreduce"), session()
    loc = trace.loc()
    total = prod(kernel.threads)
    scratch = Buffer(trace.fresh("scratch"), (total,), value.dtype, Scope.SHARED, loc=loc)
    combined = ScalarBuffer(trace.fresh("combined"), (1,), value.dtype, Scope.LOCAL, loc=loc)
    for buffer in (scratch, combined):
        trace.emit(Alloc(buffer, loc=loc), anywhere=True)
    zero = (as_expr(0),)
    trace.emit(Store(scratch, (linear_thread(),), value, loc=loc))
    trace.emit(Store(combined, zero, neutral, loc=loc))
    strides = [1, kernel.threads[0], kernel.threads[0] * (kernel.threads[1:2] or (1,))[0]]
    place = linear_thread()
    variables: list[Var] = []
    for d in dims:
        k = Var(trace.fresh("k"), lo=0, hi=kernel.threads[d] - 1)
        place = place + (k - kernel.thread_vars[d]) * strides[d]
        variables.append(k)
    both = reducer.combiner(Load(combined, zero), Load(scratch, (place,)))
    step: Stmt = Store(combined, zero, cast(as_expr(both), value.dtype), loc=loc)
    for k, d in zip(variables, dims, strict=True):
        body = Seq((step,), loc=loc)
        extent = as_expr(kernel.threads[d])
        step = For(k, as_expr(0), extent, as_expr(1), LoopKind.SERIAL, body, loc=loc)
    trace.emit(step)
    return Load(combined, zero)


# ---- statements --------------------------------------------------------------------------------


def evaluate(value: Any) -> Any:
    """Use a call as a statement: `T.evaluate(T.call_extern(...))`."""
    return value


def loop_break() -> Stmt:
    """Leave the innermost loop; Python's `break` says the same."""
    return session().emit(Break(loc=session().loc()))


def continue_loop() -> Stmt:
    """Go on with the innermost loop's next iteration; Python's `continue` says the same."""
    return session().emit(Continue(loc=session().loc()))


def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> Buffer:
    """A tensor of the function's own in global memory: made anew for each call, with undefined
    content, for values that one kernel of the function hands to the next."""
    if scope != "global":
        raise TileValueError(
            f"scope={scope!r} is not known here", code="TL1428", hint='use "global"'
        )
    trace = session()
    dims = as_dims(shape, "a workspace")
    name = trace.hinted("workspace")
    buffer = Buffer(name, dims, plain_dtype(dtype), Scope.GLOBAL, loc=trace.loc())
    trace.workspaces.append(buffer)
    return buffer


def alloc_buffer(
    shape: Any, dtype: Any = "float32", scope: str = "global", annotations: Any = None
) -> Buffer:
    """A buffer in the memory space `scope`: a workspace in global memory (the default), or what
    T.alloc_shared, T.alloc_fragment and T.alloc_local make."""
    del annotations  # hints of the peer change no result
    return alloc_global(shape, dtype) if scope == "global" else alloc_local(shape, dtype, scope)


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        alloc_buffer, alloc_global, attr, comm_reducer, continue_loop, evaluate, launch_thread,
        loop_break, thread_binding, tvm_thread_allreduce,
    )
}  # fmt: skip
NAMES["break_loop"] = loop_break
"""What this module adds to the language."""
