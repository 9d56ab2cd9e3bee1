"""The compiler on one screen: function -> passes -> thread IR -> CUDA text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilelab.codegen import CudaSource, emit
from tilelab.engine.callback import rewritten
from tilelab.errors import SharedMemoryOverflow
from tilelab.ir import Function
from tilelab.ir.verify import verify
from tilelab.passes.base import CompileTrace, PassContext, run_passes
from tilelab.passes.by_hand import by_hand
from tilelab.passes.pipeline import PASSES
from tilelab.passes.stamp_schedule import KEY, stamp_schedule
from tilelab.target import Target
from tilelab.thread.nodes import Program
from tilelab.tile.structure import TAKING_ROOM


@dataclass(frozen=True)
class Lowered:
    """A compiled function: what runs (`program`), why (`trace`), and its CUDA text."""

    program: Program
    trace: CompileTrace
    cuda: CudaSource


def lower(
    function: Function,
    *,
    target: Target,
    pass_configs: Mapping[str, Any] | None = None,
    aligned: bool = True,
) -> Lowered:
    """Compile a traced function for `target`.

    `aligned` assumes that rows and bases of tensors are 16-byte aligned (dynamic sizes included);
    with False every access is correct for any size and slower. A program that needs more shared
    memory than there is because of structure that only speeds it up is compiled without it. Raises
    TileErrors that name the line of the program.
    """
    options = {str(getattr(k, "value", k)): v for k, v in (pass_configs or {}).items()}
    try:
        return _lower(function, PassContext(target, options, CompileTrace(target), aligned))
    except SharedMemoryOverflow as error:
        # Passes judge the room before scratch of lowerings is known: here their wishes yield.
        wishes = {s.key: False for s in TAKING_ROOM if s.key not in options}
        ctx = PassContext(target, {**options, **wishes}, CompileTrace(target), aligned)
        ctx.note(f"compiled again without {', '.join(wishes)}, for room: {error.message}")
        try:
            return _lower(function, ctx)
        except SharedMemoryOverflow:
            raise error from None


def _lower(function: Function, ctx: PassContext) -> Lowered:
    passes = PASSES if ctx.option(KEY) is None else (*PASSES, stamp_schedule)
    program: Program = run_passes(function, passes, ctx, verify)
    program = replace(program, by_hand=by_hand(function, ctx))
    return Lowered(program, ctx.trace, rewritten(emit(program, ctx.target), ctx.target))
