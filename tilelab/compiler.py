"""The compiler on one screen: function -> passes -> thread IR -> CUDA text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelab.codegen import CudaSource, emit
from tilelab.engine.callback import rewritten
from tilelab.ir import Function
from tilelab.ir.verify import verify
from tilelab.passes.base import CompileTrace, PassContext, run_passes
from tilelab.passes.pipeline import PASSES
from tilelab.target import Target
from tilelab.thread.nodes import Program


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
    with False every access is correct for any size and slower. Raises TileErrors that name the
    line of the program.
    """
    options = {str(getattr(k, "value", k)): v for k, v in (pass_configs or {}).items()}
    trace = CompileTrace(target)
    ctx = PassContext(target, options, trace, aligned)
    program: Program = run_passes(function, PASSES, ctx, verify)
    return Lowered(program, trace, rewritten(emit(program), target))
