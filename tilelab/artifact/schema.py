"""What an artefact may hold: kinds of nodes, types of their fields, instructions, limits.

Hides how a field's annotation becomes a check. Adding a node class or a factory of instructions
that programs may bring is one line here.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from importlib import import_module
from typing import Any

from tilelab import ir
from tilelab.errors import TileValueError
from tilelab.ir import Node
from tilelab.thread import nodes
from tilelab.thread.intrinsic import Intrinsic

FORMAT, VERSION = "tilelab-artifact", 2

_CLASSES: tuple[type[Node], ...] = (
    ir.Binary, ir.Break, ir.Buffer, ir.Call, ir.Cast, ir.Const, ir.Continue, ir.For, ir.If, ir.Let,
    ir.Load, ir.ReducerBuffer, ir.ScalarBuffer, ir.ScalarParam, ir.Select, ir.Seq, ir.Store,
    ir.TensorParam, ir.Unary, ir.Var, ir.While, ir.WorkCounter,
    nodes.Alignment, nodes.Comment, nodes.Invoke, nodes.Program, nodes.Ref, nodes.Role,
    nodes.SharedDescriptor, nodes.SharedSlot, nodes.TensorMap, nodes.ThreadKernel,
    nodes.VectorCopy, nodes.WarpRoles,
)  # fmt: skip
CLASSES: dict[str, type[Node]] = {kind.__name__: kind for kind in _CLASSES}

# By name: some modules share theirs with a function that their package exports. `extern` and
# `debug` are loaded for their factories.
_MODULES = (
    "barrier", "cp_async", "debug", "exchange", "extern", "mma", "nibbles", "tma", "warp", "wgmma",
    "wide", "atomic",
)  # fmt: skip
FACTORIES = frozenset({
    "atomic.atomic", "atomic.atomic_add_run", "atomic.atomic_load", "cp_async.cp_async",
    "cp_async.cp_async_wait", "cp_async.cp_async_zfill", "debug.device_assert", "debug.printf",
    "exchange.shuffle", "extern.reinterpret", "mma.ldmatrix", "mma.mma_sync", "mma.stmatrix",
    "nibbles.unpack_nibbles", "tma.tma_load", "tma.tma_store", "tma.tma_store_wait",
    "tma.tma_store_wait_read",
    "warp.warpgroup_reg_alloc", "warp.warpgroup_reg_dealloc", "wgmma.fence_registers",
    "wgmma.warpgroup_wait", "wgmma.wgmma_rs", "wgmma.wgmma_ss", "wide.is_aligned",
})  # fmt: skip
"""Factories of instructions that an artefact may name: extern.extern is not among them."""
SPEAKING = frozenset({"debug.device_assert", "debug.printf"})
"""Those whose first argument is text of the program's own."""
SIGNED = frozenset({"nibbles.unpack_nibbles"})
"""Those with an argument that may be negative."""
LARGEST_ARGUMENT = 4096


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of an artefact, far above what programs need: bytes and counts."""

    nodes: int = 200_000
    expanded: int = 5_000_000  # nodes counted once for each place where they stand
    depth: int = 200
    text: int = 400
    integer: int = 1 << 64
    registers: int = 1 << 14  # elements of one register array
    threads: int = 1024


LIMITS = Limits()


def refused(problem: str, hint: str = "") -> TileValueError:
    """The error (TL1670) for what cannot be saved, or must not be loaded."""
    return TileValueError(
        f"this is no artefact that can be used: {problem}", code="TL1670",
        hint=hint or "make artefacts with tilelab.artifact.save",
    )  # fmt: skip


@cache
def constants() -> dict[str, Intrinsic]:
    """Instruction records that are constants of their modules, by "module.NAME"."""
    found: dict[str, Intrinsic] = {}
    for short in _MODULES:
        module = import_module(f"tilelab.thread.intrinsics.{short}")
        for name, value in vars(module).items():
            if isinstance(value, Intrinsic):
                found[f"{short}.{name}"] = value
    return found


@cache
def fields(kind: type[Node]) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields that a node class is made with, in order."""
    # Some annotations name classes that their module imports for the type checker only.
    hints = typing.get_type_hints(kind, localns={"Buffer": ir.Buffer})
    return tuple(
        (f.name, hints[f.name])
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]
        if f.init
    )


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type alone."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.get_args(hint)
    return (hint,)
