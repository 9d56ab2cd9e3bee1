"""load(): data to a kernel, trusting nothing.

Hides how each value is read by the type of the field that it is for. What does not fit raises one
kind of error (TL1670).
"""

from __future__ import annotations

import enum
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast

from tilelab.artifact.check import check_program
from tilelab.artifact.encode import OPTIONS
from tilelab.artifact.loaded import LoadedKernel
from tilelab.artifact.schema import (
    CLASSES,
    FACTORIES,
    FORMAT,
    LARGEST_ARGUMENT,
    LIMITS,
    SIGNED,
    SPEAKING,
    VERSION,
    alternatives,
    constants,
    fields,
    refused,
)
from tilelab.artifact.text import check_format, check_text, check_word
from tilelab.dtypes import DTYPES, DType
from tilelab.errors import Loc, TileError
from tilelab.ir import Const, Node
from tilelab.layout import SharedLayout, Swizzle, ViewLayout
from tilelab.target import TARGETS
from tilelab.thread import intrinsic
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.nodes import Program

KEYS = {
    "format": str, "version": int, "target": str, "outputs": list, "options": dict, "nodes": list,
    "instructions": list, "aligned": int, "general": int,
}  # fmt: skip


def load(data: Any, *, file: str | None = None) -> LoadedKernel:
    """The kernel of an artefact. All parameters are passed in a call, outputs too.

    Places in the program (for findings) are kept when they are in `file`, and dropped otherwise:
    an artefact cannot make an error message quote another file. Raises TileValueError (TL1670)
    for anything that breaks the schema, a limit, or a rule of thread IR.
    """
    try:
        return _load(data, file)
    except TileError as error:
        if error.code == "TL1670":
            raise
        raise refused(error.message) from error
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError, ArithmeticError,
            IndexError, RecursionError) as error:  # fmt: skip
        # The constructors' own complaints about a forged field.
        raise refused(f"{type(error).__name__} ({str(error)[:100]})") from error


def _load(given: Any, file: str | None) -> LoadedKernel:
    data = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for key, kind in KEYS.items():
        if type(data.get(key)) is not kind:
            raise refused(f"{key} is missing or of another type")
    if set(data) != set(KEYS) or data["format"] != FORMAT or data["version"] != VERSION:
        raise refused(f"it is not {FORMAT} version {VERSION}")
    target = TARGETS.get(data["target"])
    if target is None:
        raise refused(f"there is no target {str(data['target'])[:40]!r}")
    if len(data["nodes"]) > LIMITS.nodes:
        raise refused(f"{len(data['nodes'])} nodes, the limit is {LIMITS.nodes}")
    reader = _Reader(data["instructions"], file)
    for row in data["nodes"]:
        reader.add(row)
    programs = [reader.program(data[key]) for key in ("aligned", "general")]
    for program in programs:
        check_program(program, target)
    outputs = data["outputs"]
    if any(type(i) is not int or not 0 <= i < len(programs[0].params) for i in outputs):
        raise refused("an output is no parameter")
    return LoadedKernel(programs[0], programs[1], target, tuple(outputs), _options(data["options"]))


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in options.items():
        if key not in OPTIONS or type(value) not in (bool, int):
            raise refused(f"the option {key[:40]!r}")
    return dict(options)


