"""Calls that do not fit a function's parameters, said with its name and the nearest parameter.

Rank 0. Hides how Python's TypeError about a call is told from one inside the function.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from tilelab.errors import TileTypeError, shown

P = ParamSpec("P")
R = TypeVar("R")

_COLLECTS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that a misspelt one was probably meant to be; empty without one."""
    known = list(known)
    words = [k for k in known if word in k.split("_")]  # `stages` for num_stages
    if words:
        return words[0]
    by_lower = {k.lower().replace("_", ""): k for k in known}
    plain = word.lower().replace("_", "")
    found = difflib.get_close_matches(plain, by_lower, 1, 0.6)
    if not found and len(plain) > 1:
        found = [k for k in by_lower if len(k) > 1 and (plain in k or k in plain)][:1]
    return by_lower[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str], form: str = "{}") -> str:
    """ "did you mean X?" for the nearest known word, in `form`; empty without one."""
    near = nearest(word, known)
    return f"did you mean {form.format(near)}?" if near else ""


def misfit(
    fn: Callable[..., Any] | inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any],
    name: str = "", code: str = "TL1407",
) -> TileTypeError | None:  # fmt: skip
    """The error of a call whose arguments do not fit the parameters of `fn`; None where they do."""
    try:
        signature = fn if isinstance(fn, inspect.Signature) else inspect.signature(fn)
    except (TypeError, ValueError):  # a builtin without a signature
        return None
    parameters: Mapping[str, Parameter] = signature.parameters
    if next(iter(parameters), "") == "self":
        args, parameters = args[1:], dict(list(parameters.items())[1:])
    name = name or getattr(fn, "__name__", "the function")
    problem, hint = _problem(parameters, args, kwargs)
    if not problem:
        return None
    usage = f"write {name}({', '.join(map(_usage, parameters.values()))})"
    return TileTypeError(f"{name}() {problem}", code=code, hint=f"{hint} {usage}".strip())


def _problem(
    parameters: Mapping[str, Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, str]:
    kinds = {p.kind for p in parameters.values()}
    places = [n for n, p in parameters.items() if p.kind in _BY_PLACE]
    if Parameter.VAR_KEYWORD not in kinds:
        named = [n for n, p in parameters.items() if p.kind not in _COLLECTS]
        for key in kwargs:
            if key not in named:
                free = [n for n in named if n not in kwargs and n not in places[: len(args)]]
                return f"has no argument {key!r}", did_you_mean(key, free, "{}=...")
    if Parameter.VAR_POSITIONAL not in kinds and len(args) > len(places):
        most = f"{len(places)} argument{'s' * (len(places) != 1)}"
        return f"takes at most {most} by position, and got {len(args)}", ""
    for key in places[: len(args)]:
        if key in kwargs:
            return f"got its argument {key!r} twice, by position and by name", "give it once;"
    needed = [
        n for n, p in parameters.items() if p.default is Parameter.empty and p.kind not in _COLLECTS
    ]
    missing = [n for n in needed if n not in kwargs and n not in places[: len(args)]]
    if missing:
        several = "s" * (len(missing) != 1)
        return f"lacks its argument{several} {', '.join(map(repr, missing))}", ""
    return "", ""


def _usage(parameter: Parameter) -> str:
    if parameter.kind in _COLLECTS:
        return str(parameter.replace(annotation=Parameter.empty))
    if parameter.default is Parameter.empty:
        return parameter.name
    return f"{parameter.name}={shown(parameter.default, 30)}"


def answering(fn: Callable[P, R], name: str = "") -> Callable[P, R]:
    """`fn`, which answers a call that does not fit with TileTypeError (TL1407) by its `name`."""

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:  # raised inside the function
                raise
            found = misfit(fn, args, kwargs, name)
            if found is None:
                raise
        raise found

    return call


def caller_frame() -> FrameType:
    """The frame that called the function that asks, whether or not `answering` stands between."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame
