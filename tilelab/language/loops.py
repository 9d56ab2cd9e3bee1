"""Loops: T.serial, unroll, vectorized, Pipelined, Parallel, grid, Persistent."""

from __future__ import annotations

import contextlib
from typing import Any

from tilelab.errors import TileTypeError, TileValueError, shown
from tilelab.frontend import GridLoop, ParallelLoop, PersistentLoop, RangeLoop
from tilelab.ir import Expr, LoopKind, as_expr, const_int
from tilelab.ir.printer import to_text
from tilelab.logs import without_effect


def _attrs(**given: Any) -> tuple[tuple[str, object], ...]:
    """The annotations that were given, in an immutable form."""
    return tuple((k, _fixed(v)) for k, v in given.items() if v is not None)


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _range(
    what: str, start: Any, stop: Any, step: Any, kind: LoopKind, **attrs: Any
) -> RangeLoop:  # fmt: skip
    start, stop = _ends(what, start, stop)
    step = 1 if step is None else _number(what, "step", step)
    return RangeLoop(start, stop, step, kind, attrs=_attrs(**attrs))


def _ends(what: str, start: Any, stop: Any) -> tuple[Any, Any]:
    """Start and stop of a serial loop, either `n` or `start, stop`: none, as in range, where
    nothing lies between them."""
    if stop is None:
        return 0, _number(what, "extent", start)
    return _number(what, "start", start), _number(what, "stop", stop)


def _count(what: str, value: Any) -> Any:
    """An extent of a box: a number of iterations, 0 and more."""
    known = const_int(_number(what, "extent", value))
    if known is not None and known < 0:
        raise _no_extent(what, "extent", value)
    return value


def _number(what: str, part: str, value: Any) -> Any:
    """An integer known now or in the kernel. TileTypeError (TL1435) for anything else."""
    number = None
    whole = hasattr(value, "shape") and value.shape != () and not hasattr(value, "__expr__")
    if not isinstance(value, bool) and not whole:  # a variable (T.alloc_var) is a scalar
        with contextlib.suppress(TileTypeError):
            number = as_expr(value)
    if number is None or not number.dtype.is_int:
        raise _no_extent(what, part, value)
    return value


def _no_extent(what: str, part: str, value: Any) -> TileTypeError:
    said = to_text(value) if isinstance(value, Expr) else shown(value)
    hint = "use an int from 0 on, or an integer of the kernel"
    if isinstance(value, float):
        hint += "; `/` gives a float, `//` and T.ceildiv give an int"
    elif hasattr(value, "__len__") and not isinstance(value, str):
        hint += f": {what}(n) has its extents as arguments, not in a list"
    return TileTypeError(f"the {part} of {what} is {said}, which is no number of iterations",
                         code="TL1435", hint=hint)  # fmt: skip


def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> RangeLoop:
    """A loop whose iterations run in order, like range."""
    return _range("T.serial", start, stop, step, LoopKind.SERIAL, annotations=annotations)


def unroll(
    start: Any, stop: Any = None, step: Any = None, *, explicit: bool = False,
    unroll_factor: int | None = None, annotations: Any = None,
) -> RangeLoop:  # fmt: skip
    """A serial loop written out by the compiler."""
    extra = {"explicit": explicit or None, "unroll_factor": unroll_factor}
    return _range("T.unroll", start, stop, step, LoopKind.UNROLL, annotations=annotations, **extra)


def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> RangeLoop:
    """An innermost loop over independent lanes of one thread; its extent is a Python int."""
    loop = _range("T.vectorized", start, stop, 1, LoopKind.LANES, annotations=annotations)
    if const_int(loop.start) is None or const_int(loop.stop) is None:
        raise TileValueError(
            "T.vectorized needs an extent known at compile time", code="TL1449",
            hint="use T.serial for an extent known only at run time",
        )  # fmt: skip
    return loop


Serial, Unroll, Vectorized = serial, unroll, vectorized


def Pipelined(
    start: Any, stop: Any = None, num_stages: int = 0, order: Any = None, stage: Any = None,
    sync: Any = None, group: Any = None, annotations: Any = None,
) -> RangeLoop:  # fmt: skip
    """A serial loop whose copies from global memory run up to `num_stages` iterations ahead
    (0: not at all). The result is the serial loop's."""
    stages = None if isinstance(num_stages, bool) else const_int(num_stages)
    if stages is None or stages < 0:
        raise TileValueError(
            f"num_stages={shown(num_stages)} is no number of stages", code="TL1434",
            hint="use 0 (no pipelining), or 1 and more",
        )  # fmt: skip
    start, stop = _ends("T.Pipelined", start, stop)
    without_effect(
        "T.Pipelined", {"order": order, "stage": stage, "sync": sync, "group": group},
        "the compiler plans the pipeline itself",
    )  # fmt: skip
    attrs = _attrs(order=order, stage=stage, sync=sync, group=group, annotations=annotations)
    return RangeLoop(start, stop, 1, LoopKind.PIPELINED, stages, attrs)


def Parallel(
    *extents: Any, coalesced_width: Any = None, loop_layout: Any = None, prefer_async: Any = None,
    annotations: Any = None,
) -> ParallelLoop:  # fmt: skip
    """Independent iterations over a box, spread over the block's threads:
    `for i, j in T.Parallel(128, 64):`."""
    if not extents:
        raise TileValueError(
            "T.Parallel needs at least one extent", code="TL1435", hint="write T.Parallel(n)"
        )
    for extent in extents:
        _count("T.Parallel", extent)
    without_effect("T.Parallel", {
        "coalesced_width": coalesced_width, "loop_layout": loop_layout,
        "prefer_async": prefer_async or None,
    }, "the compiler spreads the iterations itself")  # fmt: skip
    attrs = _attrs(
        coalesced_width=coalesced_width, loop_layout=loop_layout, prefer_async=prefer_async,
        annotations=annotations,
    )  # fmt: skip
    return ParallelLoop(extents, attrs)


def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> ParallelLoop:
    """T.Parallel over one axis, in the spelling of the peer's low-level IR."""
    if stop is not None and const_int(start) != 0:
        raise TileValueError(
            f"T.parallel({start!r}, {stop!r}) begins at a number other than 0", code="TL1435",
            hint="write T.Parallel(n) and add the start to the index",
        )  # fmt: skip
    return Parallel(start if stop is None else stop, annotations=annotations)


def grid(*extents: Any) -> GridLoop:
    """Nested serial loops: `for i, j in T.grid(4, 8):`."""
    if not extents:
        raise TileValueError("T.grid needs at least one extent", code="TL1435", hint="T.grid(n, m)")
    for extent in extents:
        _number("T.grid", "extent", extent)
    return GridLoop(extents)


def Persistent(
    domain: Any, wave_size: Any, index: Any, group_size: int = 8, num_stages: int = 0, *,
    annotations: Any = None,
) -> PersistentLoop:  # fmt: skip
    """The tiles of a domain shared out over `wave_size` blocks, of which this is `index`: every
    tile exactly once, in groups of `group_size` rows."""
    if num_stages or annotations:
        raise TileValueError(
            "T.Persistent takes no num_stages or annotations here", code="TL1436",
            hint="pipeline the inner loop with T.Pipelined",
        )  # fmt: skip
    return PersistentLoop(tuple(domain), wave_size, index, group_size)
