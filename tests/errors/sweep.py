"""Calls of public functions with everything that is wrong: what the sweeps share.

A call may work, or raise a TileError that says what to do (argparse's own errors are TileErrors,
too). Anything else is a mistake of tilelab: Python's own exception, a text without a remedy.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tilelab.errors import TileError, TileInternalError


class Odd:
    """Something that no function knows."""

    def __repr__(self) -> str:
        return "<Odd>"


WRONG: dict[str, Any] = {
    "None": None, "text": "text", "float": 3.5, "negative": -1, "zero": 0, "nan": math.nan,
    "infinity": math.inf, "huge": 10**30, "truth": True, "list": [], "dict": {}, "odd": Odd(),
    "type": int, "tuple": (1, 2, 3, 4, 5), "array": np.zeros(3), "int array": np.zeros(3, "int64"),
    "tensor": torch.zeros(2, 2, dtype=torch.int8), "function": lambda: 0, "bytes": b"x",
}  # fmt: skip
Call = tuple[tuple[Any, ...], dict[str, Any]]


def calls(fn: Callable[..., Any], good: Sequence[Any]) -> Iterator[Call]:
    """Wrong calls of a function: too few and too many arguments, a keyword that it lacks, each
    argument of the wrong kind, the others being one of `good`."""
    parameters = list(inspect.signature(fn).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    optional = [p.name for p in parameters if p.default is not p.empty]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = max(len(needed), int(open_ended))
    yield (), {}
    for one in good:
        yield (one,) * 15, {}
        yield (one,) * count, {"nonsense": 1}
        yield (one,) * count, {}
    for value in WRONG.values():
        yield (value,) * count, {}
        for one in good:
            for place in range(count):
                yield tuple(value if n == place else one for n in range(count)), {}
            for name in optional:
                yield (one,) * count, {name: value}


def complaint(fn: Callable[..., Any], call: Call, allowed: tuple[type[Exception], ...] = ()) -> str:
    """What is wrong with the answer to a call; empty where nothing is."""
    args, kwargs = call
    try:
        fn(*args, **kwargs)
    except TileInternalError as error:
        return f"internal: {error.message}"
    except TileError as error:
        return "" if error.hint and error.code else f"no remedy: {error}"
    except allowed:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return ""


def complaints(
    fn: Callable[..., Any], good: Sequence[Any], allowed: tuple[type[Exception], ...] = ()
) -> Mapping[str, Call]:
    """Every complaint about a function, each with a call that leads to it."""
    found: dict[str, Call] = {}
    for call in calls(fn, good):
        said = complaint(fn, call, allowed)
        if said:
            found.setdefault(said, call)
    return found
