"""Calls that do not fit a function's parameters, said with its name and the nearest parameter.

Rank 0. Hides how Python's TypeError about a call is told from one inside the function.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from inspect import Parameter
from types import FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar

from tilelab.errors import TileError, TileTypeError, TileValueError, shown, user_loc
from tilelab.kinds import mismatch

P = ParamSpec("P")
R = TypeVar("R")

_COLLECTS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_SYNONYMS = {
    "axis": "dim", "dims": "dim", "num_threads": "threads", "block_dim": "threads",
    "blockDim": "threads", "out": "out_idx", "outputs": "out_idx", "arch": "target",
    "device": "target", "grid": "blocks",
}  # fmt: skip
"""What PyTorch, CUDA and Triton call it."""
_RECEIVERS = ("self", "cls")
_STUMBLES = (
    TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RuntimeError,
)  # fmt: skip
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that a misspelt one was probably meant to be; empty without one."""
    known = list(known)
    if _SYNONYMS.get(word) in known:
        return _SYNONYMS[word]
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
    if _is_method(fn) and next(iter(parameters), "") in _RECEIVERS:
        args, parameters = args[1:], dict(list(parameters.items())[1:])
    name = name or getattr(fn, "__name__", "the function")
    problem, hint = _problem(parameters, args, kwargs)
    if not problem:
        return None
    usage = f"write {name}({', '.join(map(_usage, parameters.values()))})"
    return TileTypeError(f"{name}() {problem}", code=code, hint=f"{hint} {usage}".strip())


def _is_method(fn: Any) -> bool:
    return "." in getattr(fn, "__qualname__", "").rpartition("<locals>.")[2]


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
        return parameter.name + "=..." * (parameter.kind is Parameter.KEYWORD_ONLY)
    return f"{parameter.name}={shown(parameter.default, 30)}"


def answering(
    fn: Callable[P, R], name: str = "", *, inside: bool = False, kinds: bool = False
) -> Callable[P, R]:
    """`fn`, which answers a call that does not fit with TileTypeError (TL1407) by its `name`.

    With `kinds`, an error of Python's inside is laid to an argument that is not what its annotation
    says (TL1002). With `inside`, so is what Python stumbles over in tilelab's own code (TL1407);
    what a function of the user's raises, when it is called, stays as it is.
    """
    name = name or fn.__name__

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except _STUMBLES as error:
            found = _answer(fn, args, kwargs, name, error, inside, kinds)
            if found is None:
                raise
            raise found from None

    return call


def answers(
    name: str, *, inside: bool = True, kinds: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`answering` as a decorator."""
    return functools.partial(answering, name=name, inside=inside, kinds=kinds)


def answer_all(
    space: dict[str, Any], names: Iterable[str], prefix: str, *, kinds: bool = True
) -> None:
    """Let the functions and classes of a module (its globals) that have these names answer wrong
    calls; enumerations keep their own call."""
    for name in names:
        value: Any = space.get(name)
        said = f"{prefix}.{name}"
        if isinstance(value, FunctionType):
            space[name] = answering(value, said, inside=True, kinds=kinds)
        elif inspect.isclass(value) and not issubclass(value, Enum):
            made: Any = value.__dict__.get("__init__")
            if isinstance(made, FunctionType):
                value.__init__ = answering(made, said, inside=True, kinds=kinds)


def _answer(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str,
    error: Exception, inside: bool, kinds: bool,
) -> TileError | None:  # fmt: skip
    trace = error.__traceback__
    if isinstance(error, TileError) or trace is None:
        return None
    here = trace.tb_next is None
    if isinstance(error, TypeError) and (here or inside):
        found = misfit(fn, args, kwargs, name)
        if found is not None:
            return found
    if kinds and not here:
        found = mismatch(fn, inspect.signature(fn).bind(*args, **kwargs).arguments, name)
        if found is not None:
            return found
    if not inside or here or user_loc(trace.tb_next) is not None:
        return None
    return _unusable(fn, args, kwargs, name, error)


def _unusable(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str,
    error: Exception,
) -> TileError:  # fmt: skip
    """Which arguments a function could not use, and what it is for."""
    parameters = inspect.signature(fn).parameters
    bound = inspect.signature(fn).bind(*args, **kwargs).arguments
    given = [f"{n}={shown(v, 40)}" for n, v in bound.items() if n not in _RECEIVERS]
    usage = f"{name}({', '.join(_usage(p) for n, p in parameters.items() if n not in _RECEIVERS)})"
    purpose = " ".join((inspect.getdoc(fn) or "").partition("\n\n")[0].split())
    kind = TileTypeError if isinstance(error, TypeError | AttributeError) else TileValueError
    why = (str(error) or type(error).__name__).splitlines()[0]
    return kind(f"{name}() cannot use {', '.join(given)}: {why}", code="TL1407",
                hint=f"{usage}: {purpose}")  # fmt: skip


def caller_frame() -> FrameType:
    """The frame that called the function that asks, whether or not `answering` stands between."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame
