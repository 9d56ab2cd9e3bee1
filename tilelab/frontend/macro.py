"""@T.macro: a function whose statements are traced where it is called.

Hides how arguments are evaluated once, and what T.Ref passes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from tilelab.calls import misfit
from tilelab.errors import TileRuntimeError, TileValueError
from tilelab.frontend.assign import ElementRef
from tilelab.frontend.frame import Frame
from tilelab.frontend.mutate import bind_tracer, plain_function, traced_code
from tilelab.frontend.params import namespace
from tilelab.frontend.poison import Poison, raise_poison
from tilelab.frontend.session import session
from tilelab.frontend.types import REF, Variable
from tilelab.ir import Expr, Load, Region, ScalarBuffer
from tilelab.ir.builder import is_tracing

MAX_DEPTH = 200


class Macro:
    """What @T.macro leaves in place of the function; calling it traces the body inline."""

    def __init__(self, fn: Any, outer: Mapping[str, Any] | None = None) -> None:
        self.fn: FunctionType = plain_function(fn, "@T.macro")
        self._signature = inspect.signature(self.fn)
        self._outer = dict(outer or {})
        self._depth = 0
        functools.update_wrapper(self, self.fn)

    @functools.cached_property
    def _references(self) -> frozenset[str]:
        """Parameters annotated T.Ref. Other annotations are documentation and not evaluated."""
        found: set[str] = set()
        for name, value in self.fn.__annotations__.items():
            if type(value) is str and value.rpartition(".")[2] in ("Ref", "Var"):
                value = eval(value, namespace(self.fn, self._outer))
            if value is REF or value is Variable:
                found.add(name)
        return frozenset(found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            raise TileRuntimeError(
                f"the macro {self.fn.__name__} is called outside a kernel",
                code="TL1401",
                hint="call it in a function under @T.prim_func or @tilelang.jit",
            )
        if self._depth >= MAX_DEPTH:
            raise TileRuntimeError(
                f"the macro {self.fn.__name__} calls itself without end",
                code="TL1470",
                hint="stop the recursion by a compile-time condition",
            )
        trace = session()
        code = traced_code(self.fn)
        trace.add_traced(code)
        frame = Frame(trace)
        hint, trace.hint = trace.hint, None
        self._depth += 1
        try:
            wrong = misfit(self.fn, args, kwargs)
            if wrong is not None:
                raise wrong
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            for name, value in bound.arguments.items():
                bound.arguments[name] = self._argument(frame, name, value)
            returned = bind_tracer(self.fn, code, frame)(*bound.args, **bound.kwargs)
            frame.finish()
        finally:
            self._depth -= 1
            trace.hint = hint
        return returned

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A macro defined in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def _argument(self, frame: Frame, name: str, value: Any) -> Any:
        """What the body gets for an argument: scalars are evaluated once, here."""
        if isinstance(value, Poison):
            raise_poison(value)
        if name in self._references:
            return _reference(frame, name, value)
        if isinstance(value, Expr) or hasattr(value, "__expr__"):
            return frame.snapshot(name, value)
        return value


def _reference(frame: Frame, name: str, value: Any) -> Any:
    """T.Ref: the variable itself, an element with its indices fixed, or a region."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    place = _PLACES.get(kind)
    if place is None:
        raise TileValueError(
            f"{name} is passed by reference, and {value!r} is no place",
            code="TL1471",
            hint="pass a T.alloc_var, an element A[i] or a slice",
        )
    return place(frame, name, value)


def _hold(frame: Frame, name: str, value: ScalarBuffer | ElementRef) -> Any:
    frame.hold(name, value)
    return value


def _element(frame: Frame, name: str, value: Load) -> ElementRef:
    indices = tuple(frame.snapshot("index", i) for i in value.indices)
    element = ElementRef(Load(value.buffer, indices))
    frame.hold(name, element)
    return element


def _as_it_is(_frame: Frame, _name: str, value: Any) -> Any:
    return value


_PLACES: dict[type, Callable[[Frame, str, Any], Any]] = {
    ScalarBuffer: _hold, ElementRef: _hold, Load: _element, Region: _as_it_is,
}  # fmt: skip
