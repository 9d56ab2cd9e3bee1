"""What a traced function reads from around itself, as part of its kernels' key.

Hides how names of the module (or notebook) and of enclosing functions are found, through macros
and helpers too, and that an unchanged surrounding costs a few identity tests a call.
"""

from __future__ import annotations

import ast
import dis
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tilelab.errors import TileError
from tilelab.frontend.macro import Macro
from tilelab.frontend.source import find_source

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")


class _Missing:
    """A name that is not defined (yet), or is Python's own."""


class _Same:
    """An object as a key: equal to itself only, whatever its own == means."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _frozen(value: Any) -> Hashable:
    """Data by its content, other objects by their identity."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _PLAIN:
        return (kind, value)
    if kind in (list, tuple):
        return (kind, *map(_frozen, value))
    if kind is dict:
        return (dict, *((_frozen(k), _frozen(v)) for k, v in value.items()))
    if kind in (set, frozenset):
        return (kind, frozenset(map(_frozen, value)))
    return _Same(value)


def _changeable(value: Any) -> bool:
    """Whether the content of the same object may change between two calls."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    return kind in (list, dict, set) or (kind is tuple and any(map(_changeable, value)))


class Captured:
    """The surroundings of one function."""

    def __init__(self, fn: FunctionType) -> None:
        self._fn = fn
        self._readers: list[Callable[[], Any]] = []
        self._values: list[Any] = []
        self._key: Hashable = None
        self._content_may_change = True

    def key(self) -> Hashable:
        """The present values of all captured names, as a key."""
        values = [read() for read in self._readers]
        known = len(values) == len(self._values) and all(map(operator.is_, values, self._values))
        if self._readers and known and not self._content_may_change:
            return self._key
        places = dict(_places(self._fn, set()))
        self._readers = list(places.values())
        self._values = [read() for read in self._readers]
        self._content_may_change = any(map(_changeable, self._values))
        self._key = tuple(zip(places, map(_frozen, self._values), strict=True))
        return self._key


def _places(
    fn: FunctionType, seen: set[int]
) -> Iterator[tuple[tuple[int, str], Callable[[], Any]]]:
    """Captured names of a function and of what it calls, each with a way to read it."""
    if id(fn) in seen:
        return
    seen.add(id(fn))
    readers = {
        **{(id(fn.__globals__), name): _from_module(fn, name) for name in _names(fn)},
        **{(id(cell), name): _from_cell(cell) for name, cell in _cells(fn)},
    }
    for place, read in readers.items():
        value = read()
        if isinstance(value, ModuleType | _Missing):
            continue
        yield place, read
        inner = value.fn if isinstance(value, Macro) else value
        if isinstance(inner, FunctionType) and (
            isinstance(value, Macro) or inner.__globals__ is fn.__globals__
        ):
            yield from _places(inner, seen)


def _from_module(fn: FunctionType, name: str) -> Callable[[], Any]:
    known, nothing = fn.__globals__, _Missing()

    def read() -> Any:
        return known.get(name, nothing)

    return read


def _from_cell(cell: Any) -> Callable[[], Any]:
    nothing = _Missing()

    def read() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # not assigned yet
            return nothing

    return read


def _cells(fn: FunctionType) -> Iterable[tuple[str, Any]]:
    return zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)


def _names(fn: FunctionType) -> list[str]:
    """Names of the module that the function's code or its annotations read, in a fixed order."""
    found = set(_loaded(fn.__code__)) | set(_annotated(fn))
    return sorted(found - {*fn.__code__.co_varnames, *fn.__code__.co_freevars})


def _loaded(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in _LOADS:
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded(constant)


def _annotated(fn: FunctionType) -> Iterator[str]:
    """Names in annotations, which are evaluated without standing in the code."""
    try:
        tree = find_source(fn).node
    except TileError:  # no text: it cannot be traced either, which its first trace says
        return
    for node in ast.walk(tree):
        annotation = getattr(node, "annotation", None)
        for part in ast.walk(annotation) if isinstance(annotation, ast.AST) else ():
            if isinstance(part, ast.Name):
                yield part.id