class _Reader:
    """Nodes and instructions made so far."""

    def __init__(self, instructions: list[Any], file: str | None) -> None:
        self._file = file
        self._nodes: list[Node] = []
        self._expanded: list[int] = []
        self._depth: list[int] = []
        self._records = [_record(row) for row in instructions]

    def program(self, number: int) -> Program:
        """The program at a row."""
        found = self._nodes[number] if 0 <= number < len(self._nodes) else None
        if not isinstance(found, Program):
            raise refused("a variant is no program")
        return found

    def add(self, row: Any) -> None:
        """Make the node of one row out of earlier ones."""
        items = _listed(row)
        if not items:
            raise refused("a row of the table is no list")
        kind = CLASSES.get(items[0]) if isinstance(items[0], str) else None
        if kind is None:
            raise refused(f"there is no node {str(items[0])[:40]!r}")
        wanted = fields(kind)
        if len(items) != len(wanted) + 1:
            raise refused(f"a {items[0]} with {len(items) - 1} fields")
        self._used: list[int] = []
        values = {
            name: self._layout(raw) if name == "layout" else self._read(raw, hint, name)
            for (name, hint), raw in zip(wanted, items[1:], strict=True)
        }
        node = kind(**values)
        if isinstance(node, Const):
            _check_const(node)
        expanded = 1 + sum(self._expanded[i] for i in self._used)
        depth = 1 + max((self._depth[i] for i in self._used), default=0)
        if expanded > LIMITS.expanded or depth > LIMITS.depth:
            raise refused(f"{expanded} nodes {depth} deep")
        self._nodes.append(node)
        self._expanded.append(1 if kind.is_leaf else expanded)
        self._depth.append(depth)

    # -- values by type ---------------------------------------------------------------------------

    def _read(self, raw: Any, hint: Any, name: str) -> Any:
        for one in alternatives(hint):
            reader = self._reader(one)
            if reader is not None:
                value = reader(self, raw, one, name)
                if value is not _OTHER:
                    return value
        raise refused(f"the field {name} has a {type(raw).__name__}")

    def _reader(self, hint: Any) -> Callable[..., Any] | None:
        if typing.get_origin(hint) is tuple:
            return _Reader._tuple
        if not isinstance(hint, type):
            return None
        if hint is object:
            return _Reader._plain
        return next((read for kind, read in _READERS.items() if issubclass(hint, kind)), None)

    def _tuple(self, raw: Any, hint: Any, name: str) -> Any:
        items = _listed(raw)
        if items is None:
            return _OTHER
        inner = typing.get_args(hint)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(self._read(item, inner[0], name) for item in items)
        if len(items) != len(inner):
            raise refused(f"the field {name} has {len(items)} parts")
        return tuple(self._read(i, h, name) for i, h in zip(items, inner, strict=True))

    def _node(self, raw: Any, hint: Any, name: str) -> Any:
        number = _only(raw, "n")
        if type(number) is not int:
            return _OTHER
        if not 0 <= number < len(self._nodes):
            raise refused(f"the field {name} names a node that does not come before it")
        node = self._nodes[number]
        if not isinstance(node, hint):
            return _OTHER
        self._used.append(number)
        return node

    def _intrinsic(self, raw: Any, hint: Any, name: str) -> Any:
        number = _only(raw, "i")
        if type(number) is not int or not 0 <= number < len(self._records):
            raise refused("an instruction that is not in the table")
        return self._records[number]

    def _loc(self, raw: Any, hint: Any, name: str) -> Any:
        parts = _listed(_only(raw, "l"))
        if parts is None or len(parts) != 6:
            return _OTHER
        file, function, numbers = parts[0], parts[5], parts[1:5]
        if any(type(n) is not int or not 0 <= n < 1 << 20 for n in numbers):
            raise refused("a place that is none")
        if file != self._file or self._file is None:
            return Loc("<artefact>", numbers[0])
        line, column, end_line, end_column = numbers
        name = check_text(function, "a function")
        return Loc(self._file, line, column, end_line, end_column, name)

    def _plain(self, raw: Any, hint: Any, name: str) -> Any:
        items = _listed(raw)
        if items is not None:
            return tuple(self._plain(item, hint, name) for item in items)
        if type(raw) not in (bool, int, str, type(None)):
            raise refused(f"the field {name} has a {type(raw).__name__}")
        return check_text(raw, name) if isinstance(raw, str) else raw

    def _layout(self, raw: Any) -> Any:
        if raw is None:
            return None
        parts = _listed(raw) or []
        if len(parts) == 4 and parts[0] == "view":
            return ViewLayout(self._layout(parts[1]), _extents(parts[2]), _integer(parts[3]))
        if len(parts) != 6 or parts[0] != "shared":
            raise refused("a layout that is none")
        _, shape, bits, swizzle, panel, pitch = parts
        made = None if swizzle is None else Swizzle(*(_integer(x) for x in swizzle))
        return SharedLayout(_extents(shape), _integer(bits), made, panel and _integer(panel),
                            pitch and _integer(pitch))  # fmt: skip


