"""Whether an argument is what its parameter's annotation says, and how that is said.

Rank 0. Hides `typing`: an annotation that says nothing checkable admits everything.
"""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.errors import TileTypeError, a_kind, shown

Test = Callable[[Any, tuple[Any, ...]], bool]


def mismatch(
    fn: Callable[..., Any], arguments: Mapping[str, Any], name: str
) -> TileTypeError | None:
    """The error (TL1002) for the first argument that is not of its parameter's kind."""
    hints = _hints(fn)
    parameters = inspect.signature(fn).parameters
    for key, value in arguments.items():
        parameter = parameters.get(key)
        if parameter is None or key not in hints or value is parameter.default:
            continue
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not many and not admits(hints[key], value):
            return TileTypeError(
                f"{name}() has got {key}={shown(value)}, {a_kind(value)}",
                code="TL1002",
                hint=f"{key} is {said(hints[key])}",
            )
    return None


@functools.cache
def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn)
    except (NameError, TypeError):  # a name that only the type checker sees
        return {}


def admits(kind: Any, value: Any) -> bool:
    """Whether a value may stand where an annotation says `kind`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(admits(one, value) for one in inner)
    test = _TESTS.get(origin or kind)
    if test is not None:
        return test(value, inner)
    plain = isinstance(kind, type) and origin is None and not getattr(kind, "_is_protocol", False)
    return isinstance(value, kind) if plain else True


def said(kind: Any) -> str:
    """An annotation in words: "an int, or None"."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(dict.fromkeys(said(one) for one in inner))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    words = _WORDS.get(origin or kind)
    if words is None:
        name = getattr(kind, "__name__", str(kind))
        return f"an {name}" if name[:1] in "AEIOU" else f"a {name}"
    known = [a for a in inner if a is not Ellipsis and a is not Any]
    of = f" of {said(known[0]).split(' ', 1)[-1]}" if "sequence" in words and known else ""
    return words + of


def _number(value: Any, _inner: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def _whole(value: Any, _inner: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Integral)


def _each(value: Any, inner: tuple[Any, ...]) -> bool:
    """A sequence, or anything to go through once, of the kind that is asked for."""
    if isinstance(value, str | bytes | abc.Mapping) or hasattr(value, "shape"):
        return False
    if not isinstance(value, abc.Iterable):
        return False
    listed = isinstance(value, list | tuple) and inner
    return not listed or all(admits(inner[0], one) for one in value)  # type: ignore[index]


_CALLABLE: Any = typing.get_origin(Callable[[], None])
_TESTS: dict[Any, Test] = {
    Any: lambda value, inner: True,
    None: lambda value, inner: value is None,
    type(None): lambda value, inner: value is None,
    float: _number, int: _whole,
    bool: lambda value, inner: isinstance(value, bool | int) or type(value).__name__ == "bool",
    _CALLABLE: lambda value, inner: callable(value),
    abc.Sequence: _each, abc.Iterable: _each, list: _each, tuple: _each,
    abc.Mapping: lambda value, inner: isinstance(value, abc.Mapping),
    dict: lambda value, inner: isinstance(value, dict),
    os.PathLike: lambda value, inner: isinstance(value, os.PathLike),
    typing.Literal: lambda value, inner: value in inner,
}  # fmt: skip
_WORDS: dict[Any, str] = {
    None: "None", type(None): "None", float: "a number", int: "an int", bool: "True or False",
    str: "a text", _CALLABLE: "a function", abc.Sequence: "a sequence",
    abc.Iterable: "a sequence", list: "a sequence", tuple: "a sequence", abc.Mapping: "a dict",
    dict: "a dict", os.PathLike: "a path",
}  # fmt: skip
