"""Descriptions of hand-written kernels: `--reference FOLDER` reads every FOLDER/NAME.json.

One description is one column beside tilelab's. Plain data that is checked when it is read; hides
the format, which docs/reference-kernels.md documents. `foreign.py` builds and launches them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.bench.arithmetic import calculate
from tilelab.errors import TileValueError

Spec = dict[str, Any]

REQUIRED = ("program", "entry", "grid", "block", "arguments")
OPTIONAL = ("source", "where", "defines", "shared")
KINDS = ("map", "tensor", "int32", "int64", "float32", "zeros")
"""What an argument can be; `map` (a TMA descriptor) also takes "box" and "swizzle"."""
SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True)
class Reference:
    """A kernel of the user's for one benchmark program; `path` is its description.

    Texts are arithmetic over the names of a row (`bench.problems.names_of`) and `sms`.
    """

    path: Path
    program: str
    source: Path
    entry: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str
    where: str
    defines: Mapping[str, str]
    arguments: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """The column's: the description's file name without its ending."""
        return self.path.stem

    def applies(self, program: str, names: Mapping[str, Any]) -> bool:
        """Whether it computes a row of `program` with these sizes and settings."""
        return program == self.program and bool(self.number("where", self.where, names))

    def number(self, key: str, text: str, names: Mapping[str, Any]) -> Any:
        """The value of one of its texts. Raises TileValueError (TL2121)."""
        return calculate(text, names, what=f"{self.path.name}, {key!r}")


def load(folder: Path | None, programs: Mapping[str, Any]) -> tuple[Reference, ...]:
    """All references described in a folder, by name; none for None.

    Raises TileValueError (TL2121): no folder, no description in it, or one that is not right.
    """
    if folder is None:
        return ()
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not paths:
        raise TileValueError(
            f"--reference {folder}: " + ("no *.json in it" if folder.is_dir() else "no folder"),
            code="TL2121",
            hint="name a folder with a description (NAME.json) beside each kernel (NAME.cu); "
            "docs/reference-kernels.md has two",
        )
    return tuple(read(path, programs) for path in paths)


def read(path: Path, programs: Mapping[str, Any]) -> Reference:
    """One description, checked. Raises TileValueError (TL2121)."""
    try:
        data: Any = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise _wrong(path, f"is no JSON: {error}", "an object") from error
    if not _is(data, dict):
        raise _wrong(path, "is no JSON object", "an object")
    for key, check, allowed in _checks(programs):
        if key in REQUIRED and key not in data:
            raise _wrong(path, f"has no {key!r}", f"{key!r}: {allowed}")
        if key in data and not check(data[key]):
            raise _wrong(path, f"has {key!r}: {data[key]!r}", allowed)
    unknown = sorted(set(data) - {*REQUIRED, *OPTIONAL})
    if unknown:
        raise _wrong(path, f"has {unknown[0]!r}", "only " + ", ".join((*REQUIRED, *OPTIONAL)))
    source = path.parent / data.get("source", path.stem + ".cu")
    if not source.is_file():
        raise _wrong(path, f"names {source.name}, which is no file", "a file beside it")
    for argument in data["arguments"]:
        _check_argument(path, argument)
    return Reference(
        path, data["program"], source, data["entry"], _texts(data["grid"]),
        _texts(data["block"]), str(data.get("shared", 0)), data.get("where", "True"),
        {k: str(v) for k, v in data.get("defines", {}).items()}, tuple(data["arguments"]),
    )  # fmt: skip


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(str(v) for v in values)


def _is(value: Any, *kinds: type) -> bool:
    return type(value) in kinds


def _is_number(value: Any) -> bool:
    return _is(value, str, int, float)


def _is_numbers(value: Any) -> bool:
    return _is(value, list) and 1 <= len(value) <= 3 and all(map(_is_number, value))


def _is_macros(value: Any) -> bool:
    return _is(value, dict) and all(map(_is_number, value.values()))


def _is_text(value: Any) -> bool:
    return _is(value, str)


Check = tuple[str, Callable[[Any], bool], str]


def _checks(programs: Mapping[str, Any]) -> tuple[Check, ...]:
    counts = 'a list of one to three numbers or texts such as "ceildiv(M, 128)"'
    return (
        ("program", lambda v: v in programs, "one of " + ", ".join(programs)),
        ("entry", _is_text, "the name of an extern \"C\" __global__ function"),
        ("grid", _is_numbers, counts),
        ("block", _is_numbers, counts),
        ("arguments", lambda v: _is(v, list) and v != [], "a list with an object for each"),
        ("source", _is_text, "the name of a .cu file beside the description"),
        ("where", _is_text, 'a condition such as "tile_n == 256"'),
        ("shared", _is_number, "bytes of dynamic shared memory, a number or a text"),
        ("defines", _is_macros,
         'an object of macros, such as {"DIM": "D"}'),
    )  # fmt: skip


def _check_argument(path: Path, argument: Any) -> None:
    kinds = [k for k in KINDS if _is(argument, dict) and k in argument]
    if len(kinds) != 1 or set(argument) - {kinds[0], "box", "swizzle"}:
        raise _wrong(path, f"has the argument {argument!r}", "one of " + ", ".join(KINDS))
    if kinds[0] != "map":
        return
    box, swizzle = argument.get("box"), argument.get("swizzle", 0)
    if not _is(box, list) or not all(map(_is_number, box)):
        raise _wrong(path, f"has a map with box {box!r}", "a list, innermost extent first")
    if swizzle not in SWIZZLES:
        raise _wrong(path, f"has a map with swizzle {swizzle!r}", f"one of {SWIZZLES}")


def _wrong(path: Path, problem: str, allowed: str) -> TileValueError:
    return TileValueError(
        f"{path.name} {problem}",
        code="TL2121",
        hint=f"allowed: {allowed} (docs/reference-kernels.md)",
    )