def _integer(raw: Any) -> int:
    if type(raw) is not int or not 0 <= raw < 1 << 24:
        raise refused("a layout's number is none")
    return raw


def _extents(raw: Any) -> tuple[int, ...]:
    shape = tuple(_integer(x) for x in raw)
    if len(shape) > 8 or math.prod(shape) > 1 << 22:
        raise refused("a layout of a tile that no chip holds")
    return shape


def _listed(raw: Any) -> list[Any] | None:
    """A list, or None for anything else."""
    return cast("list[Any]", raw) if isinstance(raw, list) else None


def _only(raw: Any, key: str) -> Any:
    """The value of a dict with that key alone."""
    if not isinstance(raw, dict):
        return None
    data = cast("dict[str, Any]", raw)
    return data[key] if set(data) == {key} else None


def _check_const(node: Const) -> None:
    kinds = {"float": (float, int), "bool": (bool, int), "int": (int,), "uint": (int,)}
    if type(node.value) not in kinds[node.dtype.kind]:
        raise refused(f"a constant of type {node.dtype} is a {type(node.value).__name__}")
    bits = node.dtype.bits
    if node.dtype.kind in ("int", "uint") and not -(1 << bits - 1) <= node.value < 1 << bits:
        raise refused(f"a constant of type {node.dtype} is {str(node.value)[:40]}")


# -- scalars ------------------------------------------------------------------------------------


class _Other:
    """Says that a value is of another member of the union."""


_OTHER: Any = _Other()


def _read_int(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    if type(raw) is not int:
        return _OTHER
    if abs(raw) > LIMITS.integer:
        raise refused(f"the field {name} is out of range")
    return raw


def _read_float(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    text = _only(raw, "f")
    return float.fromhex(text) if isinstance(text, str) and len(text) < 40 else _OTHER


def _read_enum(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    values = {member.value: member for member in hint}
    return values.get(raw, _OTHER) if isinstance(raw, str) else _OTHER


def _read_dtype(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    return DTYPES.get(raw, _OTHER) if isinstance(raw, str) else _OTHER


def _read_bool(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    return raw if type(raw) is bool else _OTHER


def _read_str(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    return check_text(raw, name) if isinstance(raw, str) else _OTHER


def _read_none(reader: Any, raw: Any, hint: Any, name: str) -> Any:
    return None if raw is None else _OTHER


_READERS: dict[type[Any], Callable[..., Any]] = {
    Node: _Reader._node,  # pyright: ignore[reportPrivateUsage]
    Intrinsic: _Reader._intrinsic,  # pyright: ignore[reportPrivateUsage]
    Loc: _Reader._loc,  # pyright: ignore[reportPrivateUsage]
    enum.Enum: _read_enum,
    DType: _read_dtype,
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    str: _read_str,
    type(None): _read_none,
}


# -- instructions -------------------------------------------------------------------------------


def _record(row: Any) -> Intrinsic:
    parts = _listed(row) or []
    name = parts[0] if parts and isinstance(parts[0], str) else ""
    known = constants()
    if len(parts) == 1 and name in known:
        return known[name]
    if len(parts) != 3 or name not in FACTORIES:
        raise refused(f"there is no instruction {name[:40]!r}")
    args, kwargs = parts[1], parts[2]
    given = [_argument(a, name, i) for i, a in enumerate(args)]
    named = {str(k): _argument(v, name, -1) for k, v in kwargs.items()}
    return intrinsic.FACTORIES[name](*given, **named)


def _argument(raw: Any, factory: str, position: int) -> Any:
    """An argument of a factory: words become part of CUDA text, so they are words only."""
    dtype = _only(raw, "t")
    if dtype is not None:
        return DTYPES[dtype]
    if isinstance(raw, str):
        return check_format(raw) if factory in SPEAKING and position == 0 else check_word(raw)
    least = -LARGEST_ARGUMENT if factory in SIGNED else 0
    if type(raw) is bool or (type(raw) is int and least <= raw <= LARGEST_ARGUMENT):
        return raw
    raise refused(f"an argument of {factory}")
