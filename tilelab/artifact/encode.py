"""save(): a compiled kernel as JSON-able data.

Hides the table of nodes: each node once, children before parents, so that identity survives.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from tilelab.artifact.schema import CLASSES, FACTORIES, FORMAT, VERSION, constants, fields, refused
from tilelab.dtypes import DType
from tilelab.errors import Loc
from tilelab.ir import Buffer, Node, Scope
from tilelab.kernel import JITKernel
from tilelab.layout import SharedLayout, ViewLayout
from tilelab.target import TARGETS, parse_target
from tilelab.thread.intrinsic import Intrinsic, origin_of

_NO_MEANS = (
    "call_extern, import_source, tables of addresses and shared layouts given as functions cannot "
    "be saved"
)
OPTIONS = ("tl.enable_fast_math", "tl.ptxas_register_usage_level")
"""pass_configs that act after lowering and are kept."""


def save(kernel: JITKernel, target: Any = None) -> dict[str, Any]:
    """The thread IR and launch record of a kernel: dicts, lists, strings, numbers.

    `target` (a name, or what else `tilelab.compile` takes) stands for the kernel's own.

    Both variants are kept (for 16-byte aligned rows, and for any). Raises TileTypeError (TL1670)
    for what is no kernel, TileValueError (TL1670) for programs with C functions or CUDA text of
    their own, and what compiling raises.
    """
    if not isinstance(kernel, JITKernel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused(f"{kernel!r} is no kernel", "pass what tilelab.compile returns")
    chosen = parse_target(target) or kernel.target
    if chosen.name not in TARGETS:
        raise refused(f"the target {chosen.name} has no name", "compile for one of tilelab's own")
    builds = [kernel.program_for(aligned, chosen) for aligned in (True, False)]
    table = _Table()
    programs = [table.node(program) for program in builds]
    return {
        "format": FORMAT, "version": VERSION, "target": chosen.name,
        "outputs": list(kernel.signature.outputs),
        "options": {k: kernel.pass_configs[k] for k in OPTIONS if k in kernel.pass_configs},
        "nodes": table.rows, "instructions": table.instructions,
        "aligned": programs[0], "general": programs[1],
    }  # fmt: skip


class _Table:
    """The nodes and instructions written so far."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.instructions: list[list[Any]] = []
        self._numbers: dict[int, int] = {}
        self._records: dict[int, int] = {}
        self._kept: list[Node] = []

    def node(self, node: Node) -> int:
        """The row of a node; written on first use."""
        found = self._numbers.get(id(node))
        if found is not None:
            return found
        kind = type(node).__name__
        if CLASSES.get(kind) is not type(node):
            raise refused(f"it has a {kind}", _NO_MEANS)
        row = [kind, *(self._field(node, name) for name, _ in fields(type(node)))]
        self._numbers[id(node)] = len(self.rows)
        self._kept.append(node)
        self.rows.append(row)
        return len(self.rows) - 1

    def _field(self, node: Node, name: str) -> Any:
        value = getattr(node, name)
        if name == "layout" and isinstance(node, Buffer):
            return layout(value) if node.scope is Scope.SHARED else None
        if name == "sources" and value:
            raise refused("it has CUDA text of its own", _NO_MEANS)
        return self._value(value)

    def _value(self, value: Any) -> Any:
        for kind, write in _WRITERS.items():
            if isinstance(value, kind):
                return write(self, value)
        raise refused(f"it has a {type(value).__name__}", _NO_MEANS)

    def _instruction(self, record: Intrinsic) -> Any:
        number = self._records.get(id(record))
        if number is None:
            number = self._records[id(record)] = len(self.instructions)
            self.instructions.append(_named(record))
        return {"i": number}

    def _tuple(self, value: tuple[Any, ...]) -> list[Any]:
        return [self._value(item) for item in value]

    def _node(self, value: Node) -> Any:
        return {"n": self.node(value)}


def _named(record: Intrinsic) -> list[Any]:
    """A record by name: a constant, or a factory with its arguments."""
    origin = origin_of(record)
    if origin is None:
        for name, constant in constants().items():
            if constant is record:
                return [name]
    elif origin.factory in FACTORIES:
        args = [_argument(a) for a in origin.args]
        return [origin.factory, args, {k: _argument(v) for k, v in origin.kwargs}]
    raise refused(f"it has the instruction {record.name}", _NO_MEANS)


def _argument(value: Any) -> Any:
    return {"t": value.name} if isinstance(value, DType) else value


def _place(loc: Loc) -> Any:
    return {"l": [loc.file, loc.line, loc.column, loc.end_line, loc.end_column, loc.function]}


def layout(value: Any) -> Any:
    """The layout of a shared buffer as data; None for row-major."""
    if value is None:
        return None
    if isinstance(value, ViewLayout):
        return ["view", layout(value.base), list(value.shape), value.element_bits]
    if isinstance(value, SharedLayout):
        s = value.swizzle
        swizzle = None if s is None else [s.bits, s.base, s.shift]
        return ["shared", list(value.shape), value.element_bits, swizzle, value.panel, value.pitch]
    raise refused(f"it has a {type(value).__name__}", _NO_MEANS)


_WRITERS: dict[Any, Callable[[Any, Any], Any]] = {
    Node: _Table._node,  # pyright: ignore[reportPrivateUsage]
    Intrinsic: _Table._instruction,  # pyright: ignore[reportPrivateUsage]
    tuple: _Table._tuple,  # pyright: ignore[reportPrivateUsage]
    DType: lambda table, value: value.name,
    enum.Enum: lambda table, value: value.value,
    Loc: lambda table, value: _place(value),
    float: lambda table, value: {"f": value.hex()},
    (bool, int, str, type(None)): lambda table, value: value,
}
