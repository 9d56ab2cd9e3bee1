"""A variant built in another process: what of it crosses the border, and how it is put together.

Hides that a launch refers to the variables of the traced function, which both processes have: they
travel as their number. Bodies stay behind: they are lowered again where somebody looks.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilelab.ir import Function, ScalarParam, Seq
from tilelab.runtime.module import Variant
from tilelab.runtime.nvrtc import Cubin
from tilelab.target import Target
from tilelab.thread.nodes import Program


@dataclass(frozen=True)
class Shipment:
    """A variant of a function for `target`, as bytes and plain values."""

    target: Target
    aligned: bool
    program: bytes
    cubin: Cubin
    kernel_names: tuple[str, ...]


def pack(function: Function, target: Target, aligned: bool, variant: Variant) -> Shipment:
    """The variant, ready to be pickled."""
    number = {id(part): i for i, part in enumerate(_parts(function))}

    class Packer(pickle.Pickler):
        def persistent_id(self, obj: Any) -> int | None:
            return number.get(id(obj))

    buffer = io.BytesIO()
    Packer(buffer).dump(launch_facts(variant.program))
    return Shipment(target, aligned, buffer.getvalue(), variant.cubin, variant.kernel_names)


def unpack(function: Function, shipment: Shipment) -> Variant:
    """The variant for the same function, traced in this process."""
    parts = list(_parts(function))

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return parts[pid]

    program: Program = Unpacker(io.BytesIO(shipment.program)).load()
    return Variant(program, shipment.cubin, shipment.kernel_names)


def launch_facts(program: Program) -> Program:
    """A program without what only compiling and looking need: the bodies of its kernels."""
    kernels = [
        replace(k, body=Seq(()), locals=(), views=(), sources=(), block_vars=(), thread_vars=())
        for k in program.kernels
    ]
    return replace(program, kernels=tuple(kernels))


def _parts(function: Function) -> Iterator[Any]:
    """What programs of a function refer to by identity, in one order everywhere."""
    for param in function.params:
        yield param.var if isinstance(param, ScalarParam) else param.buffer
    yield from function.params
    yield from function.sizes
    yield from function.workspaces
